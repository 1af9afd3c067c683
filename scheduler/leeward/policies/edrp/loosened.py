"""Bounds that cannot be met: which of them yield, and by how much. Pure.

The paper (constraints 15-17) has no deployment then. Load that can be served is served, so cost yields to capacity; for
a lower response time or downtime it does not, so those two yield to cost (ADR 70).
"""

from __future__ import annotations

from dataclasses import replace

from leeward.policies.edrp.problem.evaluate import TOLERANCE
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Weights

#: By how much a bound may be exceeded when it cannot be met.
WIDER = 10.0


def cheapest(problem: Problem) -> Problem:
    """The question for the least cost of a deployment that serves the load, with each bound WIDER times as wide."""
    bounds = problem.bounds
    wide = Bounds(r=bounds.r * WIDER, c=bounds.c * WIDER, d=bounds.d * WIDER)
    return replace(problem, bounds=wide, weights=Weights(r=0.0, c=1.0, d=0.0))


def loosened(problem: Problem, least_cost: float) -> tuple[Problem, str]:
    """The problem with bounds that can be met, and a remark that names those that could not.

    `least_cost`: $/h, of the answer to `cheapest`. R_max and T_D,max become WIDER times as wide, C_max as much as that
    costs. A millisecond, a dollar and a second stay worth the same to each other, though bounds normalise the objective
    (12).
    """
    bounds, weights = problem.bounds, problem.weights
    wide = Bounds(r=bounds.r * WIDER, c=max(bounds.c, least_cost), d=bounds.d * WIDER)
    worth = (weights.r * wide.r / bounds.r, weights.c * wide.c / bounds.c, weights.d * wide.d / bounds.d)
    scaled = Weights(**dict(zip("rcd", (one / sum(worth) for one in worth), strict=True)))
    if least_cost > bounds.c * (1 + TOLERANCE):
        why = f"C_max {bounds.c:g} $/h cannot be met: this load takes {least_cost:g} $/h"
    else:
        why = f"R_max {bounds.r:g} s or T_D,max {bounds.d:g} s cannot be met: {WIDER:g} times as much is allowed"
    return replace(problem, bounds=wide, weights=scaled), why
