"""One made-up taxi trip whose geography follows the real one (pure; randomness is an argument).

Gravity model over the busiest grid cells: the pickup cell is drawn by its share of pickups, the dropoff cell
by its share of dropoffs times a decay with distance, both measured on real rows (`data/trips.json`, derived).
Cell (east, south) = (1, 1) is centred at 41.474937 N, 74.913585 W; cells are 500 m (DEBS 2015).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate

from leeward.replay.rows import text_of

ORIGIN_LATITUDE, ORIGIN_LONGITUDE = 41.474937, -74.913585  # degrees, centre of cell 1.1
CELL_LATITUDE, CELL_LONGITUDE = 0.004491556, 0.005986  # degrees for 500 m
CELL_MILES = 500 / 1609.344
MEDALLIONS = 13_237  # yellow-cab medallions in New York, 2013
LICENSES = 32_000  # drivers who drove in 2013, about


@dataclass(frozen=True, slots=True, kw_only=True)
class TripTable:
    """Facts about real trips: counts and moments only, no row."""

    cells: tuple[tuple[int, int, int, int], ...]  #: (east, south, pickups, dropoffs), busiest first
    decay: tuple[float, ...]  #: [distance in whole cells] preference relative to independent ends
    zero_share: float  #: rows with 0.000000 as coordinates
    outside_share: float  #: rows with coordinates outside the 300 x 300 grid, zeros apart
    whole_minute_share: float  #: rows whose two dates are whole minutes
    speed_log: tuple[float, float]  #: mean and deviation of ln(miles per hour)
    detour_log: tuple[float, float]  #: mean and deviation of ln(trip distance / straight distance)
    payments: tuple[tuple[str, int], ...]  #: (payment type, rows)
    source: str = field(compare=False)


@cache
def load_trips() -> TripTable:
    """The shipped table."""
    document = json.loads(files("leeward.replay").joinpath("data/trips.json").read_text())
    document["cells"] = tuple(tuple(cell) for cell in document["cells"])
    document["payments"] = tuple(tuple(pair) for pair in document["payments"])
    for name in ("decay", "speed_log", "detour_log"):
        document[name] = tuple(document[name])
    return TripTable(**document)


def cell_of(latitude: float, longitude: float) -> tuple[int, int]:
    """(east, south) of a point; 1..300 each when inside the grid."""
    east = math.floor((longitude - ORIGIN_LONGITUDE) / CELL_LONGITUDE + 0.5) + 1
    south = math.floor((ORIGIN_LATITUDE - latitude) / CELL_LATITUDE + 0.5) + 1
    return east, south


def distance_cells(a: Sequence[int], b: Sequence[int]) -> float:
    """Straight distance of two cells' centres, in cells."""
    return math.hypot(a[0] - b[0], a[1] - b[1])


class TripModel:
    """Draws trips. Weights of dropoffs are computed once for each pickup cell that comes up."""

    def __init__(self, table: TripTable) -> None:
        self.table = table
        self._pickups = list(accumulate(cell[2] for cell in table.cells))
        self._dropoffs: dict[int, list[float]] = {}
        self._payments = list(accumulate(rows for _, rows in table.payments))

    def row(self, dropoff_s: int, whole_minute: bool, rng: random.Random) -> bytes:
        """A CSV line of 17 columns, without line end, that ends at `dropoff_s` (epoch seconds)."""
        table = self.table
        start = _draw(self._pickups, rng)
        end = _draw(self._dropoff_weights(start), rng)
        ends = _point(table.cells[start], rng) + _point(table.cells[end], rng)
        straight = max(0.3, distance_cells(table.cells[start], table.cells[end])) * CELL_MILES
        miles = straight * math.exp(max(0.0, rng.gauss(*table.detour_log)))
        speed_mph = min(60.0, math.exp(rng.gauss(*table.speed_log)))
        trip_s = max(30, round(miles / speed_mph * 3600))
        if whole_minute:
            trip_s = max(60, round(trip_s / 60) * 60)
        fate = rng.random()
        if fate < table.zero_share:
            ends = (0.0, 0.0, 0.0, 0.0)
        elif fate < table.zero_share + table.outside_share:
            ends = (ends[0], ends[1] + 360.0, ends[2], ends[3])  # a slipped digit, as in the real rows
        payment = table.payments[_draw(self._payments, rng)][0]
        return _line(dropoff_s, trip_s, miles, ends, payment, rng)

    def _dropoff_weights(self, start: int) -> list[float]:
        weights = self._dropoffs.get(start)
        if weights is None:
            cells, decay = self.table.cells, self.table.decay
            last = len(decay) - 1
            weights = self._dropoffs[start] = list(
                accumulate(c[3] * decay[min(last, int(distance_cells(cells[start], c)))] for c in cells)
            )
        return weights


def minute_rows(model: TripModel, *, seed: int, index: int, start_s: int, count: int) -> list[tuple[int, bytes]]:
    """The `count` rows (dropoff in epoch seconds, line) of minute `index`, which begins at `start_s`, sorted.

    Depends on nothing but its arguments: any partitioning of the minutes gives the same rows.
    """
    rng = random.Random(f"{seed}:rows:{index}")
    rows = []
    for _ in range(count):
        whole = rng.random() < model.table.whole_minute_share
        dropoff_s = start_s if whole else start_s + int(rng.random() * 60)
        rows.append((dropoff_s, model.row(dropoff_s, whole, rng)))
    rows.sort(key=lambda row: row[0])
    return rows


def _draw(cumulative: Sequence[float], rng: random.Random) -> int:
    return min(bisect_right(cumulative, rng.random() * cumulative[-1]), len(cumulative) - 1)


def _point(cell: Sequence[int], rng: random.Random) -> tuple[float, float]:
    """(longitude, latitude) of a point of the cell, clear of its border by a hundredth."""
    east, south = (cell[axis] - 1 + (rng.random() - 0.5) * 0.98 for axis in (0, 1))
    return ORIGIN_LONGITUDE + east * CELL_LONGITUDE, ORIGIN_LATITUDE - south * CELL_LATITUDE


def _line(
    dropoff_s: int, trip_s: int, miles: float, ends: tuple[float, ...], payment: str, rng: random.Random
) -> bytes:
    """Money by the 2013 tariff: 2.50, 0.50 for a fifth of a mile or slow minute, 0.50 tax, night 0.50."""
    fare = 2.5 + 0.5 * int(miles * 5) + 0.5 * int(trip_s / 60 * 0.25)
    surcharge = 0.5 if (dropoff_s // 3600 % 24) in (20, 21, 22, 23, 0, 1, 2, 3, 4, 5) else 0.0
    tip = round(fare * 0.2, 2) if payment == "CRD" else 0.0
    medallion, license_ = (_name(kind, int(rng.random() * size)) for kind, size in (("m", MEDALLIONS), ("h", LICENSES)))
    longitudes_latitudes = ",".join(f"{degrees:.6f}" for degrees in ends)
    return (
        f"{medallion},{license_},{text_of(dropoff_s - trip_s)},{text_of(dropoff_s)},{trip_s},{miles:.2f},"
        f"{longitudes_latitudes},{payment},{fare:.2f},{surcharge:.2f},0.50,{tip:.2f},0.00,"
        f"{fare + surcharge + 0.5 + tip:.2f}"
    ).encode()


@cache
def _name(kind: str, number: int) -> str:
    """A made-up identifier in the shape of the real ones: 32 hexadecimal digits."""
    return hashlib.md5(f"leeward:{kind}:{number}".encode(), usedforsecurity=False).hexdigest().upper()
