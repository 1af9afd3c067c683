"""The lines that tasks publish, read by a compiled decoder: eight thousand tasks write eight thousand a second.

A line that is not as `TaskMetrics.to_line` writes it goes to `TaskMetrics.from_line`, which alone says what is
tolerated. Workers have no msgspec, so they write and read by that module alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from leeward.core.coordinates import Coordinate
from leeward.core.metrics import MOST, TaskMetrics
from leeward.core.view import View

_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class _Line(msgspec.Struct, gc=False):
    """The fields of `to_line`, with its defaults for those that a line may lack."""

    component: str
    pid: _Count
    t: _Amount
    received: dict[str, _Count] = msgspec.field(name="in", default_factory=dict)
    sent: dict[str, _Count] = msgspec.field(name="out", default_factory=dict)
    dropped: _Count = 0
    processed: _Count = 0
    busy_s: _Amount = 0.0
    sojourns: _Count = 0
    sojourn_s: _Amount = 0.0
    buffered: _Count = 0
    groups: dict[int, _Count] = msgspec.field(default_factory=dict)
    looked_at: _Count = 0
    reads: str = ""
    writes: str = ""
    resident_bytes: _Count = 0
    state_bytes: _Count = 0
    up: tuple[_Count, _Amount] = (0, 0.0)
    down: tuple[_Count, _Amount] = (0, 0.0)
    trip_s: _Amount = 0.0
    mode: str = ""
    outside: tuple[str, ...] = ()
    state_unused: bool = False
    ahead_s: float | None = None
    place: Any = None
    trips: dict[str, _Amount] = msgspec.field(default_factory=dict)
    view: Any = None


_decoder = msgspec.json.Decoder(_Line)


def read_line(line: str) -> TaskMetrics | None:
    """As `TaskMetrics.from_line`."""
    try:
        one = _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return TaskMetrics.from_line(line)
    return TaskMetrics(
        component=one.component, pid=one.pid, t=one.t, received=one.received, sent=one.sent, dropped=one.dropped,
        processed=one.processed, busy_s=one.busy_s, sojourns=one.sojourns, sojourn_s=one.sojourn_s,
        buffered=one.buffered, groups=one.groups, looked_at=one.looked_at, reads=one.reads, writes=one.writes,
        resident_bytes=one.resident_bytes, state_bytes=one.state_bytes, up_bytes=one.up[0], up_s=one.up[1],
        down_bytes=one.down[0], down_s=one.down[1], trip_s=one.trip_s, mode=one.mode, outside=one.outside,
        state_unused=one.state_unused, ahead_s=one.ahead_s, place=Coordinate.of(one.place), trips=one.trips,
        view=View.of(one.view),
    )  # fmt: skip


def read_samples(lines: Mapping[int, str]) -> dict[int, TaskMetrics]:
    """Task -> its measurements; lines that cannot be read are left out."""
    read = {task: read_line(line) for task, line in lines.items()}
    return {task: sample for task, sample in read.items() if sample is not None}
