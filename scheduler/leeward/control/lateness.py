"""Which tasks tell no measurements any more, and whose clock has stepped.

Pure; the service's clock alone counts, as nodes' clocks may be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from leeward.core.metrics import TaskMetrics

#: A task writes a line each second. One that stands still for longer is late; s.
LATE_S = 5.0


class Lateness:
    """See the module. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[int, float]] = {}  # task -> process and time stamp of its newest line
        self._changed: dict[int, float] = {}  # task -> when that line was first seen
        self._began: float | None = None  # when the first line of any task was seen

    def observe(self, samples: Mapping[int, TaskMetrics], now: float) -> None:
        """Take in the newest measurements."""
        if samples and self._began is None:
            self._began = now
        for task, sample in samples.items():
            if self._lines.get(task) != (sample.pid, sample.t):
                self._lines[task], self._changed[task] = (sample.pid, sample.t), now

    def stepped(self, samples: Mapping[int, TaskMetrics], now: float) -> dict[int, float]:
        """Tasks whose clock has stepped since the line before -> by how much, s; ask before `observe`.

        Counts are divided by the time between a task's own time stamps, so a step makes its rate wrong.  A clock that
        goes on by less than the time that passed is none: the task may have told nothing meanwhile.
        """
        found: dict[int, float] = {}
        for task, sample in sorted(samples.items()):
            pid, t = self._lines.get(task, (sample.pid, sample.t))
            if pid != sample.pid:
                continue
            by_s = sample.t - t - (now - self._changed.get(task, now))
            if by_s > LATE_S or sample.t < t - LATE_S:
                found[task] = by_s
        return found

    def forget(self) -> None:
        """Processes were stopped: each has all its time again."""
        self._lines.clear()
        self._changed.clear()
        self._began = None

    def late(self, tasks: Collection[int], now: float) -> dict[int, float]:
        """Those of these tasks that are late -> for how long nothing came from them, s; none before the first line."""
        if self._began is None:
            return {}
        waited = {task: now - self._changed.get(task, self._began) for task in sorted(tasks)}
        return {task: seconds for task, seconds in waited.items() if seconds > LATE_S}


def told_steps(stepped: Mapping[int, float], components: Mapping[int, str]) -> str:
    """A sentence for people; empty if no clock has stepped."""
    return "; ".join(
        f"the clock of task {task} of {components.get(task, '?')} stepped by {seconds:+.0f} s"
        for task, seconds in sorted(stepped.items())
    )


def told(late: Mapping[int, float], components: Mapping[int, str]) -> str:
    """A sentence for people; empty if no task is late."""
    return "; ".join(
        f"task {task} of {components.get(task, '?')} tells nothing since {seconds:.0f} s"
        for task, seconds in sorted(late.items())
    )
