"""The rest of the time from source to sink: measured less modelled, with its error. Pure.

The policy's model adds up the time in each component and the delays between nodes. A result also waits until its pulse
is in from every upstream task, for the interval in which a source emits, and in the queues of workers. These waits
depend on the application, hardly on the places of replicas. So the rest is learnt as one number, and is added to the
modelled time where it is told. Plans are compared without it: a constant changes no order, and a bound on the response
time stays one on the parts that a placement can change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from leeward.control.learning.aging import kept_share
from leeward.control.learning.winsorizing import VARIANCE_LEFT, Winsorizing
from leeward.core.learnt import Rest

#: A sample counts half after this time, s.
HALF_LIFE_S = 600.0
#: With fewer samples nothing is added, and none is cut (`winsorizing.py`).
LEAST_SAMPLES = 5.0
#: Samples so far apart do not count as far off, s.
LEAST_SPREAD_S = 0.005


@dataclass(slots=True)
class RestLearner:
    """Of one topology."""

    _weight: float = 0.0
    _sum: float = 0.0
    _squares: float = 0.0
    _at: float | None = None
    _winsorizing: Winsorizing = field(default_factory=Winsorizing)

    def add(self, measured_s: float, modelled_s: float, now: float) -> None:
        """Measured by results of the last seconds, and modelled for the deployment in force; both s."""
        off = measured_s - modelled_s
        if not math.isfinite(off) or measured_s <= 0.0:
            return
        self._forget(now)
        if self._weight >= LEAST_SAMPLES:
            mean, variance = self._moments()
            off = self._winsorizing.near(off, mean, math.sqrt(variance / VARIANCE_LEFT + LEAST_SPREAD_S**2))
        self._weight += 1.0
        self._sum += off
        self._squares += off * off

    def _forget(self, now: float) -> None:
        kept = kept_share(self._at, now, HALF_LIFE_S)
        self._at = now
        self._weight, self._sum, self._squares = kept * self._weight, kept * self._sum, kept * self._squares

    def kept(self) -> tuple[float, ...]:
        """Samples, sum, squares, time of the newest sample: all that it goes on from; () before the first."""
        return (self._weight, self._sum, self._squares, self._at or 0.0) if self._weight else ()

    @classmethod
    def of(cls, kept: Sequence[float], now: float) -> RestLearner:
        """As it was kept, and aged until `now`."""
        if not kept:
            return cls()
        weight, total, squares, at = kept
        learner = cls(weight, total, squares, at)
        learner._forget(now)
        return learner

    def fit(self) -> Rest | None:
        """None while too few samples count."""
        if self._weight < LEAST_SAMPLES:
            return None
        mean, variance = self._moments()
        return Rest(mean, math.sqrt(variance / VARIANCE_LEFT / self._weight), self._weight)

    def _moments(self) -> tuple[float, float]:
        """(mean, variance) of the samples; at least one counts."""
        mean = self._sum / self._weight
        return mean, max(0.0, self._squares / self._weight - mean * mean)
