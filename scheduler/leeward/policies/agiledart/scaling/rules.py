"""Rules that find the number of instances: told measurements, each says the next number, or "rest" (spec section 2).

A phase is the time between two rests. An evaluation is the health at one number of instances; `evaluations` counts
those of the phase, and is set back by the first measurement after a rest that makes the rule move.
Pure: the caller measures, scales and measures again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from statistics import fmean
from typing import Literal, Protocol

from leeward.policies.agiledart.scaling.health import Load, health, need, whole

#: "measure": the window is not full; "rest": stay; a number: scale to it.
Answer = int | Literal["measure", "rest"]

#: Health at which the guarded rule rests: at least so far below 1, and above it.
BELOW, ABOVE, ABOVE_ERRORS = 0.02, 0.05, 6.0
#: Standard errors over 1 at which it aims.
AIM_ERRORS = 2.0
#: Least slope of the secant, as a share of f/x.
FLATTEST = 0.25
#: A move after the first one of a phase changes the number by this factor at most.
STEP = 2.0
#: Ours beside the spec's, against a rate that is not served where the queue is nearly empty: instances serve the mean
#: rate of the phase with so many standard errors to spare where the rule aims, and where it rests. The upper edge of
#: the band is as far above the aim then as it is in the spec.
AIM_SERVED, REST_SERVED = 4.5, 4.0
#: Ours, too: a slope that differs from f/x by fewer standard errors is noise.
SLOPE_ERRORS = 3.0
#: Rates that differ by more are not of one phase.
SAME_ERRORS = 3.0
#: Windows of a phase whose rates count.
RATES = 4
#: Change of health at rest that begins a new phase of the plain rule.
NEW_PHASE = 0.02


class Rule(Protocol):
    """Finds the number of instances."""

    @property
    def evaluations(self) -> int:
        """Evaluations in this phase, or, at rest, in the one that ended."""

    def tell(self, load: Load) -> Answer:
        """A measurement, at the number of instances that is in force, which need not be the one said last."""


def secant(x: int, f: float, x_before: int, f_before: float) -> int:
    """The paper's next number after evaluations f at `x` and `f_before` at another number: where their line has f = 1.

    Rounded up, and never below 0.
    """
    if math.isinf(f) or math.isinf(f_before):  # an empty queue or no rate: f = 1 at 0
        return 0
    if f == f_before:
        return x
    return whole(x + (1 - f) * (x - x_before) / (f - f_before))


def aim(wanted: float, error: float, rate: float, error_of_rate: float) -> float:
    """The health x/wanted that the guarded rule moves to: 1 + 2 sm, or more where the rate alone needs it.

    `wanted`: instances of rate and queue, above 0; `rate`: of the rate alone; errors are shares of them.
    """
    return max(1 + AIM_ERRORS * error, rate / wanted * (1 + AIM_SERVED * error_of_rate))


class SecantRule:
    """The paper's: two guesses, the secant through the last two evaluations, until a number comes out again.

    Without noise that is the solution and its check. Numbers are rounded up, and never below 0.
    """

    def __init__(self, *, q: float, a: float = 0.5, second: int | None = None) -> None:
        """`q`: tuples of queue that an instance is worth; `a`: weight of the rate, in [0, 1].

        `second`: guess of a phase after the number in force; None: one instance more.
        """
        self._q, self._a, self._second = q, a, second
        self._last: tuple[int, float] | None = None  # x_{n-1}, f(x_{n-1})
        self._rested: tuple[int, float] | None = None
        self.evaluations = 0

    def tell(self, load: Load) -> Answer:
        """See the protocol; never "measure"."""
        f = health(load.x, load, q=self._q, a=self._a)
        if self._rested is not None:
            x, before = self._rested
            if load.x == x and (f == before or abs(f - before) <= NEW_PHASE * before):
                return "rest"
            self._rested, self._last, self.evaluations = None, None, 0
        self.evaluations += 1
        if self._last is None or self._last[0] == load.x:
            if self._last is not None:  # it could not have what it asked for
                return self._rest(load.x, f)
            self._last = (load.x, f)
            return load.x + 1 if self._second is None or self._second == load.x else self._second
        x = secant(load.x, f, *self._last)
        self._last = (load.x, f)
        return self._rest(load.x, f) if x == load.x else x

    def _rest(self, x: int, f: float) -> Answer:
        self._rested, self._last = (x, f), None
        return "rest"


class GuardedRule:
    """Ours: rests at about the number that serves the rate and works the queue off, whatever the noise.

    f(x) = x r/(R + Q/T_drain) from the mean of a window, with standard error sm. It rests within
    [1 - max(2 %, sm), 1 + max(5 %, 1/x, 6 sm)], or where no other number comes out, and aims at 1 + 2 sm by the secant,
    whose slope is kept within [1/4, 1] f/x; after the first move of a phase times 2 or half at most.

    Beside the spec, a slope within noise of f/x is f/x, and the rule neither aims nor rests below a number that serves
    the mean rate of the phase with some errors to spare (`AIM_SERVED`, `REST_SERVED`, `SLOPE_ERRORS`).
    """

    def __init__(self, *, drain_s: float, window: int = 1, least: int = 1) -> None:
        """`drain_s`: T_drain, s, above 0; `window`: measurements of an evaluation; `least`: instances, at least 1."""
        self._drain_s, self._size, self._least = drain_s, window, least
        self._window: deque[tuple[float, float]] = deque(maxlen=window)  # need, and the rate's part of it
        self._rates: deque[float] = deque(maxlen=RATES * window)  # of the phase, before the window
        self._x = -1
        self._last: tuple[int, float, float] | None = None  # x_{n-1}, f(x_{n-1}), its standard error as a share
        self._here: tuple[int, float, float] | None = None  # the same of the newest evaluation
        self._moved = False
        self._resting = True
        self.evaluations = 0

    def tell(self, load: Load) -> Answer:
        """See the protocol; "measure" until the window has measurements of this number of instances alone.

        At a number that was evaluated already, each further measurement moves the window on, and is answered.
        """
        if load.x != self._x:
            self._rates.extend(rate for _, rate in self._window)
            self._window.clear()
            # a number in between may have had no evaluation
            before = self._here if self._here is not None and self._here[0] != load.x else None
            self._moved, self._last, self._x = not self._resting, before, load.x
        self._window.append((need(load, drain_s=self._drain_s), load.R / load.r))
        return self._evaluate(load.x) if len(self._window) == self._size else "measure"

    def _evaluate(self, x: int) -> Answer:
        if self._resting:
            self._begin()
        if self._here is None or self._here[0] != x:
            self.evaluations += 1
        wanted, error = _mean([one for one, _ in self._window])
        rate, error_of_rate = self._rate()
        f = x / wanted if wanted > 0 else math.inf
        self._here = (x, f, error)
        if wanted <= 0:
            next_x = self._least
        else:
            goal = aim(wanted, error, rate, error_of_rate)
            if x >= rate * (1 + REST_SERVED * error_of_rate) and _in_band(x, f, error, goal):
                return self._rest()
            next_x = whole(goal * wanted) if x == 0 else whole(x + (goal - f) / self._slope(x, f, error))
        if self._moved:
            next_x = min(max(next_x, whole(x / STEP)), max(1, int(x * STEP)))
        next_x = max(next_x, self._least)
        return self._rest() if next_x == x else next_x

    def _begin(self) -> None:
        """A phase, of which the window is all that is known."""
        self._resting, self._moved, self._last, self._here, self.evaluations = False, False, None, None, 0
        self._rates.clear()

    def _rest(self) -> Answer:
        self._resting = True
        return "rest"

    def _rate(self) -> tuple[float, float]:
        """Of the whole phase, as instances and its error, unless the rate has changed since."""
        here = [rate for _, rate in self._window]
        (now, error), (before, error_before) = _mean(here), _mean(self._rates or here)
        if abs(now - before) > SAME_ERRORS * math.hypot(now * error, before * error_before):
            self._rates.clear()
        return _mean([*self._rates, *here])

    def _slope(self, x: int, f: float, error: float) -> float:
        steepest = f / x
        if self._last is None or not math.isfinite(self._last[1]):
            return steepest
        x_before, f_before, error_before = self._last
        slope = (f - f_before) / (x - x_before)
        unsure = SLOPE_ERRORS * math.hypot(f * error, f_before * error_before) / abs(x - x_before)
        return steepest if abs(slope - steepest) <= unsure else min(max(slope, FLATTEST * steepest), steepest)


def _in_band(x: int, f: float, error: float, goal: float) -> bool:
    if x == 0:
        return False
    highest = max(1 + max(ABOVE, 1 / x, ABOVE_ERRORS * error), goal + (ABOVE_ERRORS - AIM_ERRORS) * error)
    return 1 - max(BELOW, error) <= f <= highest


def _mean(values: Collection[float]) -> tuple[float, float]:
    """Mean, and its standard error as a share of it; 0 for one value, or a mean of 0."""
    mean, count = fmean(values), len(values)
    if count < 2 or mean <= 0:
        return mean, 0.0
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count) / mean
