"""The learnt record: a document of all that a leader has learnt, for the next leader and for commands. Pure.

The leader writes it at `<root>/topologies/<topology id>/learnt` (`keeping.py`). It holds the sums and samples behind
the learnt values, not the values: so a leader that takes over learns on as if it had seen all, and old samples count
less with the time that has passed since. The document is bounded: that of a large cluster has fewer transfers of each
node.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from leeward.core.errors import ProtocolError
from leeward.core.versions import refuse_newer

LEARNT_VERSION = 1
#: Bytes of a document, at most: a znode holds 1 MB.
LARGEST = 128 * 1024
#: Numbers of transfers in it, at most: those of a thousand nodes are one of each kind.
MOST_TRANSFERS = 4000

#: Numbers of a curve: samples, lowest and highest utilisation, time of the newest sample, six sums (`curves.py`).
OF_CURVE = 10
#: Numbers of a stream: tuples in, out, squares, windows, time of the newest window (`selectivities.py`).
OF_STREAM = 5
#: Numbers of the rest: samples, sum, squares, time of the newest sample (`rests.py`).
OF_REST = 4
Numbers = tuple[float, ...]
Stream = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTimes:
    """The newest transfers between a node and the DataStore, oldest first."""

    ups: Numbers = ()  #: bytes/s of state that was written
    downs: Numbers = ()  #: bytes/s of state that was read
    trips: Numbers = ()  #: round trips of a small command, s

    def newest(self, count: int) -> StoreTimes:
        """With so many values of each at most; one alone is the median of all."""
        return StoreTimes(**{name: _newest(getattr(self, name), count) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntRecord:
    """See the module. Times are seconds since 1970, by the clock of the leader that wrote it."""

    topology_id: str  #: Storm's id of the topology that it is about
    at: float  #: when it was written
    epoch: int = 0  #: of the newest reconfiguration that it was learnt from
    service: Mapping[str, float] = field(default_factory=dict)  #: component -> tuples/s of one busy replica
    curves: Mapping[str, Numbers] = field(default_factory=dict)  #: component -> sums of its response times
    streams: Mapping[Stream, Numbers] = field(default_factory=dict)  #: (from, to) -> sums of its selectivity
    stores: Mapping[str, StoreTimes] = field(default_factory=dict)  #: node -> its transfers to and from the DataStore
    rest: Numbers = ()  #: sums of the time from source to sink that is not modelled; empty: none was compared
    handovers: tuple[tuple[float, float], ...] = ()  #: (bytes moved, longest wait of a tuple in s), oldest first
    restarts: tuple[tuple[int, float], ...] = ()  #: (replicas started on one node, pause in s), oldest first
    version: int = LEARNT_VERSION  #: of this form

    def to_json(self) -> str | None:
        """Compact JSON of at most `LARGEST` bytes; None if it would be larger."""
        text = json.dumps(self._document(), separators=(",", ":"), allow_nan=False)
        return text if len(text.encode()) <= LARGEST else None

    def _few_stores(self) -> Mapping[str, StoreTimes]:
        """As many transfers of each node as there is room for."""
        count = MOST_TRANSFERS // (len(StoreTimes.__slots__) * max(1, len(self.stores)))
        return {node: one.newest(count) for node, one in sorted(self.stores.items())} if count else {}

    def _document(self) -> dict[str, Any]:
        return {
            "version": self.version, "topology_id": self.topology_id, "at": round(self.at, 3), "epoch": self.epoch,
            "service": {name: _short(rate, 6) for name, rate in sorted(self.service.items())},
            "curves": {name: _shorts(numbers) for name, numbers in sorted(self.curves.items())},
            "streams": [[*stream, *_shorts(numbers)] for stream, numbers in sorted(self.streams.items())],
            "stores": {
                node: {name: _shorts(getattr(one, name), 4) for name in one.__slots__}
                for node, one in self._few_stores().items()
            },
            "rest": _shorts(self.rest),
            "handovers": [_shorts(one) for one in self.handovers],
            "restarts": [_shorts(one) for one in self.restarts],
        }  # fmt: skip

    @staticmethod
    def from_json(text: str) -> LearntRecord:
        """Raises ProtocolError if the text is none, of a newer version, or has figures that cannot be."""
        try:
            document = json.loads(text)
            refuse_newer("its", document["version"], LEARNT_VERSION, writer="service")
            return LearntRecord(
                topology_id=str(document["topology_id"]), at=_amount(document["at"]), epoch=int(document["epoch"]),
                service={name: _positive(rate) for name, rate in document["service"].items()},
                curves={name: _curve(numbers) for name, numbers in document["curves"].items()},
                streams={(source, target): _numbers(more, OF_STREAM) for source, target, *more in document["streams"]},
                stores={node: _store(one) for node, one in document["stores"].items()},
                rest=_rest(document["rest"]),
                handovers=tuple((_amount(size), _amount(wait)) for size, wait in document["handovers"]),
                restarts=tuple((int(_amount(started)), _amount(pause)) for started, pause in document["restarts"]),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ProtocolError(f"it cannot be read: {error!r}.", remedy="Only the service writes it.") from None


def read_record(text: str | None, topology_id: str) -> tuple[LearntRecord | None, str]:
    """The record of this topology, or None and why there is none that counts."""
    if text is None:
        return None, "no service has recorded anything of this topology yet"
    try:
        record = LearntRecord.from_json(text)
    except ProtocolError as error:
        return None, f"the record of what was learnt is left out: {error}"
    if record.topology_id != topology_id:
        return None, f"the record of what was learnt is left out: it is of {record.topology_id}, not {topology_id}"
    return record, ""


def _newest(values: Numbers, count: int) -> Numbers:
    return (median(values),) if count == 1 and values else values[-count:]


def _shorts(values: Iterable[float], digits: int = 9) -> list[float]:
    return [_short(value, digits) for value in values]


def _short(value: float, digits: int) -> float:
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def _curve(value: object) -> Numbers:
    """Sums that samples can have: of utilisations between 0 and 1, by the inequality of Cauchy and Schwarz."""
    numbers = _numbers(value, OF_CURVE)
    samples, low, high, _, idle, both, busy, of_idle, of_busy, squares = numbers
    near = 1.0 + 1e-6  # sums are rounded
    within = low <= high <= 1.0 and math.isclose(idle + 2 * both + busy, samples, rel_tol=1e-6)
    pairs = (both, idle, busy), (of_idle, idle, squares), (of_busy, busy, squares)
    if not samples or not within or any(product**2 > a * b * near for product, a, b in pairs):
        raise ValueError(f"{value!r} are no sums of a curve")
    return numbers


def _rest(value: object) -> Numbers:
    """Samples, their sum, which may be negative, squares, time of the newest one; or none."""
    if value == []:
        return ()
    if not isinstance(value, list) or len(value) != OF_REST or isinstance(value[1], bool):
        raise ValueError(f"{value!r} is no rest")
    samples, squares, at = _positive(value[0]), _amount(value[2]), _amount(value[3])
    _amount(abs(value[1]))
    if value[1] ** 2 > samples * squares * (1.0 + 1e-6):
        raise ValueError(f"{value!r} are no sums of a rest")
    return samples, float(value[1]), squares, at


def _store(value: Mapping[str, Any]) -> StoreTimes:
    return StoreTimes(**{name: _numbers(value[name]) for name in StoreTimes.__slots__})


def _numbers(value: object, count: int | None = None) -> Numbers:
    """So many amounts, or any number of them. Raises ValueError."""
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise ValueError(f"{value!r} are not {count} numbers")
    return tuple(map(_amount, value))


def _positive(value: object) -> float:
    found = _amount(value)
    if not found:
        raise ValueError(f"{value!r} is not above 0")
    return found


def _amount(value: object) -> float:
    """Raises ValueError for what is no finite number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{value!r} is no amount")
    return float(value)
