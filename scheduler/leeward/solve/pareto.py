"""The exact trade-off between response time and cost: every deployment that no other beats in both.

Epsilon-constraint: the least C of all, for a deployment to begin each search with; then least R under a bound on C,
least C at that R, and (where something is running) least T_D at both; the next bound on C is just below the cost
found.  Points closer than `RESOLUTION` count as one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from leeward.solve import solve
from leeward.solve.evaluate import Metrics, evaluate, verify
from leeward.solve.outcome import Effort, Infeasible, Optimal, Outcome, Unknown
from leeward.solve.problem import Bounds, Deployment, Problem, Weights

#: Relative distance of two values below which they are one: ten times the slack of the exact search.
RESOLUTION = 1e-6

Goal = Literal["r", "c", "d"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One deployment of the curve; F is that of the problem as stated."""

    deployment: Deployment
    metrics: Metrics
    #: Whether all its solves were closed; otherwise something may beat it.
    proven: bool

    @property
    def replicas(self) -> int:
        return sum(sum(placed.values()) for placed in self.deployment.values())


@dataclass(kw_only=True)
class Tracer:
    """Solves one problem for one goal at a time until the deadline."""

    problem: Problem
    method: str = "auto"
    seed: int = 0
    deadline: float = math.inf
    #: Seconds for each solve at most; a point that wants more is not proven.
    each_s: float = math.inf
    clock: Callable[[], float] = time.monotonic
    #: Told each step before it is solved.
    notify: Callable[[str], None] = lambda step: None
    #: Deployments to begin a solve with: the cheapest, and the last that was found.
    _cheapest: Deployment | None = None
    _last: Deployment | None = None

    def trace(self, points: int | None = None) -> Iterator[Point | Infeasible | Unknown]:
        """The curve from the least R to the least C.

        With `points`, at most so many (>= 2), at about equal steps of cost.  An `Infeasible` instead of the first
        point means that there is none; an `Unknown` ends a curve that the deadline cut off.
        """
        bounds = self.problem.bounds
        cheapest = self.least("c", bounds)
        if isinstance(cheapest, Infeasible | Unknown):
            yield cheapest
            return
        self._cheapest = self._last = cheapest.deployment  # it meets every bound on C that follows
        cap, caps = bounds.c, None
        while cap > 0:
            found = self.point(replace(bounds, c=cap))
            if isinstance(found, Infeasible) and caps is not None:
                return
            yield found
            if not isinstance(found, Point):
                return
            below = found.metrics.C * (1 - RESOLUTION)
            if points is None:
                cap, caps = below, ()
                continue
            caps = even_caps(found.metrics.C, cheapest.metrics.C, points) if caps is None else caps
            cap = next((even for even in caps if even < below), 0.0)

    def point(self, bounds: Bounds) -> Point | Infeasible | Unknown:
        """Least R within the bounds, then least C, then least T_D."""
        goals: tuple[Goal, ...] = ("r", "c") if self.problem.current is None else ("r", "c", "d")
        proven, best = True, None
        for goal in goals:
            outcome = self.least(goal, bounds)
            if isinstance(outcome, Infeasible | Unknown):
                if best is None:
                    return outcome
                proven = False  # the point before stands, within the solver's tolerance or the time there was
                continue
            best = outcome
            self._last = best.deployment
            proven = proven and isinstance(outcome, Optimal)
            value = {"r": best.metrics.R, "c": best.metrics.C, "d": best.metrics.T_D}[goal]
            reached = value * (1 + RESOLUTION)
            if reached > 0:
                bounds = replace(bounds, **{goal: min(getattr(bounds, goal), reached)})
        assert best is not None
        metrics = evaluate(self.problem, best.deployment)
        return Point(deployment=best.deployment, metrics=metrics, proven=proven)

    def least(self, goal: Goal, bounds: Bounds) -> Outcome:
        """The problem with all weight on one goal."""
        left = self.deadline - self.clock()
        if left <= 0:
            why = "the time limit was reached before the curve was complete"
            return Unknown(why=why, effort=Effort(method=self.method, seconds=0.0))
        names = {"r": "R", "c": "C", "d": "T_D"}
        self.notify(f"least {names[goal]} at C up to {bounds.c:.6g} $/h")
        weights = Weights(**{key: 1.0 if key == goal else 0.0 for key in "rcd"})
        problem = replace(self.problem, weights=weights, bounds=bounds)
        limit_s = None if math.isinf(left) and math.isinf(self.each_s) else min(left, self.each_s)
        start = next((known for known in (self._last, self._cheapest) if known and not verify(problem, known)), None)
        return solve(problem, method=self.method, time_limit_s=limit_s, seed=self.seed, start=start)


def even_caps(highest: float, lowest: float, points: int) -> tuple[float, ...]:
    """Bounds on C for all but the first of `points` points, the last just enough for the least cost."""
    step = (highest - lowest) / (points - 1)
    return tuple((highest - number * step) * (1 + 2 * RESOLUTION) for number in range(1, points))
