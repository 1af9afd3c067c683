"""The parts of a deployment: the critical path, the sources of cost, the slack of every limit.

Nothing is solved here; every number follows from the definitions in `evaluate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from leeward.policies.edrp.problem.downtime import downtime_of
from leeward.policies.edrp.problem.evaluate import operator_latency_s, stream_cost, stream_delay_s
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment, Stream

#: Two sums of the same seconds in another order are this close, relative to R.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One step of the critical path: an operator's latency (1) or a stream's delay (3)."""

    #: (operator,) or (upstream operator, downstream operator).
    ends: tuple[str, ...]
    #: The node, or pair of nodes, that takes longest.
    nodes: tuple[str, ...]
    seconds: float
    #: Of R; the shares of a path add up to 1 (all are 0 if R is).
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """One operator in the deployment."""

    id: str
    placed: Mapping[str, int]
    load_tps: float
    latency_s: float
    #: $/h of its replicas.
    cost: float
    #: Its own T_D,i, s.
    downtime_s: float
    #: How much slower it could be before R grows; 0 on the critical path.
    slack_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """One stream in the deployment."""

    source: str
    target: str
    rate_tps: float
    delay_s: float
    #: $/h of its traffic.
    cost: float
    slack_s: float
    #: (node, node) -> tuples/s, each pair of replicas carrying an equal share.
    links: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything about one deployment."""

    path: tuple[Hop, ...]
    operators: tuple[OperatorFacts, ...]
    streams: tuple[StreamFacts, ...]
    #: Units in use on every node.
    used: Mapping[str, float]


def facts_of(problem: Problem, deployment: Deployment) -> Facts:
    """The facts of a deployment that `verify` has nothing against."""
    paths = Paths.of(problem, deployment)
    strategy = downtime_of(problem)
    return Facts(
        path=critical_path(problem, deployment, paths),
        operators=tuple(
            OperatorFacts(
                id=op.id,
                placed=dict(deployment[op.id]),
                load_tps=load,
                latency_s=paths.latency[op.id],
                cost=sum(deployment[op.id].values()) * op.cost * op.res,  # (2)
                downtime_s=strategy.seconds(op, problem.current[op.id], deployment[op.id]) if problem.current else 0.0,
                slack_s=paths.slack(paths.finish[op.id] + paths.tail[op.id]),
            )
            for op, load in zip(problem.operators, problem.load_tps, strict=True)
        ),
        streams=tuple(_stream_facts(problem, deployment, stream, paths) for stream in problem.streams),
        used=units_used(problem, deployment),
    )


def _stream_facts(problem: Problem, deployment: Deployment, stream: Stream, paths: Paths) -> StreamFacts:
    up, down = deployment[stream.source], deployment[stream.target]
    delay = paths.delay[stream.source, stream.target]
    onward = paths.latency[stream.target] + paths.tail[stream.target]
    share = stream.rate / (sum(up.values()) * sum(down.values()))
    return StreamFacts(
        source=stream.source,
        target=stream.target,
        rate_tps=stream.rate,
        delay_s=delay,
        cost=stream_cost(problem, stream.rate, up, down),
        slack_s=paths.slack(paths.finish[stream.source] + delay + onward),
        links={(u, v): here * there * share for u, here in up.items() for v, there in down.items()},
    )


def units_used(problem: Problem, deployment: Deployment) -> dict[str, float]:
    """The left side of (18) for every node."""
    used = dict.fromkeys(problem.node_index, 0.0)
    for operator in problem.operators:
        for node, count in deployment[operator.id].items():
            used[node] += count * operator.res
    return used


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Longest paths to and from each operator, s."""

    latency: Mapping[str, float]
    delay: Mapping[tuple[str, str], float]
    #: From a source up to and with the operator.
    finish: Mapping[str, float]
    #: From the operator, without it, to a sink.
    tail: Mapping[str, float]

    @classmethod
    def of(cls, problem: Problem, deployment: Deployment) -> Paths:
        latency = {op.id: operator_latency_s(problem, op, deployment[op.id]) for op in problem.operators}
        delay = {
            (s.source, s.target): stream_delay_s(problem, deployment[s.source], deployment[s.target])
            for s in problem.streams
        }
        order = [problem.operators[position].id for position in problem.topological_order]
        finish: dict[str, float] = {}
        tail: dict[str, float] = {}
        for name in order:
            arrivals = [finish[u] + d for (u, v), d in delay.items() if v == name]
            finish[name] = max(arrivals, default=0.0) + latency[name]
        for name in reversed(order):
            tail[name] = max((d + latency[v] + tail[v] for (u, v), d in delay.items() if u == name), default=0.0)
        return cls(latency=latency, delay=delay, finish=finish, tail=tail)

    def slack(self, length_s: float) -> float:
        """R less the length of a path; rounding is not slack."""
        longest = max(self.finish.values())
        rest = longest - length_s
        return rest if rest > ROUNDING * max(1.0, longest) else 0.0


def critical_path(problem: Problem, deployment: Deployment, paths: Paths) -> tuple[Hop, ...]:
    """The longest path (5)-(7), source first; of equally long ones, that of the first operators and streams."""
    at = max(problem.operator_index, key=lambda name: paths.finish[name])
    response = paths.finish[at]
    hops = [_operator_hop(problem, deployment, at, paths, response)]
    while feeding := [s for s in problem.streams if s.target == at]:
        stream = max(feeding, key=lambda s: paths.finish[s.source] + paths.delay[s.source, s.target])
        hops.append(_stream_hop(problem, deployment, stream, paths, response))
        at = stream.source
        hops.append(_operator_hop(problem, deployment, at, paths, response))
    return tuple(reversed(hops))


def _share(seconds: float, response_s: float) -> float:
    return seconds / response_s if response_s > 0 and math.isfinite(response_s) else 0.0


def _operator_hop(problem: Problem, deployment: Deployment, name: str, paths: Paths, response_s: float) -> Hop:
    speed = {node: problem.nodes[problem.node_index[node]].speedup for node in deployment[name]}
    seconds = paths.latency[name]
    return Hop(
        ends=(name,), nodes=(min(speed, key=speed.__getitem__),), seconds=seconds, share=_share(seconds, response_s)
    )  # fmt: skip


def _stream_hop(problem: Problem, deployment: Deployment, stream: Stream, paths: Paths, response_s: float) -> Hop:
    at, delay = problem.node_index, problem.delay_s
    pairs = [(u, v) for u in deployment[stream.source] for v in deployment[stream.target]]
    seconds = paths.delay[stream.source, stream.target]
    return Hop(
        ends=(stream.source, stream.target),
        nodes=max(pairs, key=lambda pair: delay[at[pair[0]]][at[pair[1]]]),
        seconds=seconds,
        share=_share(seconds, response_s),
    )
