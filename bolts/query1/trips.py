"""One line of the taxi file, 17 columns, to a Trip, or to the reason why it is none.

The columns, in order: medallion, hack_license, pickup_datetime, dropoff_datetime, trip_time_in_secs,
trip_distance, pickup_longitude, pickup_latitude, dropoff_longitude, dropoff_latitude, payment_type,
fare_amount, surcharge, mta_tax, tip_amount, tolls_amount, total_amount. Query 1 reads six of them; the others
may hold anything.
"""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

COLUMNS = 17

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):[0-9]{2}")
#: The end of a date and what it adds; a 60th second is none.
_SECONDS = {f":{second:02}": second for second in range(60)}
#: Characters of decimal numbers; the hand-made vectors of the challenge write them as C does, with a trailing "f".
_DECIMAL = "0123456789+-.eE"
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class Reject(StrEnum):
    """Why a row takes no part; rows are counted by these texts."""

    COLUMNS = "columns"  #: not 17 columns
    DATE = "date"  #: pickup or dropoff is not written as YYYY-MM-DD HH:MM:SS
    IMPOSSIBLE_DATE = "impossible date"  #: no such day or time, or the dropoff is before the pickup
    NUMBER = "number"  #: a coordinate is not a finite decimal number
    OUTSIDE = "outside"  #: the trip starts or ends outside the grid


class Trip(NamedTuple):
    """The fields of one row that query 1 needs."""

    dropoff_s: int  #: seconds since 1970 of the dropoff, New York wall clock taken as UTC
    pickup: str  #: as written in the row
    dropoff: str  #: as written in the row
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
    try:
        pickup_s = _minute(pickup[:16]) + _SECONDS[pickup[16:]]
        dropoff_s = _minute(dropoff[:16]) + _SECONDS[dropoff[16:]]
    except (ValueError, KeyError):
        written = _DATE.fullmatch(pickup) and _DATE.fullmatch(dropoff)
        return Reject.IMPOSSIBLE_DATE if written else Reject.DATE
    if dropoff_s < pickup_s:
        return Reject.IMPOSSIBLE_DATE
    try:
        from_lon, from_lat, to_lon, to_lat = _degrees(columns[6:10])
    except ValueError:
        return Reject.NUMBER
    return Trip(dropoff_s, pickup, dropoff, from_lon, from_lat, to_lon, to_lat)


@lru_cache(maxsize=4096)  # rows of one time share few minutes
def _minute(text: str) -> int:
    """Seconds since 1970 at which a `YYYY-MM-DD HH:MM` begins. Raises ValueError if there is no such minute."""
    match = _DATE.fullmatch(f"{text}:00")
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute = map(int, match.groups())
    if hour > 23 or minute > 59:
        raise ValueError(text)
    days = date(year, month, day).toordinal() - _EPOCH_DAY
    return days * 86_400 + hour * 3_600 + minute * 60


def _degrees(texts: list[str]) -> list[float]:
    """The finite numbers that the texts are. Raises ValueError.

    float() also knows spaces, underscores, other digits and names of numbers: of what is made of these characters
    only, it takes just the decimal numbers.
    """
    if "".join(texts).strip(_DECIMAL):
        texts = [text[:-1] if text.endswith(("f", "F")) else text for text in texts]
        if "".join(texts).strip(_DECIMAL):
            raise ValueError(texts)
    degrees = [float(text) for text in texts]
    if not all(map(isfinite, degrees)):
        raise ValueError(texts)
    return degrees
