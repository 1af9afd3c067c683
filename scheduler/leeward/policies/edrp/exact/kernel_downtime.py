"""Compiled twins of `downtime`: t_D of one configuration, and lower bounds from one of its nodes alone.

A configuration is `nodes[:size]`, node positions in ascending order with repeats.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import GENERIC, LIVE, Arrays
from leeward.policies.edrp.exact.compiled import kernel, leaf


@leaf
def pair_seconds(p: Arrays, i: int, u: int, v: int, at_u: int, at_v: int, size: int) -> float:
    """tau (27) or (35) for a current node u and a next node v != u with V(u) = at_u, V(v) = at_v, |V| = size."""
    was_u, was_v, was = p.present[i, u], p.present[i, v], p.present_size[i]
    code = 0.0 if p.holds_code[i, v] else p.store_trip[v] + p.code[i] / p.store_down[v]
    if p.model != GENERIC:
        up = p.store_trip[u] + p.state[i] * was_u / was / p.store_up[u]
        down = p.store_trip[v] + p.state[i] * at_v / size / p.store_down[v]
        return code + up + down + at_v * p.spawn[v]
    share_up = max(was_u - at_u, 0) / was
    if size > was:
        share_up += was_u * (size - was) / (was * size)
    share_down = max(at_v - was_v, 0) / size
    if size < was:
        share_down += min(was_v, at_v) * (was - size) / (was * size)
    up = p.store_trip[u] + p.state[i] * share_up / p.store_up[u]
    down = p.store_trip[v] + p.state[i] * share_down / p.store_down[v]
    return max(code, up) + down + (p.spawn[v] if at_v > was_v else 0.0)


@leaf
def config_seconds(p: Arrays, i: int, nodes: np.ndarray, size: int) -> float:
    """T_D,i of a configuration; 0 if it is the present one or there is none."""
    was = p.present_size[i]
    if was == 0:
        return 0.0
    stays, same, restarts = 0.0, was == size, False
    for at in range(size):
        if at > 0 and nodes[at] == nodes[at - 1]:
            continue
        count = _count(nodes, size, nodes[at])
        same = same and count == p.present[i, nodes[at]]
        restarts = restarts or count > p.tasks[i, nodes[at]]
        stays += min(count / size, p.present[i, nodes[at]] / was)
    if same:
        return 0.0
    if p.model == LIVE and not restarts:
        return p.live[0] + p.live[1] * p.state[i] * max(0.0, 1.0 - stays)
    longest = 0.0
    for u in range(p.present.shape[1]):
        if p.present[i, u] == 0:
            continue
        at_u = _count(nodes, size, u)
        for at in range(size):
            v = nodes[at]
            if v != u and (at == 0 or v != nodes[at - 1]):
                longest = max(longest, pair_seconds(p, i, u, v, at_u, _count(nodes, size, v), size))
    return p.sync + longest if p.model == GENERIC else max(p.sync + longest, p.restart)


@leaf
def _count(nodes: np.ndarray, size: int, u: int) -> int:
    found = 0
    for at in range(size):
        if nodes[at] == u:
            found += 1
    return found


@kernel
def least_seconds(p: Arrays, i: int, v: int, at_v: int, size: int) -> float:
    """A lower bound on T_D,i of every configuration of `size` replicas with exactly `at_v` on v."""
    was = p.present_size[i]
    if was == 0 or (p.present[i, v] == at_v and was == size):
        return 0.0
    handover = np.inf
    if p.model == LIVE and at_v <= p.tasks[i, v]:
        before, after = p.present[i, v] / was, at_v / size
        stays = min(before, after) + min(1.0 - before, 1.0 - after)
        handover = p.live[0] + p.live[1] * p.state[i] * max(0.0, 1.0 - stays)
        if p.tasks[i].min() >= size:
            return handover  # else another node may need a restart
    longest = 0.0
    for u in range(p.present.shape[1]):
        if u != v and p.present[i, u] > 0:
            at_u = min(p.present[i, u], size - at_v)
            longest = max(longest, pair_seconds(p, i, u, v, at_u, at_v, size))
    return p.sync + longest if p.model == GENERIC else min(handover, max(p.sync + longest, p.restart))


@kernel
def downtime_tables(p: Arrays, least: np.ndarray, alone: np.ndarray) -> None:
    """Fills [G, kmax + 1, n]: the least T_D,i with a replica on v and one elsewhere; T_D,i with all on v."""
    one = np.zeros(alone.shape[1], dtype=np.int64)
    for i in range(p.k.shape[0]):
        for size in range(1, p.k[i] + 1):
            for v in range(p.speed.shape[0]):
                one[:size] = v
                alone[i, size, v] = config_seconds(p, i, one, size)
                best = np.inf
                for at_v in range(1, size):
                    best = min(best, least_seconds(p, i, v, at_v, size))
                least[i, size, v] = best
