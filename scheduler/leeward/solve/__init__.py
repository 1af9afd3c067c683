"""EDRP: where to run each operator and with how many replicas (see `problem.py` and `outcome.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.solve.problem import Bounds, Node, Operator, Problem, ProblemError, Stream, Weights

if TYPE_CHECKING:
    from leeward.solve.outcome import Outcome

__all__ = ["METHODS", "Bounds", "Node", "Operator", "Problem", "ProblemError", "Stream", "Weights", "solve"]

METHODS = ("exact", "ilp", "restricted")


def solve(
    problem: Problem,
    *,
    method: str = "ilp",
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
) -> Outcome:
    """Solves `problem`: `Optimal`, `Feasible`, `Infeasible` or `Unknown`, every deployment verified.

    `gap` is the relative gap at which a result counts as optimal; `seed` makes a run repeatable.
    Raises `ProblemError` for an unknown method or one that does not apply.
    """
    match method:
        case "exact":
            from leeward.solve.exact import solve_exact

            return solve_exact(problem, time_limit_s=time_limit_s, seed=seed, gap=gap)
        case "ilp":
            from leeward.solve.ilp import solve_ilp

            return solve_ilp(problem, time_limit_s=time_limit_s, seed=seed, gap=gap)
        case "restricted":
            from leeward.solve.restricted import solve_restricted

            return solve_restricted(problem, time_limit_s=time_limit_s, seed=seed, gap=gap)
    raise ProblemError("method", method, "is not a method", remedy=f"choose one of {', '.join(METHODS)}")
