"""What tests compare with: exhaustive search over tiny problems."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import prod

import numpy as np

from leeward.policies.edrp.problem.downtime import downtime_of
from leeward.policies.edrp.problem.evaluate import operator_latency_s, stream_cost, stream_delay_s
from leeward.policies.edrp.problem.problem import Problem

#: Relative slack of the bounds, the same as `evaluate.TOLERANCE`.
SLACK = 1e-9


def multisets(problem: Problem, position: int) -> list[dict[str, int]]:
    """Every deployment of one operator, as node id -> replicas."""
    operator, candidates = problem.operators[position], problem.candidates[position]
    chosen = (c for size in range(1, operator.k + 1) for c in combinations_with_replacement(candidates, size))
    return [{problem.nodes[u].id: c.count(u) for u in sorted(set(c))} for c in chosen]


def deployment_count(problem: Problem) -> int:
    """How many deployments `brute_force` would look at."""
    return prod(len(multisets(problem, position)) for position in range(len(problem.operators)))


def brute_force(problem: Problem) -> tuple[float, dict[str, dict[str, int]]] | None:
    """(F, deployment) of an optimum found by looking at every deployment, or None if none is feasible.

    The pieces (one operator, one pair of operators) come from the definitions in `evaluate`; putting them
    together is done anew here, for all deployments at once.
    """
    choices = [multisets(problem, position) for position in range(len(problem.operators))]
    picked = np.unravel_index(np.arange(prod(map(len, choices))), [len(c) for c in choices])
    response, cost, downtime = _metrics(problem, choices, picked)
    feasible = (
        (response <= problem.bounds.r * (1 + SLACK))
        & (cost <= problem.bounds.c * (1 + SLACK))
        & (downtime <= problem.bounds.d * (1 + SLACK))
        & _fits(problem, choices, picked)
    )
    if not feasible.any():
        return None
    weights, bounds = problem.weights, problem.bounds
    with np.errstate(invalid="ignore"):
        objective = weights.r * response / bounds.r + weights.c * cost / bounds.c + weights.d * downtime / bounds.d
    best = int(np.where(feasible, objective, np.inf).argmin())
    deployment = {op.id: choices[i][picked[i][best]] for i, op in enumerate(problem.operators)}
    return float(objective[best]), deployment


def _metrics(problem: Problem, choices: list[list[dict[str, int]]], picked: tuple[np.ndarray, ...]):
    """R, C and T_D of every deployment."""
    finish: dict[int, np.ndarray] = {}
    cost = np.zeros(len(picked[0]))
    downtime = np.zeros(len(picked[0]))
    strategy = downtime_of(problem)
    for i in problem.topological_order:
        operator = problem.operators[i]
        arrival = np.zeros(len(picked[0]))
        for stream, (up, down) in zip(problem.streams, problem.edges, strict=True):
            if down != i:
                continue
            delay = np.array([[stream_delay_s(problem, u, v) for v in choices[i]] for u in choices[up]])
            price = np.array([[stream_cost(problem, stream.rate, u, v) for v in choices[i]] for u in choices[up]])
            arrival = np.maximum(arrival, finish[up] + delay[picked[up], picked[i]])
            cost += price[picked[up], picked[i]]
        latency = np.array([operator_latency_s(problem, operator, u) for u in choices[i]])
        finish[i] = arrival + latency[picked[i]]
        cost += np.array([sum(u.values()) * operator.cost * operator.res for u in choices[i]])[picked[i]]
        if problem.current is not None:
            seconds = np.array([strategy.seconds(operator, problem.current[operator.id], u) for u in choices[i]])
            downtime = np.maximum(downtime, seconds[picked[i]])
    return np.maximum.reduce(list(finish.values())), cost, downtime


def _fits(problem: Problem, choices: list[list[dict[str, int]]], picked: tuple[np.ndarray, ...]) -> np.ndarray:
    """Whether every node's capacity holds, and no node hosts two that are to be apart, for every deployment."""
    fits = np.ones(len(picked[0]), dtype=bool)
    for node in problem.nodes:
        used = np.zeros(len(picked[0]))
        for i, operator in enumerate(problem.operators):
            used += np.array([u.get(node.id, 0) * operator.res for u in choices[i]])[picked[i]]
        fits &= used <= node.res + SLACK * max(1.0, node.res)
        here = [np.array([node.id in u for u in choices[i]])[picked[i]] for i in range(len(choices))]
        for names in problem.apart:
            fits &= sum(here[problem.operator_index[name]] for name in set(names)) <= 1
    return fits
