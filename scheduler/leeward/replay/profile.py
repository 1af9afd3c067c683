"""How many rows a minute of data has: curves that follow the real first half of 2013 (pure).

The table `data/rate_by_hour_of_week.csv` holds the mean number of rows per dropoff minute for each of the 168
hours of a week (`derive.py` makes it). Between the middles of the hours the rate is interpolated linearly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

WEEK_MIN = 7 * 24 * 60
DAY_MIN = 24 * 60
#: the quietest hour of every weekday is the one that starts at 4:00; a compressed day begins and ends in it
TROUGH_HOUR = 4


class Profile(StrEnum):
    """Which curve the generator follows."""

    DAY = "day"  #: the whole day's curve compressed into the hours asked for, scaled to [trough, peak]
    REAL = "real"  #: each hour of the week as it was; scaled so that the week's peak is `peak` if given
    FLAT = "flat"  #: `peak` all the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Expected rows for each minute of the data."""

    rates: tuple[float, ...]  #: [minutes] rows per minute, > 0

    def counts(self, seed: int) -> list[int]:
        """[minutes] Poisson draws; each minute depends on the seed and its index only."""
        return [poisson(rate, random.Random(f"{seed}:count:{m}")) for m, rate in enumerate(self.rates)]


def load_week() -> tuple[float, ...]:
    """[168] mean rows per minute; index 0 is Monday 00:00-00:59."""
    text = files("leeward.replay").joinpath("data/rate_by_hour_of_week.csv").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(float(line.split(",")[1]) for line in lines[1:])


def week_rate(week: Sequence[float], minute: float) -> float:
    """Rows per minute at `minute` of the week (any real number, wraps around)."""
    position = (minute / 60 - 0.5) % len(week)
    low = math.floor(position)
    share = position - low
    return week[low % len(week)] * (1 - share) + week[(low + 1) % len(week)] * share


def day_curve(week: Sequence[float], *, weekday: int, minutes: int, trough: float, peak: float) -> Curve:
    """The curve of one day, 4:00 to 4:00, in `minutes` minutes, between the rates `trough` and `peak`."""
    origin = weekday * DAY_MIN + TROUGH_HOUR * 60
    raw = [week_rate(week, origin + (m + 0.5) * DAY_MIN / minutes) for m in range(minutes)]
    low, high = min(raw), max(raw)
    if high == low:
        return Curve(rates=(peak,) * minutes)
    return Curve(rates=tuple(trough + (peak - trough) * (rate - low) / (high - low) for rate in raw))


def real_curve(week: Sequence[float], *, start_minute: int, minutes: int, peak: float | None) -> Curve:
    """The real week from `start_minute` on, scaled so that its busiest hour has `peak` if given."""
    scale = 1.0 if peak is None else peak / max(week)
    return Curve(rates=tuple(scale * week_rate(week, start_minute + m + 0.5) for m in range(minutes)))


def poisson(mean: float, rng: random.Random) -> int:
    """A Poisson draw (Knuth's product of uniforms, in pieces of 30 so that exp does not underflow)."""
    count = 0
    while mean > 0:
        piece = min(mean, 30.0)
        mean -= piece
        limit, product = math.exp(-piece), rng.random()
        while product > limit:
            count += 1
            product *= rng.random()
    return count
