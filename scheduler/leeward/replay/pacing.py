"""When each row is due: pure functions of the rows' times and of a start; no clock in here.

Taxi rows carry dropoff times of two resolutions, mixed: one vendor writes seconds, the other whole minutes
(99 % of the rows of the organisers' first hour). Sent at the times they state, such minutes would leave as a
burst. So the rows of a minute leave evenly over that minute when many of them carry its first second, else
evenly over the second that they share. The order of the rows is never changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

MINUTE_S = 60
#: more than this share of a minute's rows in its first second (1/60 is expected) means minute resolution
WHOLE_MINUTE_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Maps data time to the sender's clock: the row due at `data_s` leaves at `clock_s`."""

    clock_s: float  #: reading of the sender's clock at the start
    data_s: float  #: data time (epoch seconds) that is due at that reading
    speed: float  #: data seconds for each clock second; 0 means that everything is due at once

    def due_s(self, data_s: float) -> float:
        """Clock reading at which data time `data_s` is due."""
        if self.speed == 0:
            return self.clock_s
        return self.clock_s + (data_s - self.data_s) / self.speed

    def delayed(self, seconds: float) -> Pace:
        """The same pace after a pause that must not be caught up by a burst."""
        return replace(self, clock_s=self.clock_s + seconds)

    def count_due(self, moments: Sequence[float], first: int, now_s: float) -> int:
        """How many of `moments[first:]` (data times, ascending) are due at clock reading `now_s`."""
        if self.speed == 0:
            return len(moments) - first
        reached = self.data_s + (now_s - self.clock_s) * self.speed
        return bisect_right(moments, reached, lo=first) - first


def moments(times: Sequence[int]) -> list[float]:
    """Data time at which each row leaves, ascending.

    `times` are the rows' dropoffs (epoch seconds, ascending), whole minutes: one cut in two is spread twice.
    """
    result: list[float] = []
    start = 0
    while start < len(times):
        end = _run_end(times, start, MINUTE_S)
        result.extend(_spread_minute(times, start, end))
        start = end
    return result


def _spread_minute(times: Sequence[int], start: int, end: int) -> list[float]:
    minute = times[start] // MINUTE_S * MINUTE_S
    in_first_second = bisect_right(times, minute, lo=start, hi=end) - start
    if in_first_second > 1 and in_first_second > WHOLE_MINUTE_SHARE * (end - start):
        return _evenly(minute, MINUTE_S, end - start)
    spread: list[float] = []
    while start < end:
        stop = _run_end(times, start, 1)
        spread.extend(_evenly(times[start], 1, stop - start))
        start = stop
    return spread


def _run_end(times: Sequence[int], start: int, unit_s: int) -> int:
    """Index after the last row that shares the unit of time of row `start`."""
    last = times[start] // unit_s * unit_s + unit_s - 1
    return bisect_right(times, last, lo=start)


def _evenly(start_s: int, length_s: int, count: int) -> list[float]:
    return [start_s + length_s * (index + 0.5) / count for index in range(count)]
