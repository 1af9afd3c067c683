"""Query 1 in one process, plainly, to compare the topology's output with.

It shares with the operators only how a row is read (`trips`) and where the cells lie (`grid`). Two readings:

per event   The challenge's. A valid row is an event at t, its dropoff. It is added, rows no longer in
            (t - window_s, t] leave, and a row is output if the ten top routes changed, with the event's
            pickup and dropoff. So expiry alone outputs nothing: it shows with the next event.
per pulse   The topology's, defined in `logic`: the same at the end of each interval of data time that holds a
            valid row, with pickup and dropoff of the interval's last valid row; the number is that of the
            interval.

Routes rank by count, then by their most recent row in the order of the input.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import groupby
from pathlib import Path
from typing import Any

from bolts.query1.grid import Grid, route_id
from bolts.query1.logic import TOP, WINDOW_S, result_row
from bolts.query1.trips import Reject, parse_trip
from bolts.reference import Line, Result, by_reading, in_order, read_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Ride:
    """A valid row: read, and inside the grid."""

    pickup: str
    dropoff: str
    dropoff_s: int
    route: str


def read_rides(lines: Iterable[Line], *, grid: Grid, rejects: Counter[str], sort: bool = False) -> Iterator[Ride]:
    """The valid rows, in order of dropoff; the others are counted by reason in `rejects`. Raises as `in_order`."""
    return in_order(_valid(lines, grid, rejects), sort=sort)


def _valid(lines: Iterable[Line], grid: Grid, rejects: Counter[str]) -> Iterator[tuple[Line, Ride]]:
    for line in lines:
        trip = parse_trip(line.text)
        if isinstance(trip, Reject):
            rejects[str(trip)] += 1
            continue
        route = grid.route(trip.from_lon, trip.from_lat, trip.to_lon, trip.to_lat)
        if route is None:
            rejects[str(Reject.OUTSIDE)] += 1
            continue
        yield line, Ride(pickup=trip.pickup, dropoff=trip.dropoff, dropoff_s=trip.dropoff_s, route=route_id(*route))


class _Window:
    """Counts of the routes of the last `window_s` seconds, and the number of each route's most recent row."""

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        self._rides: deque[tuple[int, str]] = deque()
        self._counts: Counter[str] = Counter()
        self._latest: dict[str, int] = {}

    def add(self, number: int, ride: Ride) -> None:
        self._rides.append((ride.dropoff_s, ride.route))
        self._counts[ride.route] += 1
        self._latest[ride.route] = number

    def expire(self, t: int) -> set[str]:
        """Drops the rows not after t - window_s; returns the routes that lost one."""
        lost = set()
        while self._rides and self._rides[0][0] <= t - self._window_s:
            _, route = self._rides.popleft()
            self._counts[route] -= 1
            lost.add(route)
            if not self._counts[route]:
                del self._counts[route], self._latest[route]
        return lost

    def top(self, routes: Iterable[str] | None = None) -> list[str]:
        """The ten top ones among `routes` (default: all in the window), best first."""
        among = self._counts if routes is None else routes
        return nlargest(TOP, among, key=lambda route: (self._counts[route], self._latest[route]))


def rows_per_event(rides: Iterable[Ride], *, window_s: int = WINDOW_S) -> Iterator[Result]:
    """A result for each valid row that changed the ten."""
    window = _Window(window_s)
    ten: list[Any] = []
    for number, ride in enumerate(rides, 1):
        window.add(number, ride)
        lost = window.expire(ride.dropoff_s)
        # All but the ride's own route stand as before or lower. So unless one of the ten lost a row, the new
        # ten are among the old ten and that route; looking at all of them each time would give the same,
        # slowly.
        now = window.top({*ten, ride.route} if lost.isdisjoint(ten) else None)
        if now != ten:
            yield Result(number, result_row(ride.pickup, ride.dropoff, now))
        ten = now


def rows_per_pulse(rides: Iterable[Ride], *, pulse_s: int, window_s: int = WINDOW_S) -> Iterator[Result]:
    """A result for each interval of data time with valid rows at whose end the ten had changed."""
    window, number = _Window(window_s), 0
    ten: list[Any] = []
    for interval, inside in groupby(rides, key=lambda ride: ride.dropoff_s // pulse_s):
        for ride in inside:
            number += 1
            window.add(number, ride)
        window.expire((interval + 1) * pulse_s)
        now = window.top()
        if now != ten:
            yield Result(interval, result_row(ride.pickup, ride.dropoff, now))
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
    rides = read_rides(read_lines(paths), grid=grid or Grid(), rejects=counted, sort=sort)
    return by_reading(
        per, pulse_s, event=lambda: rows_per_event(rides), pulse=lambda: rows_per_pulse(rides, pulse_s=pulse_s)
    )
