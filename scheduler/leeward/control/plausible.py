"""Measurements that cannot be: they are told, and the rates stay as they were. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter, ge
from typing import NamedTuple

from leeward.core.metrics import TaskMetrics

#: A task's clock and its busy time are read one after the other, and a tuple counts when it is over; s.
SLACK_S = 60.0
#: A total that becomes more than so many times itself from look to look, and grows so many times faster than before, is
#: a jump, unless it was less than so many tuples a look earlier: then tuples have just begun to come.
JUMP, LEAST_JUMP = 5, 200
#: Figures that never fall while a process lives.
_TOTALS = ("processed", "busy_s", "looked_at", "dropped", "sojourns", "sojourn_s", "up_bytes", "down_bytes")
_totals = attrgetter(*_TOTALS)


class Totals(NamedTuple):
    """Of a task, at one look."""

    pid: int
    t: float
    processed: int
    received: int
    sent: int


def implausible(
    lines: Mapping[int, str], samples: Mapping[int, TaskMetrics], before: Mapping[int, TaskMetrics],
    earlier: Mapping[int, Totals],
) -> str:  # fmt: skip
    """Why these measurements are not used; empty if they may be. `samples`: those lines that could be read; `before`:
    those of the look before; `earlier`: of the one before that.

    Counters of a process never fall, and it is not busy for longer than it takes. One that is many times as much as a
    look before may be load that begins. It is not used either, so that rates begin anew behind it, whether it stays or
    falls again.
    """
    for task in sorted(lines):
        if task not in samples:
            return f"task {task} tells figures that cannot be read, are below 0, or are no numbers"
        old, new, oldest = before.get(task), samples[task], earlier.get(task)
        if old is None:
            continue
        why = _cannot_follow(old, new) or (_jump(oldest, _of(old), _of(new)) if oldest else "")
        if why:
            return f"task {task} of {new.component}: {why}"
    return ""


def _cannot_follow(old: TaskMetrics, new: TaskMetrics) -> str:
    if new.pid != old.pid or new.component != old.component:
        return ""
    totals, before = _totals(new), _totals(old)
    if not all(map(ge, totals, before)):
        name, was, now = next(one for one in zip(_TOTALS, before, totals, strict=True) if one[2] < one[1])
        return f"{name} fell from {was:g} to {now:g}"
    for what, counts, were in (("received", new.received, old.received), ("sent", new.sent, old.sent)):
        if fell := [name for name, count in were.items() if counts.get(name, 0) < count]:
            name = min(fell)
            return f"{what} {name} fell from {were[name]} to {counts.get(name, 0)}"
    busy, passed = new.busy_s - old.busy_s, new.t - old.t
    if passed > 0 and busy > passed + SLACK_S:
        return f"it was busy for {busy:.1f} s of {passed:.1f} s"
    return ""


def totals_of(samples: Mapping[int, TaskMetrics]) -> dict[int, Totals]:
    """By task; thousands of whole samples would be kept for nothing."""
    return {task: _of(sample) for task, sample in samples.items()}


def _jump(oldest: Totals, old: Totals, new: Totals) -> str:
    """A total is many times as much as a look before, and did not come that fast before."""
    passed, before = new.t - old.t, old.t - oldest.t
    if not oldest.pid == old.pid == new.pid or min(passed, before) <= 0:
        return ""
    for what, first, was, count in zip(("processed", "received", "sent"), oldest[2:], old[2:], new[2:], strict=True):
        faster = (count - was) / passed > JUMP * (was - first) / before
        if first >= LEAST_JUMP and count > JUMP * was and faster:
            return f"{what} jumped from {was} to {count}"
    return ""


def _of(one: TaskMetrics) -> Totals:
    return Totals(one.pid, one.t, one.processed, sum(one.received.values()), sum(one.sent.values()))
