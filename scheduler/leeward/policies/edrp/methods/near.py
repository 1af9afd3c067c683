"""A method for problems that are too large for a proof: a local search that begins with the present deployment.

rEDRP lets each operator change one replica and solves an integer programme for all of them together. Its variables grow
with the square of the number of nodes, so at hundreds of nodes or tens of operators it is not built in the time of a
plan. This method takes the same steps (one replica of one operator added, removed or moved; also two that change
places), each one that makes F better, until none does or the time is over. Where the present deployment cannot serve
its load, operators get as many replicas as they need first. It proves nothing about the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from leeward.policies.edrp.exact.search import climb, warm_up_near
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment, Operator

NEAR = "near"
#: Variables of rEDRP's programme from which on this method takes its place.
VARIABLES = 100_000
#: Deployments that it looks at, at most: less than a tenth of a second at 40 operators, whose F is then within a
#: hundredth of what it comes to without a limit.
LOOKS = 16_000


def is_large(problem: Problem) -> bool:
    """rEDRP's programme would have more than `VARIABLES`."""
    current, counts = problem.current, []
    for operator, nodes in zip(problem.operators, problem.candidates, strict=True):
        size = sum(current[operator.id].values()) if current else operator.k
        counts.append(1 + size + (size + (size < operator.k)) * len(nodes))
    return sum(counts[i] * counts[j] for i, j in problem.edges) > VARIABLES


def solve_near(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    start: Deployment | None = None,
    looks: int = LOOKS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """`Feasible` without a bound, or `Unknown` if no deployment that meets the constraints was found.

    It begins with `start`, the present deployment and, where neither serves the load, with `serving`. The same problem
    and enough time give the same result.
    """
    warm_up_near()  # compiling is not part of anybody's time limit
    began = clock()
    deadline = math.inf if time_limit_s is None else began + time_limit_s
    begins = [one for one in (problem.current, start) if one is not None]
    found = climb(problem, begins, looks=looks, deadline=deadline, clock=clock)
    if found is None and (more := serving(problem, problem.current or {})) is not None:
        found = climb(problem, [more], looks=looks, deadline=deadline, clock=clock)
    effort = Effort(method=NEAR, seconds=clock() - began, found_by=NEAR)
    if found is None:
        return Unknown(why="no deployment near the present one meets all bounds", effort=effort)
    deployment, metrics = found
    why = "a local search ended"
    return Feasible(deployment=deployment, metrics=metrics, bound=None, effort=effort, why=why)


def serving(problem: Problem, present: Deployment) -> Deployment | None:
    """The present deployment with as many replicas more as each operator needs to keep up with its load.

    They go where tasks of the operator are already, else where most room is, ties by the order of the nodes. None if
    there is no room.
    """
    room = [node.res for node in problem.nodes]
    for operator in problem.operators:
        for node, count in present.get(operator.id, {}).items():
            room[problem.node_index[node]] -= count * operator.res
    found: dict[str, dict[str, int]] = {}
    for position, operator in enumerate(problem.operators):
        counts = dict(present.get(operator.id, {}))
        for _ in range(sum(counts.values()), _least(problem, position)):
            at = _roomiest(problem, operator, counts, room, problem.candidates[position])
            if at is None:
                return None
            room[at] -= operator.res
            node = problem.nodes[at].id
            counts[node] = counts.get(node, 0) + 1
        found[operator.id] = counts
    return found


def _least(problem: Problem, position: int) -> int:
    """Replicas that an operator needs at least; all that it may have if those are not enough."""
    operator, load = problem.operators[position], problem.load_tps[position]
    able = (r for r in range(1, operator.k) if math.isfinite(operator.curve.response_s(load, r)))
    return next(able, operator.k)


def _roomiest(
    problem: Problem, operator: Operator, counts: dict[str, int], room: list[float], nodes: tuple[int, ...]
) -> int | None:
    tasks = (problem.live.tasks or {}).get(operator.id, {}) if problem.live else {}

    def order(at: int) -> tuple[bool, float, int]:
        node = problem.nodes[at].id
        return tasks.get(node, 0) <= counts.get(node, 0), -room[at], at

    return min((at for at in nodes if room[at] >= operator.res), key=order, default=None)
