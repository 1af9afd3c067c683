"""Distribution functions of a node's response time, while it is idle."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from leeward.policies.dssp.model.budgets import Distribution

Shape = Literal["uniform", "exponential", "constant"]


def distribution(mean: float, shape: Shape) -> Distribution:
    """Of a mean, s: uniform on (0, 2 mean), exponential, or always the mean."""
    if shape == "uniform":
        return lambda t: min(1.0, t / (2 * mean))
    if shape == "exponential":
        return lambda t: -math.expm1(-t / mean)
    return lambda t: float(t >= mean)


def empirical(samples: Sequence[float]) -> Distribution:
    """Of measured times, s."""
    ordered = sorted(samples)
    return lambda t: bisect_right(ordered, t) / len(ordered)
