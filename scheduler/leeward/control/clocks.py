"""Clocks of nodes that are off, and response times that they do not spoil. Pure.

A result carries the times at which it left its source and was written, by the clocks of two nodes. Each task tells how
far its node's clock is ahead of the datastore's, so both are brought to that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from leeward.control.ports import StreamFacts
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot

#: A clock that is off by more is told of; s.
OFF_S = 1.0
#: Where the clocks of several tasks at one end differ by more, nobody knows whose time a result has; s.
APART_S = 0.05
REMEDY = "Let a time service (NTP) set it."


def response_s(
    streams: StreamFacts, now: float, samples: Mapping[int, TaskMetrics], owners: Collection[int],
    *, newest_s: float = 10.0,
) -> float | None:  # fmt: skip
    """Mean time from source to sink of the results of the last seconds; None if there are none.

    `owners`: tasks that work; where a task does not tell of its clock, that counts as right. Results of the time to
    come are from before a clock was set.
    """
    working = [samples[task] for task in sorted(samples.keys() & set(owners))] or list(samples.values())
    before = _ahead(sample for sample in working if sample.reads)
    after = _ahead(sample for sample in working if sample.writes)
    if before is None or after is None:
        return None
    at = now if streams.now is None else streams.now
    pairs = [(left - before, written - after) for left, written in streams.results]
    recent = [written - left for left, written in pairs if -OFF_S <= at - written <= newest_s]
    return sum(recent) / len(recent) if recent else None


def _ahead(samples: Iterable[TaskMetrics]) -> float | None:
    """Of the clocks at one end; None if they differ."""
    found = sorted(sample.ahead_s or 0.0 for sample in samples) or [0.0]
    return None if found[-1] - found[0] > APART_S else found[len(found) // 2]


def clocks_off(samples: Mapping[int, TaskMetrics], slots: Mapping[int, Slot]) -> dict[str, float]:
    """Node -> how far its clock is ahead, s, to a tenth, of those that are off by more than `OFF_S`."""
    found: dict[str, float] = {}
    for task in sorted(samples.keys() & slots.keys()):
        ahead = samples[task].ahead_s
        if ahead is not None and abs(ahead) > OFF_S:
            found.setdefault(slots[task].node, round(ahead, 1))
    return found


def told(off: Mapping[str, float]) -> str:
    """A sentence for people; empty if no clock is off."""
    texts = [f"{node} by {abs(s):g} s ({'ahead' if s > 0 else 'behind'})" for node, s in sorted(off.items())]
    return f"clocks are off the datastore's: {', '.join(texts)}" if texts else ""
