"""Measurements that a task publishes each second, and the service reads: one line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.coordinates import Coordinate
from leeward.core.view import View

#: Fields of an entry in a sink's results stream, epoch s: its pulse left the source; the sink wrote it.
LEFT_FIELD, WRITTEN_FIELD = "w0", "w"
#: No count of a task's is larger; beyond it a float is no whole number.
_MOST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """The measurements of one task; counters run from the start of its process."""

    component: str
    pid: int
    t: float  #: epoch s
    received: Mapping[str, int] = field(default_factory=dict)  #: data tuples by upstream component
    sent: Mapping[str, int] = field(default_factory=dict)  #: tuples by stream
    dropped: int = 0  #: tuples that it emitted while it was no replica; none was sent
    processed: int = 0
    busy_s: float = 0.0
    sojourns: int = 0  #: tuples whose sojourn time (wait and service) is known
    sojourn_s: float = 0.0  #: of them, added up
    buffered: int = 0  #: tuples that wait in the task
    groups: Mapping[int, int] = field(default_factory=dict)  #: key group -> tuples, by samples (`state/sampling.py`)
    looked_at: int = 0  #: number of those samples
    reads: str = ""  #: a source: the stream of the datastore that it reads
    writes: str = ""  #: a sink: the stream of the datastore that it writes
    resident_bytes: int = 0  #: memory of its process; 0: not known
    state_bytes: int = 0  #: of `self.state`, by the last export
    up_bytes: int = 0  #: of state that went to the DataStore
    up_s: float = 0.0  #: time that these transfers took
    down_bytes: int = 0  #: of state that came from the DataStore
    down_s: float = 0.0
    trip_s: float = 0.0  #: time that the DataStore took for its last small command
    mode: str = ""  #: of the task's protocol: `running`, say
    outside: tuple[str, ...] = ()  #: attributes beside `self.state` that its tuples change
    state_unused: bool = False  #: it has processed tuples, and nothing that it runs uses `self.state`
    ahead_s: float | None = None  #: of its node's clock before the datastore's, s; negative: behind; None: not known
    place: Coordinate | None = None  #: of its node in the network
    trips: Mapping[str, float] = field(default_factory=dict)  #: node -> round trip to it, s, of those measured last
    view: View | None = None  #: a sink's newest result as a picture
    more: Mapping[str, object] = field(default_factory=dict)  #: for people: node, epoch, state, own counters

    def to_line(self) -> str:
        """As JSON text."""
        own = {
            "component": self.component, "pid": self.pid, "t": self.t, "in": dict(self.received),
            "out": dict(self.sent), "dropped": self.dropped, "processed": self.processed,
            "busy_s": round(self.busy_s, 6), "buffered": self.buffered, "groups": dict(self.groups),
            "sojourns": self.sojourns, "sojourn_s": round(self.sojourn_s, 6), "trip_s": round(self.trip_s, 7),
            "up": [self.up_bytes, round(self.up_s, 6)], "down": [self.down_bytes, round(self.down_s, 6)],
            "looked_at": self.looked_at, "state_bytes": self.state_bytes, "resident_bytes": self.resident_bytes,
            "reads": self.reads, "writes": self.writes, "mode": self.mode,
            "outside": self.outside, "state_unused": self.state_unused,
            "ahead_s": None if self.ahead_s is None else round(self.ahead_s, 6),
            "trips": {node: round(seconds, 7) for node, seconds in self.trips.items()},
            "place": [round(figure, 7) for figure in self.place.figures()] if self.place else [],
        }  # fmt: skip
        shown = {"view": self.view.document()} if self.view else {}
        return json.dumps({**self.more, **own, **shown})

    @classmethod
    def from_line(cls, line: str) -> TaskMetrics | None:
        """None for a line that cannot be read, or has a figure below 0 or none; counts that it lacks are 0."""
        try:
            entry: dict[str, Any] = json.loads(line)
            (up_bytes, up_s), (down_bytes, down_s) = entry.get("up", (0, 0.0)), entry.get("down", (0, 0.0))
            return cls(
                component=str(entry["component"]),
                pid=_count(entry["pid"]),
                t=_amount(entry["t"]),
                received=_counts(entry.get("in", {})),
                sent=_counts(entry.get("out", {})),
                dropped=_count(entry.get("dropped", 0)),
                processed=_count(entry.get("processed", 0)),
                busy_s=_amount(entry.get("busy_s", 0.0)),
                sojourns=_count(entry.get("sojourns", 0)),
                sojourn_s=_amount(entry.get("sojourn_s", 0.0)),
                buffered=_count(entry.get("buffered", 0)),
                groups={int(group): count for group, count in _counts(entry.get("groups", {})).items()},
                looked_at=_count(entry.get("looked_at", 0)),
                state_bytes=_count(entry.get("state_bytes", 0)),
                resident_bytes=_count(entry.get("resident_bytes", 0)),
                up_bytes=_count(up_bytes),
                up_s=_amount(up_s),
                down_bytes=_count(down_bytes),
                down_s=_amount(down_s),
                trip_s=_amount(entry.get("trip_s", 0.0)),
                reads=str(entry.get("reads", "")),
                writes=str(entry.get("writes", "")),
                mode=str(entry.get("mode", "")),
                outside=tuple(map(str, entry.get("outside", ()))),
                state_unused=bool(entry.get("state_unused", False)),
                ahead_s=_seconds(entry.get("ahead_s")),
                place=Coordinate.of(entry.get("place")),
                trips={str(node): _amount(seconds) for node, seconds in entry.get("trips", {}).items()},
                view=View.of(entry.get("view")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None


def _counts(found: dict[str, Any]) -> dict[str, int]:
    """Name -> number of things. Raises ValueError as `_count`, AttributeError for what is no table.

    Of eight thousand tasks a service reads some ten thousand counts each second, which nearly always are plain ones.
    """
    values = found.values()
    if not found or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= _MOST):
        return found
    return {name: _count(value) for name, value in found.items()}


def _count(value: object) -> int:
    """Raises ValueError for what is no number of things."""
    found = int(_amount(value))
    if found > _MOST:
        raise ValueError(f"{value!r} is too large")
    return found


def _seconds(value: object) -> float | None:
    """Raises ValueError for what is no difference of two clocks."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no time")
    return float(value)


def _amount(value: object) -> float:
    """Raises ValueError for what is no amount."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{value!r} is no amount")
    return float(value)
