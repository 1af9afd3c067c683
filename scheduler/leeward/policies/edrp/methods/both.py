"""The service's method: the paper's rEDRP, and beside it the exact search; the better of the two deployments.

rEDRP runs first.  The exact search then has what is left of the time; it begins with the present deployment and with
rEDRP's, so it is never worse than either, and it may prove that one of them is the optimum.  Where F is the same
(within `SLACK`), the deployment is rEDRP's: it changes one replica of an operator at most, so it is the nearer one.
Without a present deployment there is no restricted problem, and the exact search works alone.  Where rEDRP's programme
would be too large to be built, a local search takes the place of both (`near.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from leeward.policies.edrp.exact.search import SLACK, solve_exact, warm_up
from leeward.policies.edrp.methods.auto import LIMIT_S
from leeward.policies.edrp.methods.near import is_large, solve_near
from leeward.policies.edrp.methods.restricted import BOUND_S
from leeward.policies.edrp.milp.ilp import solve_ilp
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem

EXACT, RESTRICTED = "exact", "restricted"


def solve_both(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
    exact_limit_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """The better deployment of rEDRP and the exact search, with the bound of the exact search.

    Together they take `time_limit_s` (60 s if None); the exact search gets what rEDRP leaves of it, `exact_limit_s`
    at most and `BOUND_S` at least.
    """
    if is_large(problem):
        return solve_near(problem, time_limit_s=time_limit_s, clock=clock)
    warm_up()  # compiling is not part of anybody's time limit
    started = clock()
    limit_s = LIMIT_S if time_limit_s is None else time_limit_s
    few = None
    if problem.current is not None:
        few = solve_ilp(problem, time_limit_s=limit_s, seed=seed, gap=gap, solver=solver, restricted=True)
    near = few if isinstance(few, Feasible) else None
    left = limit_s - (clock() - started)
    if exact_limit_s is not None:
        left = min(left, exact_limit_s)
    start = near.deployment if near else None
    full = solve_exact(problem, time_limit_s=max(BOUND_S, left), seed=seed, gap=gap, start=start, clock=clock)
    effort = Effort(method="both", seconds=clock() - started, variables=few.effort.variables if few else None)
    if isinstance(full, Infeasible | Unknown):
        effort = effort if near is None else replace(effort, found_by=RESTRICTED, other=EXACT)
        return replace(near or full, effort=effort)
    if near is not None and near.metrics.F <= full.metrics.F + SLACK:
        effort = replace(effort, found_by=RESTRICTED, other=EXACT, other_F=full.metrics.F)
        found = replace(full, deployment=near.deployment, metrics=near.metrics, effort=effort)
        return found if full.bound is None else replace(found, bound=min(full.bound, near.metrics.F))
    other = RESTRICTED if few is not None else None
    other_F = near.metrics.F if near is not None else None
    return replace(full, effort=replace(effort, found_by=EXACT, other=other, other_F=other_F))
