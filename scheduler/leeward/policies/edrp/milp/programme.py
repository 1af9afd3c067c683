"""The common part of the integer programmes: the solvers, the one call to them, and the checks of its result.

The steps of every programme are build -> solve -> decode -> verify.  A status is never trusted: with a time limit
a solver can call a vector of zeros a solution.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leeward.core.fields import FieldError
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Optimal, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment

if TYPE_CHECKING:
    import cvxpy as cp

#: Relative tolerance below which a gap counts as closed.
CLOSED = 1e-6
#: Absolute and feasibility tolerance asked of the solvers that can be asked.
FINE = 1e-9
DEFAULT_SOLVER = "HIGHS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How a programme is to be solved."""

    solver: str = DEFAULT_SOLVER
    time_limit_s: float | None = None
    seed: int = 0
    gap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The solver's answer, unverified."""

    status: str
    #: Its lower bound, or None if it has none.
    bound: float | None


def milp_solvers() -> tuple[str, ...]:
    """The names of the installed solvers that cvxpy gives integer programmes to, HiGHS first."""
    from cvxpy.reductions.solvers.defines import INSTALLED_MI_SOLVERS

    return tuple(sorted(set(INSTALLED_MI_SOLVERS), key=lambda name: (name != DEFAULT_SOLVER, name)))


def request_of(solver: str | None, time_limit_s: float | None, seed: int, gap: float) -> Request:
    """Checks the solver's name (any case); raises `FieldError` naming those that are installed."""
    if solver is None:
        return Request(time_limit_s=time_limit_s, seed=seed, gap=gap)
    installed = milp_solvers()
    if solver.upper() not in installed:
        remedy = f"choose one of {', '.join(installed)}, or install another that cvxpy knows"
        raise FieldError("solver", solver, "is not an installed solver of integer programmes", remedy=remedy)
    return Request(solver=solver.upper(), time_limit_s=time_limit_s, seed=seed, gap=gap)


def options_for(request: Request) -> dict[str, Any]:
    """The request in the words of its solver; a solver that cannot be told something is not told it.

    GLPK_MI, CBC and CPLEX take no seed here, SciPy no tolerance.  Raises `FieldError` for a time limit that we
    do not know how to give to the solver.
    """
    limit, gap, seed = request.time_limit_s, request.gap, request.seed
    tell = _TOLD.get(request.solver)
    if tell is None:
        if limit is not None:
            raise FieldError(
                "--time-limit", limit, f"cannot be told to {request.solver}", remedy="leave it out, or use HIGHS"
            )
        return {}
    named, when_limited, wrap = tell
    options = {name: {"gap": gap, "seed": seed, "fine": FINE}[what] for name, what in named.items()}
    if limit is not None:
        name, factor = when_limited
        options[name] = math.ceil(limit * factor) if factor > 1 else limit
    return options if wrap is None else {wrap: options}


#: solver -> (option: its value; option for the time limit and its unit per second; key that wraps all)
_TOLD: dict[str, tuple[dict[str, str], tuple[str, int], str | None]] = {
    "HIGHS": (
        {
            "mip_rel_gap": "gap",
            "mip_abs_gap": "fine",
            "mip_feasibility_tolerance": "fine",
            "primal_feasibility_tolerance": "fine",
            "random_seed": "seed",
        },
        ("time_limit", 1),
        None,
    ),
    "SCIPY": ({"mip_rel_gap": "gap"}, ("time_limit", 1), "scipy_options"),
    "GLPK_MI": ({"mip_gap": "gap"}, ("tm_lim", 1000), None),
    "CBC": ({"allowableFractionGap": "gap"}, ("maximumSeconds", 1), None),
    "SCIP": (
        {"limits/gap": "gap", "numerics/feastol": "fine", "randomization/randomseedshift": "seed"},
        ("limits/time", 1),
        "scip_params",
    ),
    "GUROBI": (
        {"MIPGap": "gap", "MIPGapAbs": "fine", "FeasibilityTol": "fine", "IntFeasTol": "fine", "Seed": "seed"},
        ("TimeLimit", 1),
        None,
    ),
    "CPLEX": ({"mip.tolerances.mipgap": "gap"}, ("timelimit", 1), "cplex_params"),
}


