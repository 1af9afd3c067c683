"""Measurements of the coordinator's twins, as their tasks would tell them at the moment in which they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.core.metrics import TaskMetrics
from tests.helpers.control_twins import TASKS, Cluster

#: Tuples/s that each task receives and sends.
RATE = 100.0
INPUTS = {"source": None, "work": "source", "sink": "work"}


class Figures(dict[int, str]):
    """Task -> its line; for `World.metrics`."""

    def __init__(self, cluster: Cluster, more: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        """`more`: task -> further fields of its line."""
        super().__init__()
        self._cluster, self._more, self._at, self._count = cluster, more or {}, 1000.0, 0.0
        self.flows = True  #: tuples come
        self.times = 1  #: every count so many times
        self.silent: set[int] = set()  #: the lines of these tasks stay as they are
        self.ahead: dict[int, float] = {}  #: task -> s by which its node's clock is ahead
        self.instead: dict[int, str] = {}  #: task -> what it writes in place of its line

    def __iter__(self) -> Iterator[int]:
        self._renew()
        return super().__iter__()

    def keys(self):
        self._renew()
        return super().keys()

    def _renew(self) -> None:
        now = self._cluster.clock.time
        self._count += (now - self._at) * RATE * self.flows
        self._at = now
        for task, name in TASKS.items():
            if task not in self.silent:
                count = int(self._count) * self.times
                received = {source: count} if (source := INPUTS[name]) else {}
                fields = {"received": received, "sent": {"s": count}, **self._more.get(task, {})}
                t = now + self.ahead.get(task, 0.0)
                self[task] = self.instead.get(task) or TaskMetrics(component=name, pid=task, t=t, **fields).to_line()
