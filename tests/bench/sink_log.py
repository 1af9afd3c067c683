"""What a counting sink's log says about an event: silence, loss, doubling, lost state. Pure.

The source of tests/cluster/counting sends 1, 2, 3, ...; the count adds how many numbers of the key it has seen. So
whatever goes wrong shows in the log, in the order in which the sink wrote it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: numbers that arrive within this time before an event may still have companions on the way. # seconds
IN_FLIGHT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the sink."""

    key: int
    n: int  #: the number
    count: int  #: how many numbers of this key the count had seen, this one included
    arrived_s: float  #: at the sink, wall-clock seconds
    delay_s: float = 0.0  #: from the source to the sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An event and the time around it, wall-clock seconds."""

    began_s: float
    ended_s: float  #: the stream had been steady again for a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What one event did to the stream."""

    silence_s: float  #: largest time between two arrivals in the window
    lost: int  #: numbers that never arrived
    doubled: int  #: arrivals of a number that had arrived before
    keys_lost: int  #: keys whose count went back
    forgotten: int  #: numbers that were counted once and are in no count any more
    out_of_order: int  #: arrivals of a number lower than one of its key that arrived before, doubled ones aside

    @property
    def exact(self) -> bool:
        """Nothing lost, doubled, forgotten or out of order."""
        return not (self.lost or self.doubled or self.keys_lost or self.out_of_order)


def parse(lines: Iterable[bytes | str]) -> list[Row]:
    """Lines `key n count last task sent_ms arrived_ms`."""
    rows = []
    for line in lines:
        key, n, count, _last, _task, sent_ms, arrived_ms = map(int, line.split())
        delay_s = (arrived_ms - sent_ms) / 1000
        rows.append(Row(key=key, n=n, count=count, arrived_s=arrived_ms / 1000, delay_s=delay_s))
    return rows


def arrival_times(lines: Iterable[bytes]) -> list[float]:
    """When these lines arrived; as `parse`, for who must not be in the way of what is measured."""
    return [int(line[line.rindex(b" ") :]) / 1000 for line in lines]


def largest_gap(arrived_s: Iterable[float], window: Window) -> float:
    """Seconds between two arrivals, at most, where the pause overlaps the window; its end counts as an arrival."""
    times = sorted(at for at in arrived_s if at <= window.ended_s)
    times = [*times[max(0, bisect_right(times, window.began_s) - 1) :], window.ended_s]
    return max((after - earlier for earlier, after in pairwise(times)), default=0.0)


def assess(rows: Sequence[Row], windows: Sequence[Window]) -> list[Damage]:
    """The damage of each event. `windows` in order, apart from each other; `rows` go on for a while after the last.

    Each number is charged to the event before whose successor it was sent, so nothing is charged twice.
    """
    starts = [_newest(rows, window.began_s - IN_FLIGHT_S) for window in windows]
    ends = [*starts[1:], _newest(rows, windows[-1].ended_s)] if windows else []
    arrived = Counter(row.n for row in rows)
    gone_back, disordered = _gone_back(rows), _out_of_order(rows)
    result = []
    for window, first, last in zip(windows, starts, ends, strict=True):
        numbers = range(first + 1, last + 1)
        result.append(
            Damage(
                silence_s=round(largest_gap((row.arrived_s for row in rows), window), 3),
                lost=sum(arrived[n] == 0 for n in numbers),
                doubled=sum(max(0, arrived[n] - 1) for n in numbers),
                keys_lost=len({key for key, n, _ in gone_back if n in numbers}),
                forgotten=sum(missing for _, n, missing in gone_back if n in numbers),
                out_of_order=sum(n in numbers for n in disordered),
            )
        )
    return result


def _newest(rows: Sequence[Row], until_s: float) -> int:
    return max((row.n for row in rows if row.arrived_s <= until_s), default=0)


def _gone_back(rows: Sequence[Row]) -> list[tuple[int, int, int]]:
    """(key, number, by how much) wherever the count of a key is not above that of the number before."""
    first: dict[int, Row] = {}
    for row in rows:
        first.setdefault(row.n, row)
    counts: dict[int, int] = {}
    found = []
    for n in sorted(first):
        row = first[n]
        missing = counts.get(row.key, 0) + 1 - row.count
        if missing > 0:
            found.append((row.key, n, missing))
        counts[row.key] = row.count
    return found


def _out_of_order(rows: Sequence[Row]) -> list[int]:
    highest: dict[int, int] = {}
    seen: set[int] = set()
    found = []
    for row in rows:
        if row.n < highest.get(row.key, 0) and row.n not in seen:
            found.append(row.n)
        highest[row.key] = max(row.n, highest.get(row.key, 0))
        seen.add(row.n)
    return found
