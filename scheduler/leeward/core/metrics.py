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
MOST = 2**53
#: Numbers of things, and times, that a line may lack.
_COUNTS = ("dropped", "processed", "sojourns", "buffered", "looked_at", "state_bytes", "resident_bytes")
_TIMES = ("busy_s", "sojourn_s", "trip_s")


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
        return json.dumps(self.document())

    def document(self) -> dict[str, object]:
        """The line before it is text."""
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
        return {**self.more, **own, **shown}

    @classmethod
    def from_line(cls, line: str) -> TaskMetrics | None:
        """None for a line that cannot be read, or has a figure below 0 or none; counts that it lacks are 0."""
        try:
            entry: dict[str, Any] = json.loads(line)
            (up_bytes, up_s), (down_bytes, down_s) = entry.get("up", (0, 0.0)), entry.get("down", (0, 0.0))
            counts = (entry["pid"], *(entry.get(name, 0) for name in _COUNTS), up_bytes, down_bytes)
            pid, dropped, processed, sojourns, buffered, looked_at, *sizes = _whole(counts)
            state_bytes, resident_bytes, up_bytes, down_bytes = sizes
            amounts = (entry["t"], *(entry.get(name, 0.0) for name in _TIMES), up_s, down_s)
            t, busy_s, sojourn_s, trip_s, up_s, down_s = _amounts(amounts)
            return cls(
                component=str(entry["component"]), pid=pid, t=t,
                received=_counts(entry.get("in", {})), sent=_counts(entry.get("out", {})),
                dropped=dropped, processed=processed, busy_s=busy_s, sojourns=sojourns, sojourn_s=sojourn_s,
                buffered=buffered,
                groups={int(group): count for group, count in _counts(entry.get("groups", {})).items()},
                looked_at=looked_at, state_bytes=state_bytes, resident_bytes=resident_bytes,
                up_bytes=up_bytes, up_s=up_s, down_bytes=down_bytes, down_s=down_s, trip_s=trip_s,
                reads=str(entry.get("reads", "")),
                writes=str(entry.get("writes", "")),
                mode=str(entry.get("mode", "")),
                outside=tuple(map(str, entry.get("outside", ()))),
                state_unused=bool(entry.get("state_unused", False)),
                ahead_s=_seconds(entry.get("ahead_s")),
                place=Coordinate.of(entry.get("place")),
                trips={str(node): _amount(seconds) for node, seconds in entry.get("trips", {}).items()},
                view=View.of(entry.get("view")),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _counts(found: dict[str, Any]) -> dict[str, int]:
    """Name -> number of things. Raises ValueError as `_count`, AttributeError for what is no table.

    Of eight thousand tasks a service reads some ten thousand counts each second, which nearly always are plain ones.
    """
    values = found.values()
    if not found or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MOST):
        return found
    return {name: _count(value) for name, value in found.items()}


def _whole(found: tuple[Any, ...]) -> tuple[int, ...]:
    """Numbers of things. Raises ValueError as `_count`. Nearly always all are plain ones, and are looked at at once."""
    if set(map(type, found)) == {int} and min(found) >= 0 and max(found) <= MOST:
        return found
    return tuple(map(_count, found))


def _amounts(found: tuple[Any, ...]) -> tuple[float, ...]:
    """Raises ValueError as `_amount`, and looks at all at once likewise; a sum that is finite has no NaN in it."""
    if set(map(type, found)) <= {int, float} and math.isfinite(sum(found)) and min(found) >= 0:
        return tuple(map(float, found))
    return tuple(map(_amount, found))


def _count(value: object) -> int:
    """Raises ValueError for what is no number of things."""
    found = int(_amount(value))
    if found > MOST:
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
