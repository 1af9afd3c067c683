"""Winsorizes samples: a single one moves a mean or a line by no more than a bound. Pure.

A sample far from what is expected counts as one at NEAR times the spread (P. J. Huber, *Robust Estimation of a Location
Parameter*, 1964): a queue that is left over from a time of too few replicas tells nothing of the time at rest, and
squares would let one such span outweigh a hundred others. SHIFTED samples in a row on one side are no outliers: times
have changed.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Times the spread at which a distance is cut: least squares keep 95 % of their efficiency under normal noise.
NEAR = 1.345
#: Share of the variance of normal noise that is left when it is cut so (Huber's proposal 2).
VARIANCE_LEFT = 0.7102
SHIFTED = 20


@dataclass(slots=True)
class Winsorizing:
    """Of one sequence of samples."""

    _row: int = 0  # samples in a row that were far off; negative: below

    def near(self, value: float, expected: float, spread: float) -> float:
        """The value, or one at NEAR times the spread from the expected one."""
        if abs(value - expected) <= NEAR * spread:
            self._row = 0
            return value
        side = 1 if value > expected else -1
        self._row = self._row + side if self._row * side > 0 else side
        return value if abs(self._row) >= SHIFTED else expected + side * NEAR * spread
