"""One line of the taxi file, 17 columns, to a Trip, or to the reason why it is none.

The columns, in order: medallion, hack_license, pickup_datetime, dropoff_datetime, trip_time_in_secs,
trip_distance, pickup_longitude, pickup_latitude, dropoff_longitude, dropoff_latitude, payment_type,
fare_amount, surcharge, mta_tax, tip_amount, tolls_amount, total_amount. Query 1 reads six of them; the others
may hold anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from math import isfinite

COLUMNS = 17

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})")
#: A decimal number; the hand-made vectors of the challenge write coordinates as C does, with a trailing "f".
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fF]?")
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class Reject(StrEnum):
    """Why a row takes no part; rows are counted by these texts."""

    COLUMNS = "columns"  #: not 17 columns
    DATE = "date"  #: pickup or dropoff is not written as YYYY-MM-DD HH:MM:SS
    IMPOSSIBLE_DATE = "impossible date"  #: no such day or time, or the dropoff is before the pickup
    NUMBER = "number"  #: a coordinate is not a finite decimal number
    OUTSIDE = "outside"  #: the trip starts or ends outside the grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """What query 1 needs of one row."""

    pickup: str  #: as written in the row
    dropoff: str  #: as written in the row
    dropoff_s: int  #: seconds since 1970 of the dropoff, New York wall clock taken as UTC
    from_lon: float  #: degrees, as are the next three
    from_lat: float
    to_lon: float
    to_lat: float


def parse_trip(line: str) -> Trip | Reject:
    """The trip that a CSV line (with or without its line end) describes, or the first reason against it."""
    columns = line.rstrip("\r\n").split(",")
    if len(columns) != COLUMNS:
        return Reject.COLUMNS
    pickup, dropoff = columns[2], columns[3]
    pickup_parts, dropoff_parts = _DATE.fullmatch(pickup), _DATE.fullmatch(dropoff)
    if pickup_parts is None or dropoff_parts is None:
        return Reject.DATE
    pickup_s, dropoff_s = _seconds(*pickup_parts.groups()), _seconds(*dropoff_parts.groups())
    if pickup_s is None or dropoff_s is None or dropoff_s < pickup_s:
        return Reject.IMPOSSIBLE_DATE
    degrees = [_number(text) for text in columns[6:10]]
    if None in degrees:
        return Reject.NUMBER
    from_lon, from_lat, to_lon, to_lat = degrees
    return Trip(
        pickup=pickup, dropoff=dropoff, dropoff_s=dropoff_s,
        from_lon=from_lon, from_lat=from_lat, to_lon=to_lon, to_lat=to_lat,
    )  # fmt: skip


def _seconds(day: str, hour: str, minute: str, second: str) -> int | None:
    """Seconds since 1970, or None if there is no such day or time of day (a 60th second is none)."""
    days, h, m, s = _days(day), int(hour), int(minute), int(second)
    if days is None or h > 23 or m > 59 or s > 59:
        return None
    return days * 86_400 + h * 3_600 + m * 60 + s


@lru_cache(maxsize=1024)  # a year has few days and many rows
def _days(day: str) -> int | None:
    """Days since 1970 of a YYYY-MM-DD text, or None if the calendar has no such day."""
    try:
        return date(int(day[:4]), int(day[5:7]), int(day[8:])).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    value = float(match[1])
    return value if isfinite(value) else None
