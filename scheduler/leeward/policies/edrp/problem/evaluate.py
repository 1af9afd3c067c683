"""R, C, T_D, F of a deployment and every constraint, straight from the definitions of the paper's section 4.

Nothing here knows how a deployment was found: `verify` runs on every result of every method, in production.
Plain Python on purpose; the solvers have their own arrays, and an error in those must show up here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from leeward.policies.edrp.problem.downtime import downtime_of
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment, Node, Operator

#: A bound counts as met up to this relative excess: sums of floats, not a concession to a solver.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The three terms of the objective (12); they add up to F."""

    response: float
    cost: float
    downtime: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The measures of a deployment."""

    #: Response time of the critical path, s; infinite if a replica cannot keep up.
    R: float
    #: $/h.
    C: float
    #: s.
    T_D: float
    #: Objective (12).
    F: float
    parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A constraint that a deployment breaks: `value` is what it has, `limit` what it may have."""

    kind: str
    where: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.where}: {self.value:g}, allowed {self.limit:g}"


def operator_latency_s(problem: Problem, operator: Operator, placed: Mapping[str, int]) -> float:
    """R_i,U (1): the slowest of the operator's nodes under an equal share of the load."""
    load = problem.load_tps[problem.operator_index[operator.id]]
    on_reference = operator.curve.response_s(load, sum(placed.values()))
    return max(on_reference / problem.nodes[problem.node_index[node]].speedup for node in placed)


def stream_delay_s(problem: Problem, upstream: Mapping[str, int], downstream: Mapping[str, int]) -> float:
    """d_(U,V) (3)."""
    at = problem.node_index
    return max(problem.delay_s[at[u]][at[v]] for u in upstream for v in downstream)


def stream_cost(problem: Problem, rate: float, upstream: Mapping[str, int], downstream: Mapping[str, int]) -> float:
    """C_(i,j),(U,V) (4), $/h: each pair of replicas carries an equal share."""
    at = problem.node_index
    share = rate / (sum(upstream.values()) * sum(downstream.values()))
    return math.fsum(
        here * there * share * problem.link_cost_between(at[u], at[v])
        for u, here in upstream.items()
        for v, there in downstream.items()
    )


def response_time_s(problem: Problem, deployment: Deployment) -> float:
    """R (5)-(7): the longest path from a source to a sink, operators and streams together."""
    finish: dict[str, float] = {}
    for position in problem.topological_order:
        operator = problem.operators[position]
        arrival = max(
            (
                finish[stream.source] + stream_delay_s(problem, deployment[stream.source], deployment[operator.id])
                for stream in problem.streams
                if stream.target == operator.id
            ),
            default=0.0,
        )
        finish[operator.id] = arrival + operator_latency_s(problem, operator, deployment[operator.id])
    return max(finish.values())


def deployment_cost(problem: Problem, deployment: Deployment) -> float:
    """C (8)-(9), with the operators' own costs (2)."""
    replicas = math.fsum(sum(deployment[op.id].values()) * op.cost * op.res for op in problem.operators)
    traffic = math.fsum(
        stream_cost(problem, s.rate, deployment[s.source], deployment[s.target]) for s in problem.streams
    )
    return replicas + traffic


def downtime_s(problem: Problem, deployment: Deployment) -> float:
    """T_D (10)-(11); 0 without a present deployment."""
    if problem.current is None:
        return 0.0
    strategy = downtime_of(problem)
    return max(strategy.seconds(op, problem.current[op.id], deployment[op.id]) for op in problem.operators)


def evaluate(problem: Problem, deployment: Deployment) -> Metrics:
    """The metrics of a deployment that names every operator and only known nodes (else KeyError)."""
    response, cost = response_time_s(problem, deployment), deployment_cost(problem, deployment)
    return metrics_of(problem, response, cost, downtime_s(problem, deployment))


