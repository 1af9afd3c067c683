"""One line of the taxi file to the taxi and the money of a trip; columns and dates as in `bolts.query1.trips`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from bolts.query1.trips import Reject, Trip, parse_trip

_MEDALLION, _FARE, _TIP = 0, 11, 14
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]*)?|\.[0-9]+")


class NoFare(StrEnum):
    """Why a row that is a trip is none of query 2; rows are counted by these texts."""

    TAXI = "taxi"  #: no medallion
    AMOUNT = "amount"  #: fare or tip is not a decimal number of 0 or more


class Fare(NamedTuple):
    """A trip, whose taxi drove it, and what it brought."""

    taxi: str  #: medallion
    cents: int  #: fare and tip
    trip: Trip


def parse_fare(line: str) -> Fare | Reject | NoFare:
    """The trip that a CSV line (with or without its line end) describes, or the first reason against it."""
    trip = parse_trip(line)
    if isinstance(trip, Reject):
        return trip
    columns = line.rstrip("\r\n").split(",")
    if not columns[_MEDALLION]:
        return NoFare.TAXI
    money = columns[_FARE], columns[_TIP]
    if not all(map(_AMOUNT.fullmatch, money)):
        return NoFare.AMOUNT
    return Fare(columns[_MEDALLION], sum(round(float(text) * 100) for text in money), trip)
