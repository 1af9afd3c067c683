"""Reports of sensors: how they are made, and one line read back into the values of its kinds."""

from __future__ import annotations

import random
import re
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

CITIES = ("bangalore", "boston", "geneva", "rio", "sanfrancisco", "shanghai", "singapore")
#: Data time of the first reports: 2015-01-15 00:00, seconds since 1970.
START_S = 1_421_280_000
#: Seconds of data time from one report of a sensor to its next.
PERIOD_S = 60
#: Shares of values that a sensor garbles, leaves out, or measures wrong.
_GARBLED, _MISSING, _WRONG = 0.004, 0.004, 0.004

_DECIMAL = re.compile(r"-?[0-9]{1,9}(\.[0-9]*)?|-?\.[0-9]+|[+-]?(nan|inf)", re.IGNORECASE)


class Kind(NamedTuple):
    """One of the quantities that a sensor measures."""

    name: str
    low: float  #: least value that can be
    high: float  #: greatest
    usual: float  #: about which made values lie
    spread: float  #: and how far from it


KINDS = (
    Kind("pollution", 0.0, 1000.0, 90.0, 60.0),  # ppb
    Kind("dust", 0.0, 5000.0, 400.0, 300.0),  # particles in 0.01 cubic feet
    Kind("light", 0.0, 200_000.0, 9000.0, 6000.0),  # lux
    Kind("sound", 0.0, 140.0, 58.0, 9.0),  # dB
    Kind("temperature", -60.0, 70.0, 19.0, 9.0),  # degrees Celsius
    Kind("humidity", 0.0, 100.0, 52.0, 20.0),  # per cent
)
COLUMNS = 2 + len(KINDS)


class Drop(StrEnum):
    """Why a report, or a value of one, takes no part; they are counted by these texts."""

    COLUMNS = "columns"  #: the line has another number of columns, or its first two are no sensor and time
    NUMBER = "number"  #: the value is missing or no decimal number
    NOT_FINITE = "not finite"  #: the sensor says NaN or infinity
    RANGE = "range"  #: the value cannot be


class Report(NamedTuple):
    """A line, read."""

    sensor: str
    t: int  #: seconds since 1970
    values: dict[str, int]  #: kind -> hundredths
    dropped: list[Drop]  #: one for each value that is not among them


def city_of(sensor: str) -> str:
    """The city of `city-number`."""
    return sensor.rpartition("-")[0]


def sensors_of_a_city(sensors: int) -> int:
    """Each city has as many, together `sensors` or up to six more."""
    return -(-sensors // len(CITIES))


def made_time_s(number: int, each: int) -> int:
    """Data time of the report of this number, from 1, where `each` sensors of a city take turns."""
    return START_S + (number - 1) // len(CITIES) * PERIOD_S // each


def made_report(seed: int, number: int, each: int) -> tuple[str, str]:
    """(sensor, line) of the report of this number; it follows from the arguments alone."""
    turn, place = divmod(number - 1, len(CITIES))
    sensor = f"{CITIES[place]}-{turn % each}"
    rng, own = random.Random(f"{seed}:{number}"), random.Random(f"{seed}:{sensor}")
    city = (place - 3) / 2  # some cities are dustier, louder and warmer than others
    texts = [
        _text(kind, kind.usual + kind.spread * (city + own.gauss(0, 0.4) + rng.gauss(0, 0.4)), rng) for kind in KINDS
    ]
    return sensor, ",".join([sensor, f"{made_time_s(number, each)}", *texts])


def _text(kind: Kind, value: float, rng: random.Random) -> str:
    fate = rng.random()
    if fate < _GARBLED:
        return rng.choice(("nan", "inf", "?"))
    if fate < _GARBLED + _MISSING:
        return ""
    if fate < _GARBLED + _MISSING + _WRONG:
        return f"{kind.high * 2 + 1:.2f}"
    return f"{min(max(value, kind.low), kind.high):.2f}"


def read_report(line: str) -> Report | Drop:
    """The values of a line (with or without its end), those dropped by their reasons; or the reason against all."""
    columns = line.rstrip("\r\n").split(",")
    if len(columns) != COLUMNS or not city_of(columns[0]) or not re.fullmatch(r"[0-9]{1,12}", columns[1]):
        return Drop.COLUMNS
    values: dict[str, int] = {}
    dropped: list[Drop] = []
    for kind, text in zip(KINDS, columns[2:], strict=True):
        value = float(text) if _DECIMAL.fullmatch(text) else None
        if value is None:
            dropped.append(Drop.NUMBER)
        elif not isfinite(value):
            dropped.append(Drop.NOT_FINITE)
        elif not kind.low <= value <= kind.high:
            dropped.append(Drop.RANGE)
        else:
            values[kind.name] = round(value * 100)
    return Report(columns[0], int(columns[1]), values, dropped)