def metrics_of(problem: Problem, response: float, cost: float, downtime: float) -> Metrics:
    """With the objective (12) of these measures."""
    parts = Parts(
        response=_weighted(problem.weights.r, response, problem.bounds.r),
        cost=problem.weights.c * cost / problem.bounds.c,
        downtime=problem.weights.d * downtime / problem.bounds.d,
    )
    objective = parts.response + parts.cost + parts.downtime
    return Metrics(R=response, C=cost, T_D=downtime, F=objective, parts=parts)


def _weighted(weight: float, value: float, bound: float) -> float:
    """An infinite response time stays infinite under every weight."""
    return math.inf if math.isinf(value) else weight * value / bound


def verify(problem: Problem, deployment: Deployment) -> tuple[Violation, ...]:
    """Every broken constraint; empty means that the deployment may be carried out."""
    return assess(problem, deployment)[1]


def assess(problem: Problem, deployment: Deployment) -> tuple[Metrics | None, tuple[Violation, ...]]:
    """The metrics, None for a deployment that is not well-formed, and every broken constraint."""
    broken = _shape_violations(problem, deployment)
    if broken:
        return None, broken
    metrics = evaluate(problem, deployment)
    over = limit_violations(problem, metrics)
    return metrics, over + _capacity_violations(problem, deployment) + apart_violations(problem, deployment)


def limit_violations(problem: Problem, metrics: Metrics) -> tuple[Violation, ...]:
    """(15)-(17)."""
    limits = (
        ("response time", "R", metrics.R, problem.bounds.r),  # (15)
        ("cost", "C", metrics.C, problem.bounds.c),  # (16)
        ("downtime", "T_D", metrics.T_D, problem.bounds.d),  # (17)
    )
    return tuple(
        Violation(kind=kind, where=where, value=value, limit=limit)
        for kind, where, value, limit in limits
        if not value <= limit * (1 + TOLERANCE)
    )


def _shape_violations(problem: Problem, deployment: Deployment) -> tuple[Violation, ...]:
    """(19) and the candidate sets: each operator once, on nodes that may host it, at most k_i replicas."""
    found = [
        Violation(kind="unknown operator", where=name, value=1, limit=0)
        for name in deployment
        if name not in problem.operator_index
    ]
    for position, operator in enumerate(problem.operators):
        found += operator_violations(problem, position, deployment.get(operator.id, {}))
    return tuple(found)


def operator_violations(problem: Problem, position: int, placed: Mapping[str, int]) -> list[Violation]:
    """(19) and the candidate set of the operator at this position."""
    operator, candidates, found = problem.operators[position], problem.candidates[position], []
    for node, count in placed.items():
        where = f"{operator.id} on {node}"
        if problem.node_index.get(node) not in candidates:
            found.append(Violation(kind="node not allowed", where=where, value=count, limit=0))
        if count < 1:
            found.append(Violation(kind="count below one", where=where, value=count, limit=1))
    replicas = sum(placed.values())
    if not 1 <= replicas <= operator.k:
        found.append(Violation(kind="replicas", where=operator.id, value=replicas, limit=operator.k))
    return found


def _capacity_violations(problem: Problem, deployment: Deployment) -> tuple[Violation, ...]:
    """(18)."""
    used = dict.fromkeys(problem.node_index, 0.0)
    for operator in problem.operators:
        for node, count in deployment[operator.id].items():
            used[node] += count * operator.res
    return tuple(
        Violation(kind="capacity", where=node.id, value=used[node.id], limit=node.res)
        for node in problem.nodes
        if is_over(used[node.id], node)
    )


def is_over(used: float, node: Node) -> bool:
    """More than the node's capacity is used."""
    return used > node.res + TOLERANCE * max(1.0, node.res)


def apart_violations(problem: Problem, deployment: Deployment) -> tuple[Violation, ...]:
    """A node that hosts replicas of two operators that are to be apart; each pair and node once."""
    pairs = {tuple(sorted(pair)) for names in problem.apart for pair in combinations(set(names), 2)}
    return tuple(
        Violation(kind="apart", where=f"{first} and {second} on {node}", value=2, limit=1)
        for first, second in sorted(pairs)
        for node in sorted(deployment[first].keys() & deployment[second].keys())
    )
