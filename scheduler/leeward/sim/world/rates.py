"""How many tuples a second the sources are offered: a CSV of two columns, interpolated, scaled.

The first line that is no comment (`#`) names the columns. First column: `time_s`, `minute`, `hour`, `hour_of_week`
(numbers) or `dropoff_minute` (`2013-01-14 00:00`). Second column: `tuples_per_s`, `rows_per_minute` or `rows` (of that
minute). A value of an hour holds at its middle, every other value at its time; between two the rate is linear. An
`hour_of_week` file wraps around. The file may be compressed (`.gz`).
"""

from __future__ import annotations

import gzip
import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leeward.core.errors import ConfigError

#: First column -> seconds of its unit, and where in the unit the value holds.
TIMES = {"time_s": (1.0, 0.0), "minute": (60.0, 0.5), "hour": (3600.0, 0.5), "hour_of_week": (3600.0, 0.5)}
STAMP = "dropoff_minute"
#: Second column -> tuples/s of one unit.
RATES = {"tuples_per_s": 1.0, "rows_per_minute": 1 / 60, "rows": 1 / 60}
Floats = NDArray[np.float64]
WEEK_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RateTrace:
    """Rates at times, ascending; in between linear, outside the nearest."""

    times: tuple[float, ...]  #: s since the trace's begin
    rates: tuple[float, ...]  #: tuples/s
    period_s: float = math.inf  #: it repeats after so long

    def at(self, time: float) -> float:
        """tuples/s."""
        if math.isfinite(self.period_s):
            return self._wrapped(time % self.period_s)
        if time <= self.times[0]:
            return self.rates[0]
        if time >= self.times[-1]:
            return self.rates[-1]
        return self._between(bisect_right(self.times, time), time)

    def scaled(self, factor: float) -> RateTrace:
        """Every rate times `factor`."""
        return RateTrace(self.times, tuple(rate * factor for rate in self.rates), self.period_s)

    def from_hour(self, hours: float) -> RateTrace:
        """The trace from that hour on. Raises ConfigError if it is over by then."""
        shift = hours * 3600.0
        if not math.isfinite(self.period_s) and shift >= self.times[-1]:
            raise ConfigError(
                f"--start is {hours:g} h, the rate file ends after {self.times[-1] / 3600:.1f} h.",
                remedy="Begin earlier.",
            )
        if math.isfinite(self.period_s):
            pairs = sorted(((t - shift) % self.period_s, r) for t, r in zip(self.times, self.rates, strict=True))
            return RateTrace(tuple(t for t, _ in pairs), tuple(r for _, r in pairs), self.period_s)
        return RateTrace(tuple(t - shift for t in self.times), self.rates)

    @property
    def peak(self) -> float:
        """The highest rate, tuples/s."""
        return max(self.rates)

    def _between(self, after: int, time: float) -> float:
        t0, t1, r0, r1 = self.times[after - 1], self.times[after], self.rates[after - 1], self.rates[after]
        return r0 + (r1 - r0) * (time - t0) / (t1 - t0)

    def _wrapped(self, time: float) -> float:
        if self.times[0] <= time < self.times[-1]:
            return self._between(bisect_right(self.times, time), time)
        gap = self.times[0] + self.period_s - self.times[-1]
        share = ((time - self.times[-1]) % self.period_s) / gap
        return self.rates[-1] + (self.rates[0] - self.rates[-1]) * share


def load_rates(path: Path) -> RateTrace:
    """Read the file. Raises ConfigError naming file, line, value and remedy."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except FileNotFoundError:
        raise ConfigError(
            f"rate file {str(path)!r} does not exist.",
            remedy="scheduler/leeward/replay/data/rate_by_hour_of_week.csv is an example.",
        ) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"rate file {str(path)!r} cannot be read: {error}.", remedy="Give a CSV of text.") from None
    return parse_rates(text, str(path))


def parse_rates(text: str, name: str = "rates") -> RateTrace:
    """The trace of a CSV. Raises ConfigError."""
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    if len(lines) < 2:
        raise ConfigError(f"rate file {name!r} has {len(lines)} lines.", remedy="Give a header and at least one row.")
    columns = [word.strip() for word in lines[0][1].split(",")]
    if len(columns) != 2 or columns[0] not in {*TIMES, STAMP} or columns[1] not in RATES:
        raise ConfigError(
            f"rate file {name!r}: the header is {lines[0][1]!r}.",
            remedy=f"Write one of {', '.join([*TIMES, STAMP])}, a comma, and one of {', '.join(RATES)}.",
        )
    times, rates = _points(lines[1:], columns, f"rate file {name!r}")
    late = np.flatnonzero(np.diff(times) <= 0)
    if late.size:
        before, after = times[late[0]], times[late[0] + 1]
        raise ConfigError(f"rate file {name!r}: time {after:g} s follows {before:g} s.", remedy="Sort it by time.")
    if columns[0] == "hour_of_week":
        return RateTrace(tuple(times.tolist()), tuple(rates.tolist()), WEEK_S)
    return RateTrace(tuple((times - times[0]).tolist()), tuple(rates.tolist()))


def _points(rows: list[tuple[int, str]], columns: list[str], name: str) -> tuple[Floats, Floats]:
    """Times in s and tuples/s of the rows (line number, text)."""
    try:
        first, second = zip(*(line.split(",") for _, line in rows), strict=True)
        if columns[0] == STAMP:
            stamps = np.array(first, dtype="datetime64[s]")
            times = np.where(np.isnat(stamps), np.nan, stamps.astype(np.float64))
        else:
            unit, middle = TIMES[columns[0]]
            times = (np.array(first, dtype=np.float64) + middle) * unit
        rates = np.array(second, dtype=np.float64) * RATES[columns[1]]
    except ValueError:
        pass
    else:
        if np.isfinite(times).all() and np.isfinite(rates).all() and (rates >= 0).all():
            return times, rates
    points = [_point(line, columns, f"{name}, line {at}") for at, line in rows]  # one of them is wrong: name it
    return np.array([time for time, _ in points]), np.array([rate for _, rate in points])


def _point(line: str, columns: list[str], where: str) -> tuple[float, float]:
    """(time s, tuples/s) of one row."""
    words = line.split(",")
    try:
        first, second = words
        if columns[0] == STAMP:
            stamp = datetime.fromisoformat(first.strip()).replace(tzinfo=UTC)
            time = stamp.timestamp()
        else:
            unit, middle = TIMES[columns[0]]
            time = (float(first) + middle) * unit
        rate = float(second) * RATES[columns[1]]
    except ValueError:
        raise ConfigError(
            f"{where} is {line!r}.", remedy=f"Write a {columns[0]}, a comma, and a number of {columns[1]}."
        ) from None
    if not (math.isfinite(time) and math.isfinite(rate) and rate >= 0):
        raise ConfigError(f"{where} is {line!r}.", remedy="Give finite numbers, and a rate of at least 0.")
    return time, rate
