"""The configurations P(V_i; k_i) of an operator as arrays, with what each costs on its own.

A configuration is a multiset of nodes.  `members` writes it as `width` node positions, ascending; one with
fewer replicas repeats its last node.  Repeats never change a maximum over a multiset, so delays need no mask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import scipy.sparse as sp

from leeward.policies.edrp.problem.downtime import Downtime, downtime_of
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Operator


@dataclass(frozen=True, kw_only=True)
class Configurations:
    """All configurations of one operator; every array's first axis is the configuration."""

    #: Node positions, [configurations, width].
    members: np.ndarray
    #: |U|, [configurations].
    size: np.ndarray
    #: Number of nodes of the cluster.
    node_count: int
    #: R_i,U in s; infinite where a replica cannot keep up.
    latency_s: np.ndarray
    #: C_i,U in $/h.
    cost: np.ndarray
    #: t_D(i, U_0, U) in s; 0 without a present deployment.
    downtime_s: np.ndarray

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def counts(self) -> sp.csr_array:
        """U(u), [configurations, nodes]."""
        width = self.members.shape[1]
        real = np.arange(width)[None, :] < self.size[:, None]
        rows = np.broadcast_to(np.arange(len(self))[:, None], real.shape)[real]
        ones = np.ones(len(rows))
        return sp.coo_array((ones, (rows, self.members[real])), shape=(len(self), self.node_count)).tocsr()

    def as_mapping(self, problem: Problem, position: int) -> dict[str, int]:
        """One configuration as node id -> replicas."""
        chosen = self.members[position, : self.size[position]]
        return dict(Counter(problem.nodes[u].id for u in chosen))


def configuration_count(candidates: int, k: int) -> int:
    """|P(V; k)| without the empty multiset: sum over r <= k of C(n + r - 1, r)."""
    return comb(candidates + k, k) - 1


def all_multisets(candidates: tuple[int, ...], k: int) -> list[tuple[int, ...]]:
    """P(V_i; k_i): by size, then in the order of the nodes."""
    return [chosen for size in range(1, k + 1) for chosen in combinations_with_replacement(candidates, size)]


def neighbours(current: tuple[int, ...], candidates: tuple[int, ...], k: int) -> list[tuple[int, ...]]:
    """P(V_i; k_i; U_0): the current multiset and those with one replica added, removed or moved.

    Only multisets of P(V_i; k_i) are given: where the present one has become forbidden it is not among them.
    """
    here = tuple(sorted(current))
    less = {here[:at] + here[at + 1 :] for at in range(len(here))}
    found = {here} | less | {tuple(sorted((*here, v))) for v in candidates}
    found |= {tuple(sorted((*rest, v))) for rest in less for v in candidates}
    may = set(candidates)
    return sorted((m for m in found if 1 <= len(m) <= k and may.issuperset(m)), key=lambda m: (len(m), m))


def configurations_of(problem: Problem, *, restricted: bool = False) -> list[Configurations]:
    """The configurations of each operator, in the order of the operators.

    With `restricted`, those of the restricted problem rEDRP, which needs a present deployment.
    """
    downtime = downtime_of(problem)
    result = []
    for position, operator in enumerate(problem.operators):
        candidates = problem.candidates[position]
        if restricted:
            assert problem.current is not None
            present = _positions(problem, problem.current[operator.id])
            multisets = neighbours(present, candidates, operator.k)
        else:
            multisets = all_multisets(candidates, operator.k)
        result.append(_tabulate(problem, operator, multisets, downtime))
    return result


def _positions(problem: Problem, placed: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(problem.node_index[node] for node, count in placed.items() for _ in range(count)))


def _tabulate(
    problem: Problem, operator: Operator, multisets: list[tuple[int, ...]], downtime: Downtime
) -> Configurations:
    width = max(map(len, multisets), default=1)
    members = np.array([m + m[-1:] * (width - len(m)) for m in multisets], dtype=np.intp).reshape(-1, width)
    size = np.array([len(m) for m in multisets], dtype=np.intp)
    load = problem.load_tps[problem.operator_index[operator.id]]
    on_reference = np.array([operator.curve.response_s(load, replicas) for replicas in range(1, width + 1)])
    speedup = np.array([node.speedup for node in problem.nodes])
    latency = (on_reference[size - 1, None] / speedup[members]).max(axis=1, initial=0.0)  # (1)
    seconds = np.zeros(len(multisets))
    if problem.current is not None:
        before = problem.current[operator.id]
        for row, multiset in enumerate(multisets):
            after = Counter(problem.nodes[u].id for u in multiset)
            seconds[row] = downtime.seconds(operator, before, after)
    return Configurations(
        members=members,
        size=size,
        node_count=len(problem.nodes),
        latency_s=latency,
        cost=size * operator.cost * operator.res,  # (2)
        downtime_s=seconds,
    )


def delay_between(delay_s: np.ndarray, up: Configurations, down: Configurations) -> np.ndarray:
    """d_(U,V) (3) for every pair of configurations, [up, down], s."""
    to_node = delay_s[up.members].max(axis=1)  # [up, nodes]
    result: np.ndarray = to_node[:, down.members[:, 0]]
    for place in range(1, down.members.shape[1]):
        np.maximum(result, to_node[:, down.members[:, place]], out=result)
    return result


def traffic_cost_between(link_cost: np.ndarray, rate: float, up: Configurations, down: Configurations) -> np.ndarray:
    """C_(i,j),(U,V) (4) for every pair of configurations, [up, down], $/h."""
    shares_up = up.counts / up.size[:, None]
    shares_down = down.counts / down.size[:, None]
    cost: np.ndarray = rate * ((shares_up @ link_cost) @ shares_down.T)
    return cost


def node_matrices(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """d_(u,v) in s and C_(u,v) in $/h per tuple/s as arrays, [nodes, nodes]."""
    count = len(problem.nodes)
    if isinstance(problem.link_cost, float | int):
        link_cost = np.full((count, count), float(problem.link_cost))
        np.fill_diagonal(link_cost, 0.0)
    else:
        link_cost = np.array(problem.link_cost)
    return np.array(problem.delay_s), link_cost
