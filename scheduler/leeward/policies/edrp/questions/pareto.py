"""The exact trade-off between response time and cost: every deployment that no other beats in both.

The cheapest deployment and the fastest one are the ends.  Then boxes, bounds on R and C at once, the largest first: the
least weighted sum within a box is a point that nothing beats, and leaves two smaller boxes, faster ones and cheaper
ones; a box without a deployment is closed.  Once all are closed, what was found is the whole curve.  A weighted sum
is what the exact search proves fastest; least R alone under a bound on C is what it is slowest at.
(After the balanced box method: Boland, Charkhgard and Savelsbergh, INFORMS Journal on Computing 27(4), 2015.)
Where something is running, each point is then the one of the least T_D.  Points closer than `RESOLUTION` count as one.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.evaluate import Metrics, evaluate, verify
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Optimal, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Deployment, Weights

#: Relative distance of two values below which they are one: ten times the slack of the exact search.
RESOLUTION = 1e-6
SPEED, MONEY, STABLE = Weights(r=1, c=0, d=0), Weights(r=0, c=1, d=0), Weights(r=0.25, c=0.25, d=0.5)
#: Where one of two is at its least already, and its bound says so.
BOTH = Weights(r=0.5, c=0.5, d=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One deployment of the curve; F is that of the problem as stated."""

    deployment: Deployment
    metrics: Metrics
    #: Whether its solves were closed; otherwise something may beat it.
    proven: bool

    @property
    def replicas(self) -> int:
        return sum(sum(placed.values()) for placed in self.deployment.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Deployments with R and C up to `r` and `c`; none is known below `r_low` and `c_low`."""

    r: float
    c: float
    r_low: float
    c_low: float

    @property
    def area(self) -> float:
        return (self.r - self.r_low) * (self.c - self.c_low)

    @property
    def weights(self) -> Weights:
        """Those under which two opposite corners of the box are worth the same."""
        r, c = self.r / max(self.r - self.r_low, 1e-9 * self.r), self.c / max(self.c - self.c_low, 1e-9 * self.c)
        return Weights(r=r / (r + c), c=1 - r / (r + c), d=0)

    def around(self, point: Point) -> tuple[Box, Box]:
        """The parts of the box that are faster and cheaper than the point."""
        R, C = point.metrics.R, point.metrics.C
        faster, cheaper = replace(self, r=R * (1 - RESOLUTION)), replace(self, c=C * (1 - RESOLUTION))
        if point.proven:
            return replace(faster, c_low=C), replace(cheaper, r_low=R)
        return faster, cheaper


@dataclass(kw_only=True)
class Tracer:
    """Solves one problem under other weights and bounds until the deadline."""

    problem: Problem
    method: str = "auto"
    seed: int = 0
    deadline: float = math.inf
    #: Seconds for each solve at first; a solve that needs more gets it once all others have had their turn.
    each_s: float = math.inf
    clock: Callable[[], float] = time.monotonic
    #: Told each step before it is solved.
    notify: Callable[[str], None] = lambda step: None
    #: Deployments found, to begin a solve with.
    _known: list[Deployment] = field(default_factory=list)

    def trace(self, points: int | None = None) -> Iterator[Point | Infeasible | Unknown]:
        """Points of the curve: the cheapest, the fastest, then those in between, the widest gap first.

        With `points` it ends after so many (>= 2).  Without, and without an `Unknown` at the end, the points that
        no other beats are the whole curve.  An `Infeasible` instead of the first point means that there is none.
        """
        return itertools.islice(self._trace(), points)

    def _trace(self) -> Iterator[Point | Infeasible | Unknown]:
        bounds = self.problem.bounds
        cheapest = self._end("cheapest", MONEY, bounds)
        yield cheapest
        if not isinstance(cheapest, Point):
            return
        fastest = self._end("fastest", SPEED, bounds)
        if not isinstance(fastest, Point):
            yield Unknown(why="the time limit was reached before the fastest was found", effort=self._effort)
            return
        if fastest.metrics.C > cheapest.metrics.C * (1 + RESOLUTION):
            yield fastest
        yield from self._between(cheapest, fastest)

    def _between(self, cheapest: Point, fastest: Point) -> Iterator[Point | Unknown]:
        """Everything else, and what shows that nothing is missing."""
        bounds, number, left = self.problem.bounds, itertools.count(), 0
        boxes: list[tuple[int, float, int, Box]] = []

        def put(box: Box, turn: int) -> None:
            if box.r > box.r_low and box.c > box.c_low:
                heapq.heappush(boxes, (turn, -box.area, next(number), box))

        wide = Box(r=bounds.r, c=bounds.c, r_low=0.0, c_low=0.0)
        if cheapest.proven:
            wide = replace(wide, r=cheapest.metrics.R * (1 - RESOLUTION), c_low=cheapest.metrics.C)
        first = [replace(wide, r_low=fastest.metrics.R, c=fastest.metrics.C * (1 - RESOLUTION))]
        if not fastest.proven:
            first = list(wide.around(fastest))
        for box in first:
            put(box, 0)
        while boxes:
            turn, *_, box = heapq.heappop(boxes)
            what = f"R up to {1000 * box.r:.6g} ms, C up to {box.c:.6g} $/h"
            outcome = self._least(what, box.weights, replace(bounds, r=box.r, c=box.c), turn)
            if isinstance(outcome, Optimal | Feasible):
                point = self._steady(outcome, bounds)
                yield point
                for smaller in box.around(point):
                    put(smaller, turn)
            elif isinstance(outcome, Unknown) and math.isfinite(self.each_s) and self.clock() < self.deadline:
                put(box, turn + 1)
            elif isinstance(outcome, Unknown):
                left += 1
        if left:
            gaps = "one gap" if left == 1 else f"{left} gaps"
            why = f"the time limit was reached with {gaps} of the curve not searched to the end"
            yield Unknown(why=why, effort=self._effort)

    def _end(self, what: str, weights: Weights, bounds: Bounds) -> Point | Infeasible | Unknown:
        """Least R or C, and of those that have it the one with the least of the other."""
        one = self._least(what, weights, bounds)
        if isinstance(one, Infeasible | Unknown):
            return one
        tight = _up_to(bounds, one.metrics.R, math.inf) if weights is SPEED else _up_to(bounds, math.inf, one.metrics.C)
        both = self._least(what, BOTH, tight)
        if isinstance(both, Infeasible | Unknown):
            return Point(deployment=one.deployment, metrics=evaluate(self.problem, one.deployment), proven=False)
        point = self._steady(both, bounds)
        return replace(point, proven=point.proven and isinstance(one, Optimal))

    def _steady(self, outcome: Optimal | Feasible, bounds: Bounds) -> Point:
        """The point of what was found: with the least T_D at its R and C, where something is running."""
        deployment, proven = outcome.deployment, isinstance(outcome, Optimal)
        if self.problem.current is not None:
            tight = _up_to(bounds, outcome.metrics.R, outcome.metrics.C)
            steady = self._least("least T_D there", STABLE, tight)
            proven = proven and isinstance(steady, Optimal)
            if isinstance(steady, Optimal | Feasible):
                deployment = steady.deployment
        return Point(deployment=deployment, metrics=evaluate(self.problem, deployment), proven=proven)

    def _least(self, what: str, weights: Weights, bounds: Bounds, turn: int = 0) -> Outcome:
        """The problem under other weights and bounds, begun with the best of what is known."""
        left_s = self.deadline - self.clock()
        if left_s <= 0:
            return Unknown(why="the time limit was reached before the curve was complete", effort=self._effort)
        self.notify(what)
        problem = replace(self.problem, weights=weights, bounds=bounds)
        fitting = (known for known in self._known if not verify(problem, known))
        start = min(fitting, key=lambda known: evaluate(problem, known).F, default=None)
        limit_s = min(left_s, self.each_s * 4**turn)
        outcome = solve(
            problem,
            method=self.method,
            time_limit_s=None if math.isinf(limit_s) else limit_s,
            seed=self.seed,
            start=start,
            reasons=not self._known,
        )
        if isinstance(outcome, Optimal | Feasible):
            self._known.append(outcome.deployment)
        return outcome

    @property
    def _effort(self) -> Effort:
        return Effort(method=self.method, seconds=0.0)


def _up_to(bounds: Bounds, r: float, c: float) -> Bounds:
    """Tightened to these values, with room for rounding; a bound is never 0, so that of a 0 is next to nothing."""
    r, c = max(r, RESOLUTION * bounds.r), max(c, RESOLUTION * bounds.c)
    return replace(bounds, r=min(bounds.r, r * (1 + RESOLUTION)), c=min(bounds.c, c * (1 + RESOLUTION)))


def unbeaten(points: list[Point]) -> list[Point]:
    """Those that no other beats in both R and C, the fastest first; of equals the one of the least T_D."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.metrics.C, p.metrics.R, p.metrics.T_D)):
        if not kept or point.metrics.R < kept[-1].metrics.R * (1 - RESOLUTION):
            kept.append(point)
    return kept[::-1]
