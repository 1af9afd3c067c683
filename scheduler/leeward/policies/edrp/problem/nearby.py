"""The metrics of deployments that differ from a known one in one operator, to the last bit as `evaluate` has them.

An operator has terms of its own, and its streams have terms that it shares with their other ends. Those of all others
are computed once. `evaluate` stays the definition: it keeps nothing, and tests compare both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from leeward.policies.edrp.problem.downtime import Downtime, downtime_of
from leeward.policies.edrp.problem.evaluate import (
    Metrics,
    apart_violations,
    is_over,
    limit_violations,
    metrics_of,
    operator_latency_s,
    operator_violations,
    stream_cost,
    stream_delay_s,
)
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment, Operator


@dataclass(frozen=True, slots=True)
class _Own:
    """The terms of one operator."""

    latency_s: float
    cost: float
    downtime_s: float


@dataclass(frozen=True, slots=True)
class _Shared:
    """The terms of one stream."""

    delay_s: float
    cost: float


class Nearby:
    """See the module. Not for several threads."""

    def __init__(self, problem: Problem, deployment: Deployment) -> None:
        """`deployment` is well-formed."""
        self.problem: Problem = problem
        self.deployment: Deployment = dict(deployment)  #: that is known
        self._downtime: Downtime | None = None if problem.current is None else downtime_of(problem)
        at = problem.operator_index
        self._inputs: list[list[tuple[int, int]]] = [[] for _ in problem.operators]  # (source, stream) of each
        self._streams_of: list[list[int]] = [[] for _ in problem.operators]
        for number, stream in enumerate(problem.streams):
            source, target = at[stream.source], at[stream.target]
            self._inputs[target].append((source, number))
            self._streams_of[source].append(number)
            self._streams_of[target].append(number)
        self._own = [self._own_of(operator, self.deployment[operator.id]) for operator in problem.operators]
        self._shared = [self._shared_of(number, self.deployment) for number in range(len(problem.streams))]
        self._full = {node.id for node in problem.nodes if self._is_full(node.id, self.deployment)}

    def move(self, name: str, placed: Mapping[str, int]) -> None:
        """From now on operator `name` is placed so, which is well-formed."""
        moved = {**self.deployment, name: placed}
        position = self.problem.operator_index[name]
        self._own[position] = self._own_of(self.problem.operators[position], placed)
        for number in self._streams_of[position]:
            self._shared[number] = self._shared_of(number, moved)
        self._full = self._full_with(name, moved)
        self.deployment = moved

    def assess(self, name: str, placed: Mapping[str, int]) -> tuple[Metrics | None, int]:
        """Were operator `name` placed so, and all others as they are: as `evaluate.assess`, with the number of broken
        constraints in place of these."""
        problem, changed = self.problem, {**self.deployment, name: placed}
        position = problem.operator_index[name]
        if wrong := operator_violations(problem, position, placed):
            return None, len(wrong)
        own, shared = self._own.copy(), self._shared.copy()
        own[position] = self._own_of(problem.operators[position], placed)
        for number in self._streams_of[position]:
            shared[number] = self._shared_of(number, changed)
        cost = math.fsum(one.cost for one in own) + math.fsum(one.cost for one in shared)
        downtime_s = max(one.downtime_s for one in own)
        metrics = metrics_of(problem, self._response_s(own, shared), cost, downtime_s)
        broken = len(limit_violations(problem, metrics)) + len(self._full_with(name, changed))
        return metrics, broken + len(apart_violations(problem, changed))

    def _response_s(self, own: list[_Own], shared: list[_Shared]) -> float:
        """(5)-(7)."""
        finish = [0.0] * len(own)
        for position in self.problem.topological_order:
            inputs = self._inputs[position]
            arrival = max((finish[source] + shared[number].delay_s for source, number in inputs), default=0.0)
            finish[position] = arrival + own[position].latency_s
        return max(finish)

    def _own_of(self, operator: Operator, placed: Mapping[str, int]) -> _Own:
        seconds = 0.0
        if self._downtime is not None and self.problem.current is not None:
            seconds = self._downtime.seconds(operator, self.problem.current[operator.id], placed)
        cost = sum(placed.values()) * operator.cost * operator.res
        return _Own(operator_latency_s(self.problem, operator, placed), cost, seconds)

    def _shared_of(self, number: int, deployment: Deployment) -> _Shared:
        stream = self.problem.streams[number]
        up, down = deployment[stream.source], deployment[stream.target]
        return _Shared(stream_delay_s(self.problem, up, down), stream_cost(self.problem, stream.rate, up, down))

    def _full_with(self, name: str, changed: Deployment) -> set[str]:
        """Nodes with more than they hold (18), in a deployment that differs in operator `name`."""
        touched = self.deployment[name].keys() | changed[name].keys()
        return (self._full - touched) | {node for node in touched if self._is_full(node, changed)}

    def _is_full(self, node: str, deployment: Deployment) -> bool:
        used = 0.0
        for operator in self.problem.operators:
            used += deployment[operator.id].get(node, 0) * operator.res
        return is_over(used, self.problem.nodes[self.problem.node_index[node]])
