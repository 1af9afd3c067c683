"""The default method: the exact search under a time limit, begun with the present deployment.

Its result carries a proven bound, and is never worse than keeping a present deployment that meets
the constraints.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from leeward.policies.edrp.exact.search import solve_exact
from leeward.policies.edrp.problem.outcome import Outcome
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment

#: Seconds when no limit is given: the paper's planning period.  A plan that comes later is about the past.
LIMIT_S = 60.0


def solve_auto(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    start: Deployment | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """The proven optimum, or what `time_limit_s` (60 s if None) allows, with its bound and gap."""
    limit_s = LIMIT_S if time_limit_s is None else time_limit_s
    outcome = solve_exact(problem, time_limit_s=limit_s, seed=seed, gap=gap, start=start, clock=clock)
    return replace(outcome, effort=replace(outcome.effort, method="auto"))
