"""One call for every method that solves EDRP (see `problem/problem.py` and `problem/outcome.py`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from leeward.core.fields import FieldError
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.settings import METHODS

if TYPE_CHECKING:
    from leeward.policies.edrp.problem.outcome import Outcome
    from leeward.policies.edrp.problem.values import Deployment

#: Those that hand an integer programme to a solver.
PROGRAMMES = ("both", "ilp", "compact", "restricted")
#: Most seconds for finding out why there is no solution.
REASONS_S = 20.0


def solve(
    problem: Problem,
    *,
    method: str = "auto",
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
    start: Deployment | None = None,
    reasons: bool = True,
    exact_limit_s: float | None = None,
) -> Outcome:
    """Solves `problem`: `Optimal`, `Feasible`, `Infeasible` or `Unknown`, every deployment verified.

    `gap` is the relative gap at which a result counts as optimal; `seed` makes a run repeatable; `solver` is the
    MILP solver of the methods that use one (cvxpy's name for it; HiGHS if none is given).
    The own search (`auto`, `exact`) begins with the present deployment and with `start`; the others have no use for it.
    Without a `time_limit_s`, `auto` and `both` take 60 s at most and the others as long as it takes; of that, `both`
    gives the exact search `exact_limit_s` at most.
    Where there is no solution, the time that is left goes into what would have to be relaxed, and by how much,
    unless `reasons` are not wanted.
    Raises `FieldError` for an unknown method or solver, or one that does not apply.
    """
    from leeward.policies.edrp.problem.outcome import Infeasible

    started = time.monotonic()
    if method == "both":
        from leeward.policies.edrp.methods.both import solve_both

        outcome = solve_both(
            problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver, exact_limit_s=exact_limit_s
        )
    else:
        outcome = _solve(problem, method, time_limit_s, seed, gap, solver, start)
    if not isinstance(outcome, Infeasible) or not reasons:
        return outcome
    from leeward.policies.edrp.questions.relax import with_reasons

    left = REASONS_S if time_limit_s is None else time_limit_s - (time.monotonic() - started)
    return with_reasons(problem, outcome, limit_s=min(REASONS_S, max(0.5, left)))


def _solve(
    problem: Problem,
    method: str,
    time_limit_s: float | None,
    seed: int,
    gap: float,
    solver: str | None,
    start: Deployment | None,
) -> Outcome:
    if solver is not None and method in METHODS and method not in PROGRAMMES:
        remedy = f"leave it out, or choose a method of {', '.join(PROGRAMMES)}"
        raise FieldError("solver", solver, f"the method {method} uses no solver of integer programmes", remedy=remedy)
    match method:
        case "auto":
            from leeward.policies.edrp.methods.auto import solve_auto

            return solve_auto(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, start=start)
        case "exact":
            from leeward.policies.edrp.exact.search import solve_exact

            return solve_exact(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, start=start)
        case "ilp":
            from leeward.policies.edrp.milp.ilp import solve_ilp

            return solve_ilp(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver)
        case "compact":
            from leeward.policies.edrp.milp.compact import solve_compact

            return solve_compact(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver)
        case "restricted":
            from leeward.policies.edrp.methods.restricted import solve_restricted

            return solve_restricted(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver)
        case "near":
            from leeward.policies.edrp.methods.near import solve_near

            return solve_near(problem, time_limit_s=time_limit_s, start=start)
    raise FieldError("method", method, "is not a method", remedy=f"choose one of {', '.join(METHODS)}")
