"""Makes the two small tables of `data/` from the public sample files: aggregates only, never a row.

Input folder: `rate_per_minute_2013H1.csv.gz` (rows per dropoff minute of the DEBS 2015 file, first half of
2013) and four small sets of real rows in the 17 DEBS columns. `leeward replay derive` runs it.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from leeward.replay.errors import ReplayError
from leeward.replay.trips import CELL_MILES, TripTable, cell_of, distance_cells

RATE_FILE = "rate_per_minute_2013H1.csv.gz"
#: the only file with the mixture of resolutions of the full year
FULL_FILE = "debs2015_full_first100.csv"
ROW_FILES = (
    "debs2015_20130101_0000-0045.csv.gz",
    FULL_FILE,
    "foil2013_joined_to_0113T09.csv.gz",
    "riotbench_taxi_17f_20130114.csv.gz",
)
CELLS = 400  # 96 % of the ends of the trips
DISTANCES = 41  # whole cells, the last one stands for all beyond
WEEK_NAME, TRIPS_NAME = "rate_by_hour_of_week.csv", "trips.json"


def derive(inputs: Path, out: Path) -> None:
    """Write both tables into `out`; equal inputs give equal bytes. Raises ReplayError for a missing input."""
    missing = [name for name in (RATE_FILE, *ROW_FILES) if not (inputs / name).is_file()]
    if missing:
        raise ReplayError(f"{inputs} lacks {', '.join(missing)}.", remedy="Name the folder of the sample files.")
    out.mkdir(parents=True, exist_ok=True)
    (out / WEEK_NAME).write_text(week_text(inputs / RATE_FILE))
    table = asdict(trip_table(inputs))
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(table.items()))
    (out / TRIPS_NAME).write_text("{\n" + lines + "\n}\n")


def week_text(path: Path) -> str:
    """The CSV of 168 mean rates, with its source in the first lines."""
    by_hour: dict[int, list[int]] = defaultdict(list)
    with gzip.open(path, "rt") as lines:
        next(lines)
        for line in lines:
            minute, rows = line.split(",")
            when = datetime.fromisoformat(minute)
            by_hour[when.weekday() * 24 + when.hour].append(int(rows))
    head = (
        "# Mean rows per (non-empty) dropoff minute of the DEBS 2015 taxi file, January to June 2013, by\n"
        "# hour of the week (0 = Monday 00:00). Derived from the per-minute counts published in\n"
        "# github.com/grussorusso/dsp-elasticity-sim (traces/profile.dat): counts of TLC public records.\n"
        "hour_of_week,rows_per_minute\n"
    )
    return head + "".join(f"{hour},{statistics.fmean(by_hour[hour]):.2f}\n" for hour in range(168))


def trip_table(inputs: Path) -> TripTable:
    """Count cells, distances, speeds and payments over the real rows."""
    pickups: Counter[Any] = Counter()
    dropoffs: Counter[Any] = Counter()
    payments: Counter[Any] = Counter()
    distances: Counter[Any] = Counter()
    speeds: list[float] = []
    detours: list[float] = []
    total = zeros = outside = 0
    for columns in _rows(inputs, ROW_FILES):
        total += 1
        ends = [float(text) for text in columns[6:10]]
        if ends[0] == 0 or ends[2] == 0:
            zeros += 1
            continue
        start, end = cell_of(ends[1], ends[0]), cell_of(ends[3], ends[2])
        if not all(1 <= axis <= 300 for axis in start + end):
            outside += 1
            continue
        pickups[start] += 1
        dropoffs[end] += 1
        payments[columns[10]] += 1
        straight = distance_cells(start, end)
        distances[min(DISTANCES - 1, int(straight))] += 1
        trip_s, miles = int(columns[4]), float(columns[5])
        if trip_s > 0 and miles > 0.2:
            speeds.append(math.log(miles / trip_s * 3600))
        if straight > 3 and miles > 0:
            detours.append(math.log(miles / (straight * CELL_MILES)))
    full = list(_rows(inputs, (FULL_FILE,)))
    whole = sum(columns[2].endswith(":00") and columns[3].endswith(":00") for columns in full)
    return TripTable(
        cells=_busiest(pickups, dropoffs),
        decay=_decay(pickups, dropoffs, distances),
        zero_share=round(zeros / total, 5),
        outside_share=round(outside / total, 5),
        whole_minute_share=round(whole / len(full), 3),
        speed_log=_moments(speeds),
        detour_log=_moments(detours),
        payments=tuple(sorted(payments.items())),
        source=(
            f"Derived from {total} rows of NYC TLC public records of 2013 (DEBS 2015 columns) published in "
            "github.com/mangalaman93/debs2015, markito/debs2015-geode, VIDA-NYU/TaxiVis and "
            "dream-lab/riot-bench: counts and moments only."
        ),
    )


def _rows(inputs: Path, names: tuple[str, ...]) -> Iterator[list[str]]:
    for name in names:
        path = inputs / name
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            for line in lines:
                yield line.rstrip("\n").split(",")


def _busiest(pickups: Counter[Any], dropoffs: Counter[Any]) -> tuple[tuple[int, int, int, int], ...]:
    both = pickups + dropoffs
    order = sorted(both, key=lambda cell: (-both[cell], cell))[:CELLS]
    return tuple((*cell, pickups[cell], dropoffs[cell]) for cell in order)


def _decay(pickups: Counter[Any], dropoffs: Counter[Any], observed: Counter[Any]) -> tuple[float, ...]:
    """Trips of each length over those expected of independent ends (one step of a gravity model)."""
    expected = [0.0] * DISTANCES
    trips = sum(pickups.values())
    for start, leaving in pickups.items():
        for end, arriving in dropoffs.items():
            expected[min(DISTANCES - 1, int(distance_cells(start, end)))] += leaving * arriving / trips
    return tuple(round(observed[d] / expected[d], 4) if expected[d] else 0.0 for d in range(DISTANCES))


def _moments(values: list[float]) -> tuple[float, float]:
    return round(statistics.fmean(values), 4), round(statistics.pstdev(values), 4)
