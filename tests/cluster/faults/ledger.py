"""Judges what the sink of the faulty topology wrote, write by write, while it runs. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.cluster.faulty.src.faulty_numbers import (
    SOURCES,
    count_id,
    expected,
    expected_ids,
    join_id,
    key_of,
    number_of,
    turn_of,
)

#: A result that is this late is overdue: the stream has not caught up.
LATE_MS = 1000
#: Two starts that differ by less are the same, as due times are whole milliseconds.
ROUNDED_MS = 2
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Write:
    """One write of the sink."""

    at_ms: int  #: by the clock of Redis
    id: str
    result: str
    due_ms: int  #: when its sources should have sent it


@dataclass(slots=True)
class Window:
    """What was seen from one fault to the next."""

    start_ms: int
    new: int = 0  #: results written for the first time
    repeated: int = 0  #: writes of results that were there
    latest_ms: int = 0  #: the longest that a new result came after it was due
    latest_at_ms: int = 0  #: when that one was written
    silence_ms: int = 0  #: the longest time without a new result
    caught_up_ms: int = 0  #: from the start to the last new result that was overdue


@dataclass(slots=True)
class Ledger:
    """All results; `window` counts from the last `open` on."""

    rate: float  #: of each source, tuples/s
    writes: int = 0
    repeated: int = 0
    wrong: int = 0  #: writes that contradict what must come out
    odd: list[str] = field(default_factory=list)  #: the first of them
    lost: set[str] = field(default_factory=set)  #: given up waiting for
    window: Window = field(default_factory=lambda: Window(0))
    _results: dict[str, str] = field(default_factory=dict)
    _start_ms: dict[str, float] = field(default_factory=dict)  # by source: when number 0 was due
    _due: dict[str, int] = field(default_factory=dict)  # by source: numbers that the schedule has come to
    _outstanding: dict[str, int] = field(default_factory=dict)  # id -> when it was due
    _lost_keys: set[int] = field(default_factory=set)
    last_new_ms: int = 0  #: when the newest result came

    def open(self, now_ms: int) -> None:
        """Begin a window."""
        self.window = Window(now_ms)

    def add(self, write: Write) -> None:
        """Take in the next write."""
        self.writes += 1
        right = expected(write.id)
        if right != write.result:
            self.wrong += 1
            if len(self.odd) < _SHOWN:
                self.odd.append(f"{write.id} = {write.result!r}, must be {right!r}")
        if write.id in self._results:
            self._results[write.id] = write.result
            self.repeated += 1
            self.window.repeated += write.at_ms >= self.window.start_ms
            return
        self._results[write.id] = write.result
        self._outstanding.pop(write.id, None)
        self._learn_schedule(write)
        self._measure(write)

    def overdue(self, now_ms: float) -> list[str]:
        """Results that should be there and are not, those given up excepted; the oldest first."""
        self._advance(now_ms)
        return [name for name, due in self._outstanding.items() if due < now_ms - LATE_MS]

    def give_up(self, now_ms: float) -> list[str]:
        """Expect no more what is overdue, nor anything else of the same keys, which would wait for it; the ids."""
        missing = self.overdue(now_ms)
        self.lost |= set(missing)
        self._lost_keys |= {key_of_id(name) for name in missing}
        self._outstanding = {
            name: due for name, due in self._outstanding.items() if key_of_id(name) not in self._lost_keys
        }
        return missing

    @property
    def started(self) -> bool:
        """Each source and the join have results."""
        return len(self._start_ms) == len(SOURCES) and any(name.startswith("join:") for name in self._results)

    def numbers_due(self, now_ms: float) -> int:
        """The number that the faster source has come to by the schedule."""
        return max(int((now_ms - start) * self.rate / 1000) for start in self._start_ms.values())

    def missing(self, limit: int) -> set[str]:
        """What of 1..limit of each source has not come."""
        return expected_ids(dict.fromkeys(SOURCES, limit)) - self._results.keys()

    def _learn_schedule(self, write: Write) -> None:
        """When each source began, by its due times; a reset to before its first checkpoint lets it begin anew."""
        kind, _, number = write.id.partition(":")
        if kind not in SOURCES:
            return
        start_ms = write.due_ms - int(number) * 1000 / self.rate
        if kind not in self._start_ms:
            self._start_ms[kind] = start_ms
        elif start_ms > self._start_ms[kind] + ROUNDED_MS:
            self._start_ms[kind] = start_ms
            self._due.clear()
            self._outstanding.clear()

    def _measure(self, write: Write) -> None:
        window, before = self.window, self.last_new_ms
        self.last_new_ms = write.at_ms
        if write.at_ms < window.start_ms or not before:
            return
        window.new += 1
        window.silence_ms = max(window.silence_ms, write.at_ms - before)
        late_ms = write.at_ms - write.due_ms
        if late_ms > window.latest_ms:
            window.latest_ms, window.latest_at_ms = late_ms, write.at_ms
        if late_ms >= LATE_MS:
            window.caught_up_ms = max(window.caught_up_ms, write.at_ms - window.start_ms)

    def _advance(self, now_ms: float) -> None:
        """The schedule comes to `now_ms`."""
        if len(self._start_ms) < len(SOURCES):
            return
        for source, start_ms in self._start_ms.items():
            for n in range(self._due.get(source, 0) + 1, int((now_ms - start_ms) * self.rate / 1000) + 1):
                self._due[source] = n
                due_ms = int(start_ms + n * 1000 / self.rate)
                self._expect(count_id(source, n), key_of(source, n), due_ms)
                key, turn = key_of(source, n), turn_of(n)
                (other,) = set(SOURCES) - {source}
                counterpart = number_of(other, key, turn)
                if counterpart <= self._due.get(other, 0):
                    other_ms = int(self._start_ms[other] + counterpart * 1000 / self.rate)
                    self._expect(join_id(key, turn), key, max(due_ms, other_ms))

    def _expect(self, name: str, key: int, due_ms: int) -> None:
        if name not in self._results and key not in self._lost_keys:
            self._outstanding[name] = due_ms


def key_of_id(name: str) -> int:
    """The key that a result belongs to."""
    kind, _, rest = name.partition(":")
    return int(rest.partition(":")[0]) if kind == "join" else key_of(kind, int(rest))


def shown(names: Iterable[str]) -> str:
    """Some of them, for people."""
    names = sorted(names)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
