"""Why a problem has no solution: the bounds to relax, and by how much, for it to have one.

Each `Relaxation` is enough on its own and says the least change of its kind.  In this order:
    replicas   an operator that cannot keep up with k_i replicas anywhere needs more of them,
    capacity   the least units that must be added so that every operator finds room (a small integer programme),
    bounds     with all that granted: the least R_max, C_max or T_D,max that the others allow; where none of them
               suffices alone two are raised together, or all three: the first as little as it can be at all, the
               next as little as that leaves it.
The first two are needed under all bounds, so every relaxation contains them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from leeward.policies.edrp.exact.search import solve_exact
from leeward.policies.edrp.problem.configurations import node_matrices
from leeward.policies.edrp.problem.downtime import code_download_s, state_download_s, state_upload_s
from leeward.policies.edrp.problem.evaluate import TOLERANCE
from leeward.policies.edrp.problem.outcome import Change, Feasible, Infeasible, Optimal, Relaxation
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Node, Operator, Weights

#: Most replicas that are proposed for an operator that cannot keep up.
MOST_REPLICAS = 64
NAMES = {"r": ("R_max", "s"), "c": ("C_max", "$/h"), "d": ("T_D,max", "s")}
#: Distance from the optimum that the search may leave, as a share of its bound; a second search makes up for it.
COARSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Until when there is time."""

    deadline: float
    clock: Callable[[], float] = time.monotonic

    def left_s(self) -> float:
        return self.deadline - self.clock()


def with_reasons(problem: Problem, outcome: Infeasible, *, limit_s: float) -> Infeasible:
    """The same outcome with what would help, found within `limit_s` (s)."""
    hopeless = [op for op in problem.operators if replicas_needed(problem, op) is None]
    if hopeless:
        load = {op.id: problem.load_tps[problem.operator_index[op.id]] for op in hopeless}
        why = "{} cannot keep up with {:g} tuples/s, however many replicas it has: change its response-time curve"
        return replace(outcome, why=tuple(why.format(name, rate) for name, rate in load.items()))
    found = relaxations(problem, Budget(deadline=time.monotonic() + limit_s))
    if not found and problem.apart and relaxations_without_apart(problem, limit_s):
        lists = "; ".join(", ".join(names) for names in problem.apart)
        return replace(outcome, why=(f"no deployment keeps these apart ({lists}): allow some to share a node",))
    if not found:
        why = "no deployment meets all bounds and capacities; there was no time to find out what would help"
        return replace(outcome, why=(why,))
    return replace(outcome, why=tuple(map(str, found)), relaxations=found)


def relaxations_without_apart(problem: Problem, limit_s: float) -> bool:
    """With all bounds as wide as any deployment needs, only operators that are to be apart are in the way."""
    wide = replace(problem, bounds=greatest(problem), apart=())
    return isinstance(solve_exact(wide, time_limit_s=limit_s), Optimal | Feasible)


def relaxations(problem: Problem, budget: Budget) -> tuple[Relaxation, ...]:
    """Changes that make an infeasible problem feasible; empty if the time did not suffice to find anything."""
    changes = too_few_replicas(problem)
    problem = granted(problem, changes)
    room = least_room(problem, budget)
    if room is None:
        return ()
    changes, problem = changes + room, granted(problem, room)
    if changes and isinstance(solve_exact(problem, time_limit_s=max(0.01, budget.left_s())), Optimal | Feasible):
        return (Relaxation(changes=changes),)
    for together in (1, 2, 3):
        found: list[Any] = []
        for which in permutations("rcd", together):
            raised = raise_bounds(problem, which, budget)
            if raised and not any({c.field for c in raised} == {c.field for c in r.changes} for r in found):
                found.append(Relaxation(changes=raised))
        if found:
            return tuple(Relaxation(changes=changes + r.changes) for r in found)
    return ()


