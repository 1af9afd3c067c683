"""The way from one sender to the replicas of a stateless component, as a `core.policy.Router` learns it. Pure.

A router chooses a hop for one tuple; asking it on the data path would cost every tuple. So it is asked for many choices
at once, a few times a second, and their counts become the weights by which the sender's grouping goes round the
replicas (`core/rotation.py`). Feedback comes from samples: a sample is sent behind the tuples of a replica, which
answers when it has processed them. Facts come in with their time, and a `Turn` goes out.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from random import Random

from leeward.core.errors import ProtocolError
from leeward.core.policy import PathRouter, Router
from leeward.core.table import replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePacing:
    """How a sender learns its ways. Times in seconds."""

    #: From one turn to the next: so often a replica gets a sample, at most. The delay of a replica follows its weight,
    #: so a sender that learns late swings between replicas. The experiment agiledart-replicas has both: three equal
    #: replicas that are busy for 80 % of the time, with 0.25 s and four turns, and with these.
    every_s: float = 0.1
    choices: int = 32  #: of the router in a turn
    turns: int = 2  #: turns whose choices are the weights
    patience_s: float = 1.0  #: a sample without an answer for so long counts as a tuple that took so long
    samples: int = 16  #: sent in a turn, at most


@dataclass(frozen=True, slots=True)
class Turn:
    """The next deeds of a sender."""

    weights: Mapping[int, int] | None = None  #: task -> turns in the rotation from here on; None: as before
    samples: tuple[int, ...] = ()  #: tasks that get a sample, ascending


@dataclass(slots=True)
class Asked:
    """A sample under way."""

    number: int
    at: float  #: s


@dataclass(slots=True)
class Route:
    """See the module. `rng`: for the router's choices alone."""

    router: Router
    rng: Random
    pacing: RoutePacing = field(default_factory=RoutePacing)
    hops: tuple[int, ...] = ()  #: replicas by the sender's table, ascending
    weights: Mapping[int, int] = field(default_factory=dict)  #: in force; empty: the table's own rotation
    _chosen: deque[Counter[int]] = field(default_factory=deque)
    _asked: dict[int, Asked] = field(default_factory=dict)  # by task
    _met: set[int] = field(default_factory=set)  # tasks of which the router has learnt something
    _last: dict[int, float] = field(default_factory=dict)  # task -> when it was sent a sample

    def follow(self, table: Sequence[int]) -> None:
        """The sender's grouping has this table now, and no weights. The router keeps its knowledge."""
        self.hops = replicas(table)
        self.weights = {}
        self._chosen.clear()
        self._asked = {task: asked for task, asked in self._asked.items() if task in self.hops}

    def rest(self) -> None:
        """The stream has stopped: samples under way tell nothing about their tasks."""
        self._asked.clear()

    def answered(self, task: int, number: int, at: float, *, service_s: float, ahead_s: float = 0.0) -> bool:
        """The sample of this number was answered, which came at `at`; False for one that is not waited for.

        `service_s`: the time for one tuple there; `ahead_s`: from there to the sink, as far as that task knows.
        """
        asked = self._asked.get(task)
        if asked is None or asked.number != number or not all(isfinite(s) and s >= 0 for s in (service_s, ahead_s)):
            return False
        del self._asked[task]
        self._learn(task, max(0.0, at - asked.at) + service_s)
        if isinstance(self.router, PathRouter):
            self.router.hear(task, ahead_s)
        return True

    def turn(self, number: int, now: float, *, busy: bool = True) -> Turn:
        """Learn of silent tasks, choose, and ask. `number`: of the samples; `busy`: tuples went since the last turn."""
        for task, asked in sorted(self._asked.items()):
            if now - asked.at >= self.pacing.patience_s:
                del self._asked[task]
                self._learn(task, self.pacing.patience_s)
        if not busy or len(self.hops) < 2:
            return Turn()
        self._choose(now)
        return Turn(self._new_weights(), self._ask(number, now))

    @property
    def waits(self) -> bool:
        """Samples are under way."""
        return bool(self._asked)

    def ahead_s(self, now: float) -> float:
        """From the sender to the sink, s, as the router expects it; 0 if it knows no such thing."""
        if self.hops and isinstance(self.router, PathRouter):
            return self.router.ahead_s(self.hops, now=now, rng=self.rng)
        return 0.0

    def _learn(self, task: int, delay_s: float) -> None:
        self._met.add(task)
        self.router.learn(task, delay_s)

    def _choose(self, now: float) -> None:
        times = 1 if getattr(self.router, "steady", False) else self.pacing.choices
        chosen = Counter(self.router.next_hop(self.hops, now=now, rng=self.rng) for _ in range(times))
        if foreign := chosen.keys() - set(self.hops):
            raise ProtocolError(
                f"{type(self.router).__name__}.next_hop chose task {min(foreign)}, which is none of {self.hops}.",
                remedy="Return one of `hops`.",
            )
        self._chosen.append(Counter({task: count * self.pacing.choices // times for task, count in chosen.items()}))
        while len(self._chosen) > self.pacing.turns:
            self._chosen.popleft()

    def _new_weights(self) -> Mapping[int, int] | None:
        """None while they are as before. A hop of which nothing is known yet gets its share of an even rotation."""
        if not self._met.issuperset(self.hops):
            return None
        total: Counter[int] = Counter()
        for chosen in self._chosen:
            total += chosen
        weights = {task: total[task] for task in self.hops}
        if weights == self.weights:
            return None
        self.weights = weights
        return weights

    def _ask(self, number: int, now: float) -> tuple[int, ...]:
        """Those that get tuples, the ones first that were asked longest ago."""
        idle = [task for task in self.hops if task not in self._asked and (not self.weights or self.weights[task])]
        idle.sort(key=lambda task: (self._last.get(task, float("-inf")), task))
        tasks = tuple(sorted(idle[: self.pacing.samples]))
        for task in tasks:
            self._asked[task] = Asked(number, now)
            self._last[task] = now
        return tasks
