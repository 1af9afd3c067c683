"""Longest paths through the operators that are fixed, and what an operator meets on each node.

`finish` and `head` include what side operators that are not yet fixed must delay an operator at least
(`shadows`).
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_state import Scratch, State
from leeward.policies.edrp.exact.tree import Tree


@kernel
def spread_delay(p: Arrays, s: State, q: int, w: int, forward: bool) -> float:
    """d_(U,w) or d_(w,U) for the fixed operator q."""
    far = 0.0
    for at in range(s.size[q]):
        u = s.nodes[q, at]
        far = max(far, p.delay[u, w] if forward else p.delay[w, u])
    return far


@kernel
def shadows(p: Arrays, t: Tree, s: State, i: int, out: np.ndarray, scratch: Scratch) -> None:
    """Least arrival [G, n] on each node from side operators upstream of i that are not fixed."""
    n, count = p.speed.shape[0], p.k.shape[0]
    needed = np.zeros(count, dtype=np.bool_)
    for at in range(count - 1, -1, -1):
        x = p.topo[at]
        for e in range(p.edge_from.shape[0]):
            if p.edge_from[e] == x and not s.fixed[x] and (p.edge_to[e] == i or needed[p.edge_to[e]]):
                needed[x] = True
    ready = scratch.ready
    for at in range(count):
        x = p.topo[at]
        if not needed[x]:
            continue
        arrivals(p, s, x, out, ready)
        fastest = p.latency[x, p.k[x]]
        out[x, :] = np.inf
        for u in range(n):
            if not p.allowed[x, u] or s.rest[u] < (1 - p.held[x]) * p.res[x]:
                continue
            here = ready[u] + fastest / p.speed[u]
            row = p.delay[u]
            for w in range(n):
                out[x, w] = min(out[x, w], here + row[w])


@kernel
def arrivals(p: Arrays, s: State, i: int, shadow: np.ndarray, ready: np.ndarray) -> None:
    """When i's input is there, by node: from fixed operators exactly, from others at the earliest."""
    ready[:] = 0.0
    for e in range(p.edge_to.shape[0]):
        if p.edge_to[e] != i:
            continue
        q = p.edge_from[e]
        for w in range(ready.shape[0]):
            if not p.allowed[i, w]:
                continue
            ready[w] = max(ready[w], s.head[q] + spread_delay(p, s, q, w, True) if s.fixed[q] else shadow[q, w])


@kernel
def slowest(p: Arrays, s: State, i: int) -> float:
    """R_i,U of a fixed operator."""
    worst = 0.0
    for a in range(s.size[i]):
        worst = max(worst, p.latency[i, s.size[i]] / p.speed[s.nodes[i, a]])
    return worst


@kernel
def refresh(p: Arrays, s: State, last: int) -> float:
    """Longest paths up to and from each fixed operator, among the fixed; returns the longest of all.

    `last` is the last fixed operator of the spine.
    """
    count = p.k.shape[0]
    for at in range(count):
        i = p.topo[at]
        if s.fixed[i]:
            before = 0.0
            for e in range(p.edge_to.shape[0]):
                q = p.edge_from[e]
                if p.edge_to[e] == i and s.fixed[q]:
                    for a in range(s.size[i]):
                        before = max(before, s.head[q] + spread_delay(p, s, q, s.nodes[i, a], True))
            s.head[i] = max(s.finish[i], before + slowest(p, s, i))
    longest = 0.0
    for at in range(count - 1, -1, -1):
        i = p.topo[at]
        if s.fixed[i]:
            after, joined = 0.0, 0.0 if i == last else -np.inf
            for e in range(p.edge_to.shape[0]):
                q = p.edge_to[e]
                if p.edge_from[e] == i and s.fixed[q]:
                    for a in range(s.size[i]):
                        way = spread_delay(p, s, q, s.nodes[i, a], False)
                        after = max(after, way + s.tail[q])
                        joined = max(joined, way + s.join[q])
            own = slowest(p, s, i)
            s.tail[i] = after + own
            s.join[i] = joined + own
            longest = max(longest, s.head[i] + after)
    return longest


@kernel
def ends(p: Arrays, t: Tree, s: State, i: int, scratch: Scratch) -> None:
    """By node: when i's input is there, how long it takes from there on, and what its streams cost in $/h."""
    n = p.speed.shape[0]
    scratch.onward[:] = 0.0
    scratch.joined[:] = -np.inf
    scratch.traffic[:] = 0.0
    shadow = np.zeros((p.k.shape[0], n))
    shadows(p, t, s, i, shadow, scratch)
    arrivals(p, s, i, shadow, scratch.ready)
    for e in range(p.edge_to.shape[0]):
        if p.edge_to[e] != i and p.edge_from[e] != i:
            continue
        down = p.edge_to[e] == i
        q = p.edge_from[e] if down else p.edge_to[e]
        if not s.fixed[q]:
            continue
        share = p.rate[e] / s.size[q]
        for w in range(n):
            if not p.allowed[i, w]:
                continue
            for a in range(s.size[q]):
                u = s.nodes[q, a]
                scratch.traffic[w] += share * (p.link[u, w] if down else p.link[w, u])
            if not down:
                way = spread_delay(p, s, q, w, False)
                scratch.onward[w] = max(scratch.onward[w], way + s.tail[q])
                scratch.joined[w] = max(scratch.joined[w], way + s.join[q])
