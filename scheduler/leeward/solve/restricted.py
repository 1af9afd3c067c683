"""The restricted problem rEDRP: each operator may keep its deployment or add, remove or move one replica.

The same programme as `ilp` over far fewer configurations (paper, end of section 7.2; our reading of its third
condition is in `configurations.neighbours`).  It proves nothing about the full problem.
"""

from __future__ import annotations

from leeward.solve.ilp import solve_ilp
from leeward.solve.outcome import Outcome
from leeward.solve.problem import Problem, ProblemError


def solve_restricted(
    problem: Problem, *, time_limit_s: float | None = None, seed: int = 0, gap: float = 0.0, solver: str | None = None
) -> Outcome:
    """The best neighbour of the present deployment, as `Feasible`; `ProblemError` if nothing is present."""
    if problem.current is None:
        raise ProblemError(
            "current",
            None,
            "the restricted problem starts from a present deployment",
            remedy="give one, or use ilp",
        )
    return solve_ilp(problem, time_limit_s=time_limit_s, seed=seed, gap=gap, solver=solver, restricted=True)