def run(programme: cp.Problem, request: Request) -> Answer:
    """The single call to `Problem.solve`.

    A solver that does not report its bound and says "optimal" is taken at its word, at the gap it was given.
    """
    import cvxpy as cp

    options = options_for(request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": we verify it ourselves
        try:
            programme.solve(solver=request.solver, **options)
            if request.solver == "HIGHS" and programme.status.startswith("infeasible"):
                # HiGHS' presolve has called programmes infeasible that have a solution: a proof needs both ways
                programme.solve(solver=request.solver, **options, presolve="off")
        except cp.error.SolverError:
            return Answer(status="solver_error", bound=None)
    stats = programme.solver_stats.extra_stats if programme.solver_stats else None
    name = "mip_dual_bound"
    bound: Any = stats.get(name) if isinstance(stats, dict) else getattr(stats, name, None)
    if bound is None and programme.status == "optimal":
        bound = programme.value - request.gap * abs(programme.value)
    if bound is None or not math.isfinite(bound):
        return Answer(status=programme.status, bound=None)
    return Answer(status=programme.status, bound=float(bound))


def conclude(
    problem: Problem,
    deployment: Deployment | None,
    answer: Answer,
    effort: Effort,
    gap: float,
    *,
    whole: bool = True,
) -> Outcome:
    """An outcome from what was decoded and verified; the status only counts where nothing can be decoded.

    Without `whole` the programme was over some of the configurations, so it proves nothing about the rest.
    """
    broken = () if deployment is None else verify(problem, deployment)
    if deployment is not None and not broken:
        metrics = evaluate(problem, deployment)
        finished = answer.status == "optimal"
        if not whole:
            why = "the best of the neighbours" if finished else "the time limit was reached"
            return Feasible(deployment=deployment, metrics=metrics, bound=None, effort=effort, why=why)
        proven = answer.bound is not None and metrics.F - answer.bound <= max(gap, CLOSED) * abs(metrics.F) + 1e-9
        bound = answer.bound if answer.bound is None else min(answer.bound, metrics.F)
        if finished and proven and bound is not None:
            return Optimal(deployment=deployment, metrics=metrics, bound=bound, effort=effort)
        return Feasible(deployment=deployment, metrics=metrics, bound=bound, effort=effort)
    if answer.status in ("infeasible", "infeasible_inaccurate") and whole:
        return Infeasible(why=("no deployment meets all bounds and capacities",), effort=effort)
    if answer.status == "infeasible":
        return Unknown(why="no neighbour of the present deployment meets the constraints", effort=effort)
    if broken:
        why = f"what the solver calls {answer.status} breaks a constraint ({broken[0]})"
        return Unknown(why=why, effort=effort, bound=answer.bound)
    return Unknown(why=f"the solver stopped without a solution ({answer.status})", effort=effort, bound=answer.bound)


def keep_if_better(problem: Problem, outcome: Outcome) -> Outcome:
    """Keeping the present deployment is never worse than what is returned."""
    if problem.current is None or isinstance(outcome, Optimal | Infeasible) or verify(problem, problem.current):
        return outcome
    present = evaluate(problem, problem.current)
    if isinstance(outcome, Feasible) and outcome.metrics.F <= present.F:
        return outcome
    why = "the present deployment is the best known" + (f": {outcome.why}" if isinstance(outcome, Unknown) else "")
    return Feasible(deployment=problem.current, metrics=present, bound=outcome.bound, effort=outcome.effort, why=why)


def time_left(request: Request, started: float) -> Request:
    """The same with what is left of the time limit after building, which cannot be interrupted."""
    if request.time_limit_s is None:
        return request
    return replace(request, time_limit_s=max(0.01, request.time_limit_s - (time.monotonic() - started)))
