"""Measurements that cannot be: they are told, and the rates stay as they were. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter, ge

from leeward.core.metrics import TaskMetrics

#: A task's clock and its busy time are read one after the other, and a tuple counts when it is over; s.
SLACK_S = 60.0
#: A total of so many tuples that becomes more than so many times itself from look to look is a jump. A smaller one may
#: belong to a process that has just begun.
LEAST_JUMP, JUMP = 200, 5
#: Figures that never fall while a process lives.
_TOTALS = ("processed", "busy_s", "looked_at", "dropped", "sojourns", "sojourn_s", "up_bytes", "down_bytes")
_totals = attrgetter(*_TOTALS)


def implausible(lines: Mapping[int, str], samples: Mapping[int, TaskMetrics], before: Mapping[int, TaskMetrics]) -> str:
    """Why these measurements are not used; empty if they may be. `samples`: those lines that could be read; `before`:
    those of the look before.

    Counters of a process never fall, and it is not busy for longer than it takes. One that is many times as much as a
    look before may be load that begins. It is not used either, so that rates begin anew behind it, whether it stays or
    falls again.
    """
    for task in sorted(lines):
        if task not in samples:
            return f"task {task} tells figures that cannot be read, are below 0, or are no numbers"
        if (old := before.get(task)) is not None and (why := _cannot_follow(old, samples[task])):
            return f"task {task} of {samples[task].component}: {why}"
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
    for what, count, was in (
        ("processed", new.processed, old.processed),
        ("received", sum(new.received.values()), sum(old.received.values())),
        ("sent", sum(new.sent.values()), sum(old.sent.values())),
    ):
        if was >= LEAST_JUMP and count > JUMP * was:
            return f"{what} jumped from {was} to {count}"
    busy, passed = new.busy_s - old.busy_s, new.t - old.t
    if passed > 0 and busy > passed + SLACK_S:
        return f"it was busy for {busy:.1f} s of {passed:.1f} s"
    return ""
