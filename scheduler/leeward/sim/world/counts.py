"""Counts of the tasks of a simulated topology, as the tasks publish them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from leeward.core.metrics import TaskMetrics
from leeward.sim.world.description import WorldFile
from leeward.sim.world.flows import Layout, Passed, sojourn_s


@dataclass(slots=True)
class Counters:
    """Counts of one task's process since its start."""

    pid: int = 0
    process: object = None
    received: dict[str, float] = field(default_factory=dict)
    sent: float = 0.0
    processed: float = 0.0
    busy_s: float = 0.0
    sojourn_s: float = 0.0  #: of the tuples processed; a source times none


class Counts:
    """The counters of all tasks of one topology."""

    def __init__(self, world: WorldFile, tasks: Iterable[int]) -> None:
        self._mu = {component.id: component.rate for component in world.components}
        self._variation = {component.id: component.variation for component in world.components}
        self._into = {c.id: [s for s in world.streams if s.target == c.id] for c in world.components}
        self._outof = {c.id: [s for s in world.streams if s.source == c.id] for c in world.components}
        self._counters = {task: Counters() for task in tasks}

    def add(self, passed: Passed, layout: Layout, seconds: float) -> None:
        """Count the tuples of one step of so many seconds at the replicas that have processed them."""
        for name, done in passed.processed.items():
            received = [(s.source, passed.sent[s.source, name]) for s in self._into[name]]
            sent = sum(passed.sent[s.source, s.target] for s in self._outof[name])
            come = sum(count for _, count in received)
            for task, share in layout.by_task[name].items():
                counters = self._counters[task]
                counters.processed += done * share
                counters.busy_s += done * share / self._mu[name]
                counters.sent += sent * share
                counters.sojourn_s += done * share * self._stays_s(name, passed, share, seconds)
                for source, count in received:  # a task counts what it takes, not what waits for it
                    taken = done * count / come if come else 0.0
                    counters.received[source] = counters.received.get(source, 0.0) + taken * share

    def _stays_s(self, name: str, passed: Passed, share: float, seconds: float) -> float:
        """Mean sojourn time of a tuple at a replica with this share; 0 of a source, which times none."""
        if not self._into[name]:
            return 0.0
        rate = passed.processed[name] / seconds
        return passed.queued_s[name] + sojourn_s(rate, self._mu[name], share, self._variation[name])

    def of(self, task: int, process: object = None) -> Counters:
        """Those of the task's process. Another `process` than before begins at 0."""
        counters = self._counters[task]
        if counters.process is not process:
            counters = self._counters[task] = Counters(pid=counters.pid + 1, process=process)
        return counters

    def metrics(self, task: int, component: str, now: float, process: object = None, **more: Any) -> TaskMetrics:
        """The measurements that a task publishes at `now`. Another `process` than before begins at 0. `more`: other
        fields of `TaskMetrics`."""
        counters = self.of(task, process)
        return TaskMetrics(
            component=component, pid=counters.pid, t=now,
            received={source: round(count) for source, count in counters.received.items()},
            sent={"default": round(counters.sent)}, processed=round(counters.processed), busy_s=counters.busy_s,
            sojourns=round(counters.processed) if self._into[component] else 0, sojourn_s=counters.sojourn_s,
            **more,
        )  # fmt: skip
