"""The restricted problem rEDRP: each operator may keep its deployment or add, remove or move one replica.

The same programme as `ilp` over far fewer configurations (paper, end of section 7.2; our reading of its third
condition is in `configurations.neighbours`).  It proves nothing about the full problem; the bound that its outcome
carries is that of the exact search, which is given `BOUND_S` for it.
"""

from __future__ import annotations

import time
from dataclasses import replace

from leeward.core.fields import FieldError
from leeward.policies.edrp.exact.search import solve_exact, warm_up
from leeward.policies.edrp.milp.ilp import solve_ilp
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Outcome
from leeward.policies.edrp.problem.problem import Problem

#: Seconds for a bound of the full problem: enough for the proven optimum at the paper's sizes.
BOUND_S = 0.2


def solve_restricted(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
) -> Outcome:
    """The best neighbour of the present deployment, as `Feasible` with a bound of the full problem.

    Raises `FieldError` if nothing is present.  The bound takes up to `BOUND_S` beyond the time limit.
    """
    if problem.current is None:
        raise FieldError(
            "current",
            None,
            "the restricted problem starts from a present deployment",
            remedy="give one, or use ilp",
        )
    warm_up()  # compiling is not part of anybody's time limit
    started = time.monotonic()
    outcome = solve_ilp(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver, restricted=True)
    if not isinstance(outcome, Feasible):
        return outcome
    full = solve_exact(problem, time_limit_s=BOUND_S)
    if isinstance(full, Infeasible) or full.bound is None:
        return outcome
    effort = replace(outcome.effort, seconds=time.monotonic() - started)
    return replace(outcome, bound=min(full.bound, outcome.metrics.F), effort=effort)
