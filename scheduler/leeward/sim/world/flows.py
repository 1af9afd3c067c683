"""Rates, queues and response time of a topology between two moments. Pure.

A component with the service rate mu (tuples/s of one replica) whose busiest replica owns the share s of its key
groups takes mu / s in all. Tuples that arrive faster wait in a queue. The response time of a component is that of an
M/G/1 queue at that replica, and the time that the queue in front of it takes to work off; with exponential service
times, which a world has unless it says otherwise, that is M/M/1, 1 / (mu - s lambda). A topology's is that of its
longest path, with a delay where two components are not on one node. In front of a component wait at most QUEUE_MAX
tuples; the rest waits at the sources, as Storm holds spouts back. This is the response time R of EDRP (Cardellini et
al., equations 1, 3, 5 to 7), with a queue where the formula is infinite: near saturation, over RHO_MAX, the stationary
time says nothing of the minutes that a rate lasts, and RHO_MAX is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.core.keys import GROUPS
from leeward.core.table import Table, replicas
from leeward.sim.world.description import WorldFile, in_order

#: Utilisation over which the stationary response time is not taken for real.
RHO_MAX = 0.99
#: Tuples that wait in front of a component that is no source, at most: so many are under way to one task.
QUEUE_MAX = 1024.0


def shares(table: Table) -> dict[int, float]:
    """Task -> share of the component's tuples that it gets."""
    counts: dict[int, float] = {}
    for task in table:
        counts[task] = counts.get(task, 0.0) + 1 / GROUPS
    return counts


def sojourn_s(rate: float, mu: float, share: float, variation: float = 1.0) -> float:
    """Mean time in an M/G/1 queue of `share` of `rate`, in s; over RHO_MAX as if at RHO_MAX (Pollaczek, Khinchine).

    `variation`: squared coefficient of variation of the service time; with 1 it is the M/M/1 time.
    """
    rho = min(rate * share / mu, RHO_MAX)
    return (1.0 + rho * (1.0 + variation) / 2.0 / (1.0 - rho)) / mu


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which replicas a deployment has, and where."""

    share: Mapping[str, float]  #: component -> share of its busiest replica
    by_task: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  #: component -> task -> share
    apart: frozenset[tuple[str, str]] = frozenset()  #: streams that cross nodes

    @staticmethod
    def of(world: WorldFile, tables: Mapping[str, Table], nodes: Mapping[int, str]) -> Layout:
        """`nodes`: task -> node."""
        by_task = {name: shares(table) for name, table in tables.items()}
        share = {name: max(mine.values()) for name, mine in by_task.items()}
        at = {name: {nodes[task] for task in replicas(table) if task in nodes} for name, table in tables.items()}
        apart = {(s.source, s.target) for s in world.streams if len(at[s.source] | at[s.target]) > 1}
        return Layout(share=share, by_task=by_task, apart=frozenset(apart))


@dataclass(slots=True)
class Passed:
    """The result of one step."""

    processed: dict[str, float] = field(default_factory=dict)  #: component -> tuples
    sent: dict[tuple[str, str], float] = field(default_factory=dict)  #: stream -> tuples
    queued_s: dict[str, float] = field(default_factory=dict)  #: component -> time in the queue of what is too fast
    response_s: float = 0.0  #: of a tuple that came in it


class Flows:
    """The queues, and one step of them at a time."""

    def __init__(self, world: WorldFile) -> None:
        self._world = world
        self._order = in_order(world)
        self._mu = {component.id: component.rate for component in world.components}
        self._variation = {component.id: component.variation for component in world.components}
        self._into = {name: [s for s in world.streams if s.target == name] for name in self._order}
        self._outof = {name: [s for s in world.streams if s.source == name] for name in self._order}
        self.queues = dict.fromkeys(self._order, 0.0)  #: component -> tuples that wait in front of it
        self.offered = self.taken = 0.0  #: tuples that came to the sources, and that the sources have taken
        self.created = self.consumed = 0.0  #: tuples that were sent on streams, and that were processed from them

    def step(self, seconds: float, offered: Mapping[str, float], layout: Layout, *, runs: bool) -> Passed:
        """`offered`: tuples that come to each source meanwhile. With `runs` false nothing is taken: all of it waits."""
        most = {name: self._mu[name] / layout.share[name] * seconds * runs for name in self._order}
        free = self._let_in(offered, most)
        passed = Passed()
        finished: dict[str, float] = {}
        for name in self._order:
            coming = offered.get(name, 0.0) + sum(passed.sent[s.source, name] for s in self._into[name])
            waits = self.queues[name]
            done = min(waits + coming, most[name]) * (1.0 if self._into[name] else free)
            self.queues[name] = waits + coming - done
            self._count(name, coming, done)
            passed.processed[name] = done
            for stream in self._outof[name]:
                passed.sent[stream.source, stream.target] = done * stream.ratio
            before = max((self._arrives(s.source, name, finished, layout) for s in self._into[name]), default=0.0)
            pace = done if done > 0 else max(most[name], 1e-9)
            queued = (waits + self.queues[name]) / 2 / pace * seconds
            passed.queued_s[name] = queued
            stay_s = sojourn_s(done / seconds, self._mu[name], layout.share[name], self._variation[name])
            finished[name] = before + queued + stay_s
        passed.response_s = max(finished.values())
        return passed

    def _let_in(self, offered: Mapping[str, float], most: Mapping[str, float]) -> float:
        """The share of what they could send that sources may send, so that no queue grows over QUEUE_MAX."""
        free = 1.0
        flow: dict[str, float] = {}
        for name in self._order:
            if not self._into[name]:
                flow[name] = min(self.queues[name] + offered.get(name, 0.0), most[name])
                continue
            flow[name] = sum(flow[s.source] * s.ratio for s in self._into[name])
            room = most[name] + max(0.0, QUEUE_MAX - self.queues[name])
            if flow[name] > room:
                free = min(free, room / flow[name])
        return free

    def _arrives(self, source: str, target: str, finished: Mapping[str, float], layout: Layout) -> float:
        return finished[source] + (self._world.delay_s if (source, target) in layout.apart else 0.0)

    def _count(self, name: str, coming: float, done: float) -> None:
        if self._into[name]:
            self.created += coming
            self.consumed += done
        else:
            self.offered += coming
            self.taken += done

    @property
    def waiting(self) -> float:
        """Tuples that wait, all components together."""
        return sum(self.queues.values())

    @property
    def lost(self) -> float:
        """Tuples that are neither processed nor wait: 0, but for rounding."""
        return self.offered + self.created - self.taken - self.consumed - self.waiting
