"""Query 2 in one process, plainly, to compare the topology's output with.

It shares with the operators only how a row is read (`fares`), where the areas lie (`areas`), and how a result is
written. Two readings, as of query 1:

per event   A valid row is an event at t, its dropoff. It is added, what is no longer in its window leaves, and a row is
            output if a figure of the ten changed, with the event's pickup and dropoff.
per pulse   The topology's: the same at the end of each interval of data time that holds a valid row, with pickup and
            dropoff of the interval's last valid row; the number is that of the interval.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path

from bolts.query1.grid import Grid
from bolts.query1.trips import Reject
from bolts.query2.areas import AREAS, area_id
from bolts.query2.fares import Fare, parse_fare
from bolts.query2.logic import PROFIT_S, TAXI_S, TOP, Standing, result_row
from bolts.reference import Line, Result, by_reading, in_order, read_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """A valid row: read, and inside the grid."""

    pickup: str
    dropoff: str
    dropoff_s: int
    taxi: str
    cents: int
    start: str  #: area
    end: str  #: area


def read_drives(
    lines: Iterable[Line], *, rejects: Counter[str], grid: Grid = AREAS, sort: bool = False
) -> Iterator[Drive]:
    """The valid rows, in order of dropoff; the others are counted by reason in `rejects`. Raises as `in_order`."""
    return in_order(_valid(lines, grid, rejects), sort=sort)


def _valid(lines: Iterable[Line], grid: Grid, rejects: Counter[str]) -> Iterator[tuple[Line, Drive]]:
    for line in lines:
        fare = parse_fare(line.text)
        if not isinstance(fare, Fare):
            rejects[str(fare)] += 1
            continue
        trip = fare.trip
        cells = grid.route(trip.from_lon, trip.from_lat, trip.to_lon, trip.to_lat)
        if cells is None:
            rejects[str(Reject.OUTSIDE)] += 1
            continue
        yield (
            line,
            Drive(
                pickup=trip.pickup,
                dropoff=trip.dropoff,
                dropoff_s=trip.dropoff_s,
                taxi=fare.taxi,
                cents=fare.cents,
                start=area_id(*cells[:2]),
                end=area_id(*cells[2:]),
            ),
        )


class _Board:
    """Profits and empty taxis of all areas, kept up to date row by row."""

    def __init__(self, profit_s: int, taxi_s: int) -> None:
        self._profit_s, self._taxi_s = profit_s, taxi_s
        self._trips: deque[tuple[int, int, Drive]] = deque()  # of the profits: (dropoff_s, number, row)
        self._ends: deque[tuple[int, int, Drive]] = deque()  # of the taxis, those since driven on included
        self._cents: defaultdict[str, list[int]] = defaultdict(list)  # sorted
        self._starts: defaultdict[str, list[int]] = defaultdict(list)  # numbers of the trips, ascending
        self._taxis: defaultdict[str, dict[str, int]] = defaultdict(dict)  # area -> taxi -> number
        self._stands: dict[str, tuple[str, int]] = {}  # taxi -> area, number

    def add(self, number: int, drive: Drive) -> set[str]:
        """Takes in a row; the areas that it changes."""
        changed = {drive.start, drive.end}
        insort(self._cents[drive.start], drive.cents)
        self._starts[drive.start].append(number)
        self._trips.append((drive.dropoff_s, number, drive))
        if drive.taxi in self._stands:
            area, _ = self._stands[drive.taxi]
            del self._taxis[area][drive.taxi]
            changed.add(area)
        self._stands[drive.taxi] = drive.end, number
        self._taxis[drive.end][drive.taxi] = number
        self._ends.append((drive.dropoff_s, number, drive))
        return changed

    def expire(self, t: int) -> set[str]:
        """Drops what is no longer in its window; the areas that lost something."""
        changed = set()
        while self._trips and self._trips[0][0] <= t - self._profit_s:
            _, number, drive = self._trips.popleft()
            cents = self._cents[drive.start]
            del cents[bisect_left(cents, drive.cents)]
            self._starts[drive.start].remove(number)
            changed.add(drive.start)
        while self._ends and self._ends[0][0] <= t - self._taxi_s:
            _, number, drive = self._ends.popleft()
            if self._stands.get(drive.taxi) == (drive.end, number):
                del self._stands[drive.taxi], self._taxis[drive.end][drive.taxi]
                changed.add(drive.end)
        return changed

    def top(self, areas: Iterable[str] | None = None) -> list[Standing]:
        """The ten top ones among `areas` (default: all), best first."""
        among = self._cents if areas is None else areas
        standings = [standing for area in among if (standing := self._standing(area))]
        ordered = sorted(standings, key=lambda standing: standing.area)
        ordered.sort(key=lambda standing: (Fraction(standing.twice_cents, standing.taxis), standing.last), reverse=True)
        return ordered[:TOP]

    def _standing(self, area: str) -> Standing | None:
        cents, taxis = self._cents[area], self._taxis[area]
        if not cents or not taxis:
            return None
        half = len(cents) // 2
        twice = 2 * cents[half] if len(cents) % 2 else cents[half - 1] + cents[half]
        return Standing(area, len(taxis), twice, max(self._starts[area][-1], *taxis.values()))


def _shown(areas: list[Standing]) -> list[tuple[str, int, int]]:
    return [area[:3] for area in areas]


def rows_per_event(drives: Iterable[Drive], *, profit_s: int = PROFIT_S, taxi_s: int = TAXI_S) -> Iterator[Result]:
    """A result for each valid row that changed a figure of the ten."""
    board = _Board(profit_s, taxi_s)
    ten: list[Standing] = []
    for number, drive in enumerate(drives, 1):
        changed = board.add(number, drive) | board.expire(drive.dropoff_s)
        before = {area.area for area in ten}
        # If none of the ten changed, they stand as before, and so do all others but the changed ones.
        now = board.top(before | changed if before.isdisjoint(changed) else None)
        if _shown(now) != _shown(ten):
            yield Result(number, result_row(drive.pickup, drive.dropoff, now))
        ten = now


def rows_per_pulse(
    drives: Iterable[Drive], *, pulse_s: int, profit_s: int = PROFIT_S, taxi_s: int = TAXI_S
) -> Iterator[Result]:
    """A result for each interval of data time with valid rows at whose end a figure of the ten had changed."""
    board, number = _Board(profit_s, taxi_s), 0
    ten: list[Standing] = []
    for interval, inside in groupby(drives, key=lambda drive: drive.dropoff_s // pulse_s):
        for drive in inside:
            number += 1
            board.add(number, drive)
        board.expire((interval + 1) * pulse_s)
        now = board.top()
        if _shown(now) != _shown(ten):
            yield Result(interval, result_row(drive.pickup, drive.dropoff, now))
        ten = now


def reference_rows(
    paths: Sequence[Path | str],
    *,
    per: str,
    pulse_s: int = 60,
    grid: Grid | None = None,
    rejects: Counter[str] | None = None,
    sort: bool = False,
) -> Iterator[Result]:
    """The results of the files, `per` "event" or "pulse"; `rejects` is complete once they are exhausted."""
    counted = Counter() if rejects is None else rejects
    drives = read_drives(read_lines(paths), grid=grid or AREAS, rejects=counted, sort=sort)
    return by_reading(
        per, pulse_s, event=lambda: rows_per_event(drives), pulse=lambda: rows_per_pulse(drives, pulse_s=pulse_s)
    )
