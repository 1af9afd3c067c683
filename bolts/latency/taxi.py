"""Made-up taxi rows in the form of the DEBS 2015 challenge; row n follows from the seed and n alone.

Data time passes as it did in the busiest minutes of 2013: 215 rows end in a minute, whatever the rate is at which they
are sent. The trips lead between 60 places of a few blocks, some far busier than others, so that routes and areas meet
often enough to be ranked; one in fifty lies outside the grid, and one in two hundred is no row.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate
from typing import NamedTuple

ROWS_PER_MINUTE = 215
#: Dropoff of the first row: 2013-01-16 08:00, seconds since 1970.
START_S = 1_358_323_200
TAXIS = 2000
_PLACES = 60
#: Degrees: a corner of Manhattan, and 500 m from one place to the next.
_LAT, _LON, _STEP_LAT, _STEP_LON = 40.80, -74.01, -0.0045, 0.006
#: Place k is chosen 1 / (k + 3) as often as others.
_WEIGHTS = list(accumulate(1 / (k + 3) for k in range(_PLACES)))
_OUTSIDE, _BROKEN = 0.02, 0.005


class TaxiRow(NamedTuple):
    """A line of 17 columns, and its time."""

    line: str
    dropoff_s: int  #: seconds since 1970


def taxi_row(seed: int, number: int) -> TaxiRow:
    """The row of this number, from 1; rows are in the order of their dropoff."""
    rng = random.Random(f"{seed}:{number}")
    dropoff_s = START_S + (number - 1) * 60 // ROWS_PER_MINUTE
    trip_s = rng.randint(120, 1500)
    taxi = rng.randrange(TAXIS)
    ends = [degree for _ in range(2) for degree in _point(rng)]
    fate = rng.random()
    if fate < _OUTSIDE:
        ends = [0.0] * 4
    cash = rng.random() < 0.5
    fare = 250 + 50 * (trip_s // 60)  # cents
    tip = 0 if cash else fare // 5
    columns = [
        f"{taxi:032X}", f"{taxi:032X}", _text(dropoff_s - trip_s), _text(dropoff_s), f"{trip_s}", f"{trip_s / 300:.2f}",
        *(f"{degree:.6f}" for degree in ends),
        "CSH" if cash else "CRD", _money(fare), "0.00", "0.50", _money(tip), "0.00", _money(fare + 50 + tip),
    ]  # fmt: skip
    if fate > 1 - _BROKEN:
        columns.pop()
    return TaxiRow(",".join(columns), dropoff_s)


def taxi_lines(seed: int, count: int) -> Iterator[str]:
    """The first `count` rows' lines, as a reference reads them."""
    return (taxi_row(seed, number).line for number in range(1, count + 1))


def _point(rng: random.Random) -> tuple[float, float]:
    """(longitude, latitude), within 250 m of the middle of a place."""
    place = min(bisect_right(_WEIGHTS, rng.random() * _WEIGHTS[-1]), _PLACES - 1)
    east, south = place * 7 % 10 + rng.random() - 0.5, place // 10 + rng.random() - 0.5
    return _LON + east * _STEP_LON, _LAT + south * _STEP_LAT


def _text(epoch_s: int) -> str:
    return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M:%S}"


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
