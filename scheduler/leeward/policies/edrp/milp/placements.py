"""The compact programme's view of one operator: how many replicas a node has of how many, or all kept as it is.

An operator's deployment is spelled by one vector of binaries, in this order:
    z_m      the operator has m replicas and may differ from the present deployment,
    keep     (at most one) it stays exactly as it is; only where that is still allowed,
    x_mcu    z_m, and c of the m replicas are on node u.
That is about |V| k (k + 1) / 2 binaries where the literal programme has C(|V| + k, k).  Everything that the paper
defines over multisets is linear in it, or the greatest of values that are: with |U| known as m, the share c / m of
the load on a node is a constant, and keeping apart from changing makes the downtime's "0 if U = V" a constant too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from leeward.policies.edrp.problem.downtime import (
    Generic,
    Live,
    Storm,
    code_download_s,
    downloaded_bytes,
    downtime_of,
    state_download_s,
    state_upload_s,
    uploaded_bytes,
)
from leeward.policies.edrp.problem.evaluate import TOLERANCE, operator_latency_s
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Operator

#: Beyond this multiple of its bound a value is as good as any other: it is forbidden.  Keeps coefficients small.
FORBIDDEN = 2.0


@dataclass(frozen=True, kw_only=True)
class Placements:
    """One operator's binaries; `size`, `count`, `node` run over the x, `column` gives the place in the vector."""

    operator: Operator
    #: The m of each z.
    sizes: np.ndarray
    #: The present deployment, if it may be kept, else None.
    kept: Mapping[int, int] | None
    size: np.ndarray
    count: np.ndarray
    node: np.ndarray
    node_total: int

    @property
    def length(self) -> int:
        return self.first_x + len(self.node)

    @property
    def first_x(self) -> int:
        return len(self.sizes) + (self.kept is not None)

    def rows(self, height: int, row: np.ndarray, value: np.ndarray, kept: Mapping[int, float] | None = None) -> Any:
        """A matrix with `value` at (`row`, x) for each x, and `kept` at (row, keep)."""
        column = self.first_x + np.arange(len(self.node))
        if kept and self.kept is not None:
            row = np.append(row, list(kept))
            value = np.append(value, list(kept.values()))
            column = np.append(column, np.full(len(kept), len(self.sizes)))
        return sp.csr_array((value, (row, column)), shape=(height, self.length))

    def hosts(self) -> sp.csr_array:
        """[nodes, length]: whether a node has a replica."""
        return self.rows(self.node_total, self.node, np.ones(len(self.node)), dict.fromkeys(self.kept or {}, 1.0))

    def counts(self) -> sp.csr_array:
        """[nodes, length]: U(u)."""
        return self.rows(self.node_total, self.node, self.count, self.kept)

    def shares(self) -> sp.csr_array:
        """[nodes, length]: U(u) / |U|."""
        total = sum((self.kept or {}).values())
        kept = {u: c / total for u, c in (self.kept or {}).items()}
        return self.rows(self.node_total, self.node, self.count / self.size, kept)

    def counts_by_share(self) -> sp.csr_array:
        """[nodes, length]: U(u)^2 / |U|."""
        total = sum((self.kept or {}).values())
        kept = {u: c * c / total for u, c in (self.kept or {}).items()}
        return self.rows(self.node_total, self.node, self.count**2 / self.size, kept)

    def share_levels(self) -> tuple[np.ndarray, np.ndarray, sp.csr_array]:
        """(node, share, [levels, length]): whether a node has just this share, for each that it can have."""
        share = np.round(self.count / self.size, 12)
        total = sum((self.kept or {}).values())
        kept = [(u, round(c / total, 12)) for u, c in (self.kept or {}).items()]
        pairs = sorted({*zip(self.node.tolist(), share.tolist(), strict=True), *kept})
        at = {pair: place for place, pair in enumerate(pairs)}
        row = np.array([at[pair] for pair in zip(self.node.tolist(), share.tolist(), strict=True)], dtype=int)
        matrix = self.rows(len(pairs), row, np.ones(len(row)), {at[pair]: 1.0 for pair in kept})
        return np.array([u for u, _ in pairs], dtype=int), np.array([s for _, s in pairs]), matrix

    def head(self, of_size: Mapping[int, float], kept: float = 0.0) -> np.ndarray:
        """[length]: a value for each z, one for keep, 0 for each x."""
        values = [of_size[int(m)] for m in self.sizes] + ([kept] if self.kept is not None else [])
        return np.concatenate([values, np.zeros(len(self.node))])


