"""Response-time curves, learnt by recursive least squares with forgetting.

Divided by the M/M/1 time s / (1 - rho), the curve of `core.learnt.LearntCurve` is a straight line in the utilisation
rho:

    y = R (1 - rho) / s = b (1 - rho) + g rho

A sample is one replica over one span: R, the mean sojourn time of its tuples (wait and service); s, its service time;
rho, the share of the span in which it was busy. So b and g come from linear least squares with regressors between 0 and
1, and noise is relative to the time itself. The prior is M/M/1 (b = g = 1), so that rates that no sample shows keep the
model's form, and say that it is not sure. It counts as known up to PRIOR_ERROR, or up to as much as the samples are off
it: tuples that come in bursts stay a hundred times as long as M/M/1 has it, and the prior must not hold that back. The
noise of the samples is what they are away from their own line, for the same reason. A sample far from the line counts
less (`winsorizing.py`).

The samples that are cut make the error too small. With times that are 20 % off at most, 95 of 100 fits are within 2.5
errors of the curve, not 2, and within 4 where y grows with rho from 0.5 to 4.5: its noise grows with it, and the cut
takes it for the same everywhere.

The estimate is kept as sums (information form), in which forgetting is a factor: it never diverges, and a direction in
which nothing new is seen goes back to the prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from leeward.control.learning.aging import kept_share
from leeward.control.learning.winsorizing import SHIFTED, VARIANCE_LEFT, Winsorizing
from leeward.core.learnt import LearntCurve

#: A sample counts half after this time, s.
HALF_LIFE_S = 3600.0
#: Standard deviation of b and of g around 1 before any sample.
PRIOR_ERROR = 0.5
#: Relative noise of a sample that the prior expects, and the number of samples for which that expectation counts.
NOISE, NOISE_WEIGHT = 0.2, 4.0
#: Weight of the prior in the line that the noise is measured from: next to none.
TRACE = 1e-6
#: Samples that count in full.
UNCUT = 5.0
#: Curves and selectivities are learnt from spans of so long, s, or of the time between two looks if that is longer.
SPAN_S = 10.0
#: Over this utilisation a queue is not stationary within a span.
MOST_BUSY = 0.95
#: Nor where tuples stay for this share of the span and so many times as long as M/M/1 has it: a queue is worked off,
#: unless SHIFTED samples in a row say so.
LONG_STAY, LONG_WAIT = 0.1, 10.0
#: The wait grows at least by this much, so that the curve has its limit at full use.
LEAST_GROWTH = 0.02
#: A mean of fewer tuples says little.
LEAST_TUPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The tuples of one replica over one span."""

    tuples: int  #: of which the sojourn time is known
    sojourn_s: float  #: their mean
    service_s: float  #: mean time that the replica was busy with a tuple
    busy: float  #: share of the span in which it was busy
    span_s: float = SPAN_S  #: length of the span

    @property
    def usable(self) -> bool:
        """Enough tuples, a replica that keeps up, and figures that can be."""
        figures = self.sojourn_s, self.service_s, self.busy
        return (
            self.tuples >= LEAST_TUPLES and all(map(math.isfinite, figures)) and min(figures) > 0.0
            and self.busy <= MOST_BUSY
        )  # fmt: skip

    @property
    def long(self) -> bool:
        """Probably of a queue that is worked off."""
        return self.sojourn_s > LONG_STAY * self.span_s and self.relative > LONG_WAIT

    @property
    def relative(self) -> float:
        """y of the module."""
        return self.sojourn_s * (1.0 - self.busy) / self.service_s


