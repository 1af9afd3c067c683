"""A taxi row as text: its 17 columns, and why a row cannot be replayed.

This is the definition; `prepare` says the same in Spark's expressions, and a test compares the two on every
kind of row. Only the number of columns and the two dates are judged here. Coordinates and numbers are the
application's business (a row outside the grid is data, and counted by the topology).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum

COLUMNS = (
    "medallion",
    "hack_license",
    "pickup_datetime",
    "dropoff_datetime",
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment_type",
    "fare_amount",
    "surcharge",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "total_amount",
)
PICKUP, DROPOFF = 2, 3  # indices of the two dates

#: `YYYY-MM-DD hh:mm:ss` from the year 1000 on, in a dialect that Python and Java read alike
DATE_PATTERN = "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$"
_DATE = re.compile(DATE_PATTERN.rstrip("$") + r"\Z")


class BadRow(StrEnum):
    """Why a row is counted instead of sent."""

    EMPTY_LINE = "empty_line"
    WRONG_COLUMNS = "wrong_columns"
    UNPARSABLE_DATE = "unparsable_date"  #: pickup or dropoff does not look like `YYYY-MM-DD hh:mm:ss`
    IMPOSSIBLE_DATE = "impossible_date"  #: it does, but there is no such day or time


def epoch_s(text: str) -> int:
    """Seconds since 1970 of New York wall-clock text, taken as UTC. Raises ValueError."""
    if not _DATE.match(text):
        raise ValueError(f"date {text!r} is not YYYY-MM-DD hh:mm:ss")
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())


def text_of(epoch: int) -> str:
    """The inverse of `epoch_s`."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")


def judge(line: str) -> int | BadRow:
    """Dropoff time (epoch seconds) of a line without its line end, or why it cannot be replayed."""
    if not line.strip(" "):
        return BadRow.EMPTY_LINE
    columns = line.split(",")
    if len(columns) != len(COLUMNS):
        return BadRow.WRONG_COLUMNS
    dates = (columns[PICKUP], columns[DROPOFF])
    if not all(_DATE.match(date) for date in dates):
        return BadRow.UNPARSABLE_DATE
    try:
        return [epoch_s(date) for date in dates][1]
    except ValueError:
        return BadRow.IMPOSSIBLE_DATE