def placements_of(problem: Problem, position: int) -> Placements:
    """The binaries of one operator; configurations too slow for R_max on their own are left out."""
    operator, limit = problem.operators[position], problem.bounds.r * (1 + TOLERANCE)
    load = problem.load_tps[position]
    states = [
        (m, c, u)
        for m in range(1, operator.k + 1)
        for u in problem.candidates[position]
        for c in range(1, m + 1)
        if operator.curve.response_s(load, m) / problem.nodes[u].speedup <= limit
    ]
    size, count, node = (np.array(column, dtype=int) for column in zip(*states, strict=True)) if states else [_NONE] * 3
    return Placements(
        operator=operator,
        sizes=np.unique(size),
        kept=_kept(problem, position),
        size=size,
        count=count,
        node=node,
        node_total=len(problem.nodes),
    )


_NONE = np.zeros(0, dtype=int)


def _kept(problem: Problem, position: int) -> dict[int, int] | None:
    operator = problem.operators[position]
    placed = (problem.current or {}).get(operator.id)
    if placed is None or sum(placed.values()) > operator.k:
        return None
    here = {problem.node_index[node]: count for node, count in placed.items()}
    fast = operator_latency_s(problem, operator, placed) <= problem.bounds.r * (1 + TOLERANCE)
    return here if fast and set(here) <= set(problem.candidates[position]) else None


