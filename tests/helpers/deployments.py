"""Every deployment of a tiny problem, one by one, with what the definitions say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from leeward.policies.edrp.problem.evaluate import Metrics, evaluate, verify
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment
from tests.helpers.oracles import multisets


def feasible(problem: Problem) -> Iterator[tuple[Deployment, Metrics]]:
    """All that `verify` has nothing against."""
    choices = [multisets(problem, position) for position in range(len(problem.operators))]
    for chosen in product(*choices):
        deployment = {op.id: placed for op, placed in zip(problem.operators, chosen, strict=True)}
        if not verify(problem, deployment):
            yield deployment, evaluate(problem, deployment)


def least_f(problem: Problem, accepts: Callable[[Deployment], bool], *, stated: Problem | None = None) -> float | None:
    """The least F, as `stated` (or the problem) defines it, of all that `accepts` takes; None if there is none."""
    found = [evaluate(stated or problem, d).F for d, _ in feasible(problem) if accepts(d)]
    return min(found, default=None)
