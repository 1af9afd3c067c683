"""EDRP: where to run each operator and with how many replicas (see `problem.py` and `outcome.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.solve.problem import Bounds, Node, Operator, Problem, ProblemError, Stream, Weights

if TYPE_CHECKING:
    from leeward.solve.outcome import Outcome

__all__ = ["METHODS", "Bounds", "Node", "Operator", "Problem", "ProblemError", "Stream", "Weights", "solve"]

METHODS = ("exact", "ilp", "compact", "restricted")
#: Those whose programme any solver that cvxpy knows may solve.
ANY_SOLVER = ("ilp", "restricted")


def solve(
    problem: Problem,
    *,
    method: str = "ilp",
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
) -> Outcome:
    """Solves `problem`: `Optimal`, `Feasible`, `Infeasible` or `Unknown`, every deployment verified.

    `gap` is the relative gap at which a result counts as optimal; `seed` makes a run repeatable; `solver` is the
    MILP solver of the methods that use one (cvxpy's name for it; HiGHS if none is given).
    Raises `ProblemError` for an unknown method or solver, or one that does not apply.
    """
    if solver is not None and method in METHODS and method not in ANY_SOLVER:
        remedy = f"leave it out, or choose a method of {', '.join(ANY_SOLVER)}"
        raise ProblemError("solver", solver, f"the method {method} has a solver of its own", remedy=remedy)
    match method:
        case "exact":
            from leeward.solve.exact import solve_exact

            return solve_exact(problem, time_limit_s=time_limit_s, seed=seed, gap=gap)
        case "ilp":
            from leeward.solve.ilp import solve_ilp

            return solve_ilp(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver)
        case "compact":
            from leeward.solve.compact import solve_compact

            return solve_compact(problem, time_limit_s=time_limit_s, seed=seed, gap=gap)
        case "restricted":
            from leeward.solve.restricted import solve_restricted

            return solve_restricted(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver)
    raise ProblemError("method", method, "is not a method", remedy=f"choose one of {', '.join(METHODS)}")