def granted(problem: Problem, changes: tuple[Change, ...]) -> Problem:
    """The problem with the changes made; each bound gets what `verify` would let pass anyway."""
    bounds, nodes, operators = problem.bounds, list(problem.nodes), list(problem.operators)
    for change in changes:
        match change.field.split("."):
            case ["bounds", name]:
                bounds = replace(bounds, **{name: change.needed})
            case ["nodes", node, "res"]:
                at = problem.node_index[node]
                nodes[at] = replace(nodes[at], res=change.needed)
            case ["operators", operator, "k"]:
                at = problem.operator_index[operator]
                operators[at] = replace(operators[at], k=int(change.needed))
    return replace(problem, bounds=bounds, nodes=tuple(nodes), operators=tuple(operators))


# --- replicas ---------------------------------------------------------------------------------------------


def replicas_needed(problem: Problem, operator: Operator) -> int | None:
    """The fewest replicas that keep up with the load; None if no number up to `MOST_REPLICAS` does."""
    load = problem.load_tps[problem.operator_index[operator.id]]
    for replicas in range(1, max(operator.k, MOST_REPLICAS) + 1):
        try:
            if math.isfinite(operator.curve.response_s(load, replicas)):
                return replicas
        except IndexError:  # a table ends
            return None
    return None


def too_few_replicas(problem: Problem) -> tuple[Change, ...]:
    """A higher k_i for each operator that cannot keep up with it."""
    needed = [(op, replicas_needed(problem, op)) for op in problem.operators]
    return tuple(
        Change(field=f"operators.{op.id}.k", name=f"k of {op.id}", now=op.k, needed=count, unit="replicas")
        for op, count in needed
        if count is not None and count > op.k
    )


# --- capacity ---------------------------------------------------------------------------------------------


def least_room(problem: Problem, budget: Budget) -> tuple[Change, ...] | None:
    """The fewest units to be added for each operator to find room for the replicas that keep up.

    Empty if there is room; None if it was not found out.
    The programme: integers U_i(u) >= 0, sum over u >= what i needs, sum of Res_i U_i(u) <= Res_u + extra_u.
    """
    from scipy.optimize import Bounds as Box
    from scipy.optimize import LinearConstraint, milp

    needed = [replicas_needed(problem, op) for op in problem.operators]
    if budget.left_s() <= 0:
        return None
    n, total = len(problem.nodes), len(problem.operators)
    hosts = [(i, u) for i, candidates in enumerate(problem.candidates) for u in candidates]
    place, room = np.zeros((total, len(hosts) + n)), np.zeros((n, len(hosts) + n))
    for column, (i, u) in enumerate(hosts):
        place[i, column] = 1.0
        room[u, column] = problem.operators[i].res
    room[:, len(hosts) :] = -np.eye(n)
    capacity = np.array([node.res for node in problem.nodes])
    answer = milp(
        # a whole unit less outweighs where it is put: first the total, then nodes in their order
        np.concatenate([np.zeros(len(hosts)), 1.0 + 1e-7 * np.arange(n)]),
        integrality=np.concatenate([np.ones(len(hosts)), np.zeros(n)]),
        constraints=[LinearConstraint(place, lb=np.array(needed)), LinearConstraint(room, ub=capacity)],
        bounds=Box(0, np.inf),
        options={"time_limit": max(0.01, budget.left_s())},
    )
    if answer.x is None:
        return None
    counts = np.round(answer.x[: len(hosts)])
    used = room[:, : len(hosts)] @ counts
    return tuple(
        Change(
            field=f"nodes.{node.id}.res",
            name=f"the capacity of {node.id} (for {_guests(problem, hosts, counts, u)})",
            now=node.res,
            needed=float(used[u]),
            unit="units",
        )
        for u, node in enumerate(problem.nodes)
        if used[u] > node.res + TOLERANCE * max(1.0, node.res)
    )


