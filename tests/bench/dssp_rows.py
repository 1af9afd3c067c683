"""The rows of the benchmark of DSSP."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured thing: seconds of so many calls, and the bound that the specification sets (None: none)."""

    part: str
    what: str
    times: int
    best_s: float
    median_s: float
    p99_s: float
    bound_s: float | None = None


def timed(
    part: str, what: str, call: Callable[[], object], times: int, *, warm: int = 3, bound_s: float | None = None
) -> Row:
    """Of so many calls, after a few that do not count."""
    for _ in range(warm):
        call()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    seconds.sort()
    best, median, late = seconds[0], statistics.median(seconds), seconds[min(times - 1, times * 99 // 100)]
    return Row(part=part, what=what, times=times, best_s=best, median_s=median, p99_s=late, bound_s=bound_s)