@dataclass(slots=True)
class CurveLearner:
    """The curve of one component, from the stays of its replicas."""

    samples: float = 0.0
    low: float = 1.0
    high: float = 0.0
    _at: float | None = None
    #: Sums over samples of weight times: (1-rho)^2, (1-rho) rho, rho^2, (1-rho) y, rho y, y^2.
    _sums: list[float] = field(default_factory=lambda: [0.0] * 6)
    _long: int = 0  # samples in a row that were long
    _winsorizing: Winsorizing = field(default_factory=Winsorizing)

    def add(self, stay: Stay, now: float) -> None:
        """One more sample; one that is not usable is left out."""
        if not stay.usable:
            return
        self._long = self._long + 1 if stay.long else 0
        if 0 < self._long < SHIFTED:
            return
        self._forget(now)
        rho, y = stay.busy, self._near(stay)
        idle = 1.0 - rho
        for at, more in enumerate((idle * idle, idle * rho, rho * rho, idle * y, rho * y, y * y)):
            self._sums[at] += more
        self.samples += 1.0
        self.low, self.high = min(self.low, rho), max(self.high, rho)

    def _near(self, stay: Stay) -> float:
        """y of the sample, not too far from the line; the spread is the noise and the line's own error there."""
        if self.samples < UNCUT:
            return stay.relative
        rest, growth, noise, (b, bg, g) = self._line()
        rho, idle = stay.busy, 1.0 - stay.busy
        spread = math.sqrt(noise**2 + b * idle * idle + 2 * bg * idle * rho + g * rho * rho)
        return max(0.0, self._winsorizing.near(stay.relative, rest * idle + growth * rho, spread))

    def _forget(self, now: float) -> None:
        kept = kept_share(self._at, now, HALF_LIFE_S)
        self._at = now if self._at is None else max(now, self._at)
        self._sums = [kept * value for value in self._sums]
        self.samples *= kept

    def kept(self) -> tuple[float, ...]:
        """Samples, lowest and highest utilisation, time of the newest sample, sums: all that it goes on from."""
        return (self.samples, self.low, self.high, self._at or 0.0, *self._sums)

    @classmethod
    def of(cls, kept: Sequence[float], now: float) -> CurveLearner:
        """As it was kept, and aged until `now`."""
        samples, low, high, at, *sums = kept
        learner = cls(samples, low, high, min(at, now), list(sums))
        learner._forget(now)
        return learner

    def fit(self, service_s: float) -> LearntCurve | None:
        """The curve for a service time of `service_s`; None before the first sample."""
        if not self.samples or not 0.0 < service_s < math.inf:
            return None
        _, _, noise, _ = self._line()
        loose = max(PRIOR_ERROR, math.sqrt(self._left(1.0, 1.0) / self.samples))
        rest, growth, spread = self._solve(noise, prior=max(TRACE, (noise / loose) ** 2))
        return LearntCurve(
            service_s=service_s, rest=rest, growth=growth, samples=self.samples, low=self.low, high=self.high,
            covariance=spread,
        )  # fmt: skip

    def _line(self) -> tuple[float, float, float, tuple[float, float, float]]:
        """(b, g, relative noise, covariance of b and g) of the samples alone."""
        rest, growth, (b, bg, g) = self._solve(1.0, prior=TRACE)
        left = self._left(rest, growth) / VARIANCE_LEFT
        noise = math.sqrt((NOISE_WEIGHT * NOISE**2 + left) / (NOISE_WEIGHT + self.samples))
        return rest, growth, noise, (noise**2 * b, noise**2 * bg, noise**2 * g)

    def _solve(self, noise: float, *, prior: float) -> tuple[float, float, tuple[float, float, float]]:
        """(b, g, their covariance) for samples with this relative noise, and a prior that counts as so many samples."""
        a, b, d, u, v = self._sums[0] + prior, self._sums[1], self._sums[2] + prior, *self._sums[3:5]
        u, v = u + prior, v + prior
        det = a * d - b * b  # at least prior^2
        rest, growth = (d * u - b * v) / det, (a * v - b * u) / det
        if growth < LEAST_GROWTH:
            growth, rest = LEAST_GROWTH, (u - b * LEAST_GROWTH) / a
        if rest < 0.0:
            rest, growth = 0.0, max(LEAST_GROWTH, v / d)
        scale = noise**2 / det
        return rest, growth, (scale * d, -scale * b, scale * a)

    def _left(self, rest: float, growth: float) -> float:
        """Sum of squares of what the samples are away from this line."""
        a, b, d, u, v, y = self._sums
        left = y - 2 * (rest * u + growth * v) + rest * rest * a + 2 * rest * growth * b + growth * growth * d
        return max(0.0, left)