def _guests(problem: Problem, hosts: list[tuple[int, int]], counts: np.ndarray, node: int) -> str:
    here = {i: int(count) for (i, u), count in zip(hosts, counts, strict=True) if u == node and count}
    return ", ".join(problem.operators[i].id + (f" x{count}" if count > 1 else "") for i, count in here.items())


# --- bounds -----------------------------------------------------------------------------------------------


def raise_bounds(problem: Problem, which: tuple[str, ...], budget: Budget) -> tuple[Change, ...]:
    """The least values of these bounds, the first first; empty if raising them does not help, or time is up."""
    top = greatest(problem)
    bounds = replace(problem.bounds, **{name: max(getattr(top, name), getattr(problem.bounds, name)) for name in which})
    changes = []
    for name in which:
        found = least_value(replace(problem, bounds=bounds), name, budget)
        if found is None:
            return ()
        value, proven = found
        bounds = replace(bounds, **{name: max(value, getattr(problem.bounds, name))})
        now = getattr(problem.bounds, name)
        if value > now:
            symbol, unit = NAMES[name]
            changes.append(Change(field=f"bounds.{name}", name=symbol, now=now, needed=value, unit=unit, least=proven))
    return tuple(changes) if len(changes) == len(which) else ()


def least_value(problem: Problem, name: str, budget: Budget) -> tuple[float, bool] | None:
    """The least R, C or T_D that the constraints allow, and whether that is proven; None if none is known."""
    best, proven = None, False
    goal = Weights(**{key: float(key == name) for key in "rcd"})
    for _ in range(3):  # again on a scale on which the search misses nothing that matters
        left = budget.left_s()
        if left <= 0:
            break
        outcome = solve_exact(replace(problem, weights=goal), time_limit_s=left)
        if not isinstance(outcome, Optimal | Feasible):
            break
        before, best = best, getattr(outcome.metrics, {"r": "R", "c": "C", "d": "T_D"}[name])
        proven = isinstance(outcome, Optimal)
        if best <= 0 or not proven or (before is not None and before - best <= COARSE * best):
            break
        problem = replace(problem, bounds=replace(problem.bounds, **{name: best * (1 + COARSE)}))
    return None if best is None else (best, proven)


def greatest(problem: Problem) -> Bounds:
    """Values that no deployment exceeds where every operator keeps up."""
    delay, link = node_matrices(problem)
    slowest = 1 / min(node.speedup for node in problem.nodes)
    latency = sum(_slowest_s(problem, op) for op in problem.operators) * slowest
    streams = sum(stream.rate for stream in problem.streams)
    replicas = sum(op.k * op.cost * op.res for op in problem.operators)
    return Bounds(
        r=2 * (latency + len(problem.streams) * float(delay.max())) or 1.0,
        c=2 * (replicas + streams * float(link.max())) or 1.0,
        d=2 * _longest_downtime_s(problem) or 1.0,
    )


def _slowest_s(problem: Problem, operator: Operator) -> float:
    load = problem.load_tps[problem.operator_index[operator.id]]
    values = [operator.curve.response_s(load, replicas) for replicas in range(1, operator.k + 1)]
    return max((value for value in values if math.isfinite(value)), default=0.0)


def _longest_downtime_s(problem: Problem) -> float:
    """All code and state of the application through the slowest node, each replica starting there."""
    state = sum(op.state_bytes for op in problem.operators)
    code, k = sum(op.code_bytes for op in problem.operators), max(op.k for op in problem.operators)
    held = max((sum(placed.values()) for placed in (problem.current or {}).values()), default=0)

    def at(node: Node) -> float:
        swap = state / node.swap_write_rate + state / node.swap_read_rate
        transfers = code_download_s(node, code) + state_upload_s(node, state) + state_download_s(node, state)
        return transfers + swap + max(k, held) * node.spawn_s

    live = 0.0 if problem.live is None else problem.live.constant_s + problem.live.per_byte_s * state
    # state that one node gives and another takes: twice the slower of the two is enough
    return problem.sync_s + 2 * max(map(at, problem.nodes)) + live