def spelling(p: Placements) -> tuple[sp.csr_array, np.ndarray, sp.csr_array]:
    """(A, b, B): A v = b and B v <= 0 make v spell one deployment.

    One of the z or keep (19); the counts add up to m; a node has at most one count, and none of a size not chosen.
    """
    heads, k = p.first_x, len(p.sizes)
    place = np.searchsorted(p.sizes, p.size)
    one = sp.csr_array((np.ones(heads), (np.zeros(heads, dtype=int), np.arange(heads))), shape=(1, p.length))
    sizes = sp.csr_array((p.sizes, (np.arange(k), np.arange(k))), shape=(k, p.length))
    equal = sp.vstack([one, p.rows(k, place, p.count) - sizes], format="csr")
    pairs, row = np.unique(place * p.node_total + p.node, return_inverse=True)
    z = sp.csr_array((np.ones(len(pairs)), (np.arange(len(pairs)), pairs // p.node_total)), (len(pairs), p.length))
    return equal, np.eye(1, k + 1)[0], p.rows(len(pairs), row, np.ones(len(row))) - z


def latency_rows(problem: Problem, position: int, p: Placements) -> np.ndarray:
    """M with R_i = max(M v) (1), s: the mean over the replicas, then one row for each slower kind of node."""
    load, operator = problem.load_tps[position], p.operator
    of_size = {int(m): operator.curve.response_s(load, int(m)) for m in p.sizes}
    kept = 0.0
    if p.kept is not None:
        assert problem.current is not None
        kept = operator_latency_s(problem, operator, problem.current[operator.id])
    speed = np.array([node.speedup for node in problem.nodes])
    fastest = max((speed[u] for u in p.node), default=1.0)
    least = p.head({m: seconds / fastest for m, seconds in of_size.items()}, kept)
    more = np.array([of_size[int(m)] for m in p.size]) * (1 / speed[p.node] - 1 / fastest)
    slower = [u for u in np.unique(p.node) if speed[u] < fastest]
    rows = [least + np.concatenate([np.zeros(p.first_x), more * p.count / p.size])]
    rows += [least + np.concatenate([np.zeros(p.first_x), more * (p.node == u)]) for u in slower]
    return np.array(rows)


def downtime_rows(problem: Problem, p: Placements) -> tuple[np.ndarray, np.ndarray]:
    """(M, q) with T_D,i = max(0, max(M v - q)), s; empty without a present deployment."""
    if problem.current is None:
        return np.zeros((0, p.length)), np.zeros(0)
    before = problem.current[p.operator.id]
    match downtime_of(problem):
        case Generic() as strategy:
            rows = _generic_rows(problem, p, before, strategy)
        case Storm() as strategy:
            rows = _storm_rows(problem, p, before, strategy)
        case Live() as strategy:
            rows = _live_rows(problem, p, before, strategy)
    cap = FORBIDDEN * problem.bounds.d
    matrix, offset = np.array([row for row, _ in rows]), np.array([q for _, q in rows])
    return np.minimum(matrix, cap + offset[:, None]), offset


def _with(p: Placements, head: np.ndarray, node: int, value: np.ndarray) -> np.ndarray:
    """`head` plus `value` at the x of `node`."""
    row = head.copy()
    row[p.first_x :] += np.where(p.node == node, value, 0.0)
    return row


def _after(problem: Problem, p: Placements, node: int, count: int, size: int) -> dict[str, int]:
    """A next deployment with `count` of `size` replicas on the node: all that a transfer to or from it asks."""
    return {problem.nodes[node].id: count, "": size - count}


def _generic_rows(problem: Problem, p: Placements, before: Mapping[str, int], strategy: Generic) -> Any:
    """(25)-(27): any change; the code on its way to a node; state that one node gives and another takes."""
    operator, nodes = p.operator, problem.nodes
    nothing = np.zeros(p.length)
    rows = [(p.head(dict.fromkeys(map(int, p.sizes), strategy.sync_s)), 0.0)]
    take = np.array(
        [
            strategy.sync_s
            + state_download_s(
                nodes[u], downloaded_bytes(operator.state_bytes, nodes[u].id, before, _after(problem, p, u, c, m))
            )
            + (nodes[u].spawn_s if c > before.get(nodes[u].id, 0) else 0.0)
            for m, c, u in zip(p.size, p.count, p.node, strict=True)
        ]
    )
    for v in map(int, np.unique(p.node)):
        if nodes[v].id not in before:
            rows.append((_with(p, nothing, v, take + code_download_s(nodes[v], operator.code_bytes)), 0.0))
        for u in (problem.node_index[name] for name in before if name != nodes[v].id):
            give, most = _gives(problem, p, before, u)
            rows.append((_with(p, give, v, take + most), most))
    return rows


def _gives(problem: Problem, p: Placements, before: Mapping[str, int], u: int) -> tuple[np.ndarray, float]:
    """(29), (31) as a row, s, and its greatest value."""
    node, state = problem.nodes[u], p.operator.state_bytes

    def seconds(count: int, size: int) -> float:
        return state_upload_s(node, uploaded_bytes(state, node.id, before, _after(problem, p, u, count, size)))

    none = {int(m): seconds(0, int(m)) for m in p.sizes}
    change = np.array([seconds(int(c), int(m)) - none[int(m)] for m, c in zip(p.size, p.count, strict=True)])
    some = [none[int(m)] + more for m, more, at in zip(p.size, change, p.node, strict=True) if at == u]
    return _with(p, p.head(none), u, change), max([*none.values(), *some], default=0.0)


def _storm_rows(problem: Problem, p: Placements, before: Mapping[str, int], strategy: Storm) -> Any:
    """(33)-(38): any change; state that arrives at each node from the slowest other one."""
    state, nodes, old = p.operator.state_bytes, problem.nodes, sum(before.values())
    rows = [(p.head(dict.fromkeys(map(int, p.sizes), max(strategy.sync_s, strategy.restart_s))), 0.0)]
    for v in map(int, np.unique(p.node)):
        node = nodes[v]
        away = {name: count for name, count in before.items() if name != node.id}
        others = [state_upload_s(strategy.nodes[name], state * count / old) for name, count in away.items()]
        if others:
            code = 0.0 if node.id in strategy.hosting else code_download_s(node, strategy.code_bytes)
            take = np.array(
                [state_download_s(node, state * c / m) + c * node.spawn_s for c, m in zip(p.count, p.size, strict=True)]
            )
            rows.append((_with(p, np.zeros(p.length), v, strategy.sync_s + code + max(others) + take), 0.0))
    return rows


def _live_rows(problem: Problem, p: Placements, before: Mapping[str, int], strategy: Live) -> Any:
    """A constant, and the state that comes to each node; A.2 instead where a node has too few tasks."""
    moves = strategy.price.per_byte_s * p.operator.state_bytes
    most, old = strategy.price.constant_s + moves, sum(before.values())
    row = p.head(dict.fromkeys(map(int, p.sizes), strategy.price.constant_s))
    had = np.array([before.get(problem.nodes[u].id, 0) / old for u in p.node])
    row[p.first_x :] = moves * np.maximum(p.count / p.size - had, 0.0)
    room = np.array([strategy.tasks_on(p.operator, problem.nodes[u].id) for u in p.node])
    over = np.concatenate([np.zeros(p.first_x), np.where(p.count > room, 1.0, 0.0)])
    if not over.any():
        return [(row, 0.0)]
    return [(row - most * over, 0.0), *_restart_rows(problem, p, before, strategy.restart, over)]


def _restart_rows(problem: Problem, p: Placements, before: Mapping[str, int], strategy: Storm, over: np.ndarray) -> Any:
    """Those of A.2, each only where some x of `over` is 1: its own, or (a pair for each node) another's."""
    (change, _), *arrivals = _storm_rows(problem, p, before, strategy)
    at = np.concatenate([np.full(p.first_x, -1), p.node])
    short = {u: over * (at == u) for u in sorted(set(at[over > 0]))}  # on each node at most one x is 1
    rows = [(change.max() * here, 0.0) for here in short.values()]
    for row, _ in arrivals:
        rows.append((row * over, 0.0))
        within = row * (1.0 - over)
        most = within.max()
        rows += [(within + most * here, most) for u, here in short.items() if most and u not in at[within > 0]]
    return rows
