"""The counters of a task at one moment, packed: a window has a dozen of each task, and a service thousands of tasks.

Figures are floats: no count is so large that a float would not be exact (`core/metrics.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from leeward.core.metrics import TaskMetrics

MARKER_STREAM = "marker"
#: Figures before those by upstream component and by key group: t, pid, emitted, processed, busy_s, looked_at.
_FIRST = 6


def emitted(sample: TaskMetrics) -> int:
    """Tuples that the task sent, markers left out."""
    return sum(count for stream, count in sample.sent.items() if stream != MARKER_STREAM)


class Counted:
    """The counters of `TaskMetrics` that rates are made of, under the same names."""

    __slots__ = ("_figures", "_groups", "_received")

    def __init__(self, sample: TaskMetrics, before: Counted | None = None) -> None:
        """`before`: of the same task; names that are the same in both are kept once."""
        received, groups = tuple(sample.received), tuple(sample.groups)
        if before is not None:
            received = before._received if before._received == received else received
            groups = before._groups if before._groups == groups else groups
        self._received: tuple[str, ...] = received
        self._groups: tuple[int, ...] = groups
        self._figures = array(
            "d",
            (
                sample.t, sample.pid, emitted(sample), sample.processed, sample.busy_s, sample.looked_at,
                *sample.received.values(), *sample.groups.values(),
            ),
        )  # fmt: skip

    @property
    def t(self) -> float:
        """Epoch s."""
        return self._figures[0]

    @property
    def pid(self) -> float:
        """Of the task's process."""
        return self._figures[1]

    @property
    def emitted(self) -> float:
        """Tuples, markers left out."""
        return self._figures[2]

    @property
    def processed(self) -> float:
        """Tuples."""
        return self._figures[3]

    @property
    def busy_s(self) -> float:
        """Time with tuples."""
        return self._figures[4]

    @property
    def looked_at(self) -> float:
        """Tuples of which the key group was noted."""
        return self._figures[5]

    @property
    def received(self) -> dict[str, float]:
        """Upstream component -> tuples."""
        return dict(zip(self._received, self._figures[_FIRST : _FIRST + len(self._received)], strict=True))

    @property
    def groups(self) -> dict[int, float]:
        """Key group -> tuples."""
        return dict(zip(self._groups, self._figures[_FIRST + len(self._received) :], strict=True))


def packed(samples: Mapping[int, TaskMetrics], before: Mapping[int, Counted] | None = None) -> dict[int, Counted]:
    """Task -> its counters. `before`: those of the same tasks a moment ago."""
    known = before or {}
    return {task: Counted(sample, known.get(task)) for task, sample in samples.items()}
