"""Rates over the public network: log2 of observed over allocated rate is normal, and drawn anew every 10 ms (6.1).

Without buffers a task runs at the rate of its slowest public hop of each 10 ms, at most at the wanted rate.  Over the
tens of thousands of draws in a task's life that is its mean: `share(hops)`, exact by an integral, not a draw.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

#: Whether the allocated bandwidth is the median of what is observed, or its mean.  The paper calls it the mean.
Allocated = Literal["median", "mean"]
SIGMA = 1.0  #: of the log2
#: Mean over median of a rate: 2^N(0, sigma) has mean exp((sigma ln 2)^2 / 2).
MEAN_OVER_MEDIAN = math.exp((SIGMA * math.log(2)) ** 2 / 2)
#: Of the integral over the log2, in sigmas, and its steps.
REACH, STEPS = 8.0, 4000


@lru_cache(maxsize=4096)
def share(factors: tuple[float, ...]) -> float:
    """E[min(1, min_i f_i 2^Z_i)]: the mean part of the wanted rate that a task gets over public hops.

    `factors`: for each hop its median rate over the wanted one.  With no hop it is 1.  It is the integral from 0 to 1
    of P(all f_i 2^Z_i > x) dx.
    """
    if not factors:
        return 1.0
    low = -REACH * SIGMA
    width = -low / STEPS
    total = 0.0
    for step in range(STEPS):
        y = low + (step + 0.5) * width  # log2 x
        above = 1.0
        for factor in factors:
            above *= _beyond((y - math.log2(factor)) / SIGMA)
        total += above * 2.0**y * math.log(2) * width
    return float(total + 2.0**low)


def _beyond(z: float) -> float:
    """P(Z > z)."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def factor(allocated: Allocated, rate_share: float = 1.0) -> float:
    """Median rate of a hop over the wanted one, where `rate_share` of the wanted rate is allocated to it."""
    return rate_share if allocated == "median" else rate_share / MEAN_OVER_MEDIAN
