"""The compiled branch and bound: fix the operators in the order of the tree, each to a configuration.

A node of the search tree is a beginning: the first operators of that order are fixed.  Branching gives it a child for
each configuration of the next operator whose bound is below the cutoff.  The search goes depth first, children by
their bound; a beam search over the same children gives the first incumbent.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_branch import branch
from leeward.policies.edrp.exact.kernel_paths import refresh
from leeward.policies.edrp.exact.kernel_state import Incumbent, Search, State, Tables, cutoff
from leeward.policies.edrp.exact.tree import Tree

#: Nodes that the beam search makes spread configurations of. An int64, as numba compiles a function once more for each
#: literal that it is given: `branch` takes ten seconds.
BEAM_NODES = np.int64(8)


@kernel
def fix(p: Arrays, t: Tree, b: Tables, s: State, level: int, nodes: np.ndarray, size: int, values: np.ndarray) -> None:
    """Makes a child the configuration of its operator."""
    i = t.order[level]
    s.nodes[i, :size] = nodes[:size]
    s.size[i] = size
    s.fixed[i] = True
    for a in range(p.held[i], size):
        s.rest[nodes[a]] -= p.res[i]
        s.units[nodes[a]] -= p.res_units[i]
        for table in range(b.A.shape[0]):
            s.price[table] -= b.mu[table, nodes[a]] * p.res[i]
    s.finish[i] = values[0]
    s.cost[level + 1] = values[1]
    s.downtime[level + 1] = values[2]
    s.response[level + 1] = refresh(p, s, t.last[level + 1])


@kernel
def unfix(p: Arrays, t: Tree, b: Tables, s: State, level: int) -> None:
    """Undoes `fix`; heads and tails are only looked at right after `fix`, so they may stay."""
    i = t.order[level]
    for a in range(p.held[i], s.size[i]):
        s.rest[s.nodes[i, a]] += p.res[i]
        s.units[s.nodes[i, a]] += p.res_units[i]
        for table in range(b.A.shape[0]):
            s.price[table] += b.mu[table, s.nodes[i, a]] * p.res[i]
    s.fixed[i] = False


@kernel
def record(s: State, h: Incumbent, value: float) -> None:
    """Makes the deployment at hand the incumbent."""
    h.best[0] = value
    h.best_nodes[:] = s.nodes
    h.best_size[:] = s.size


@kernel
def depth_first(search: Search, reserve: int) -> None:
    """Goes on with the depth-first search until no more than `reserve` of the budget is left.

    It begins with `depth` at -2 and has closed everything when that is -1.
    """
    p, t, b, s, h, c = search.p, search.t, search.b, search.s, search.h, search.c
    count = p.k.shape[0]
    depth = h.depth[0]
    if depth == -2:
        depth = np.int64(0)
        branch(search, depth, p.speed.shape[0])
    while depth >= 0 and h.budget[0] > reserve:
        if c.at[depth] == c.count[depth]:
            depth -= 1
            if depth >= 0:
                unfix(p, t, b, s, depth)
            continue
        child = c.order[depth, c.at[depth]]
        c.at[depth] += 1
        if c.bound[depth, child] >= cutoff(h):
            c.at[depth] = c.count[depth]
            continue
        fix(p, t, b, s, depth, c.nodes[depth, child], c.size[depth, child], c.values[depth, child])
        if depth + 1 == count:
            record(s, h, c.bound[depth, child])
            unfix(p, t, b, s, depth)
            continue
        depth += 1
        branch(search, depth, p.speed.shape[0])
    h.depth[0] = depth


@kernel
def beam(search: Search, width: int, each: int) -> None:
    """Level by level the `width` best beginnings, from each of them at most the `each` best children.

    Out of budget it ends with what it has found.
    """
    p, t, b, s, h, c = search.p, search.t, search.b, search.s, search.h, search.c
    count, kmax = p.k.shape[0], c.nodes.shape[2]
    nodes, size = np.zeros((width, count, kmax), dtype=np.int64), np.zeros((width, count), dtype=np.int64)
    values = np.zeros((width, count, 4))
    new_nodes, new_size, new_values = nodes.copy(), size.copy(), values.copy()
    pool_bound = np.empty(width * each)
    pool_from = np.empty(width * each, dtype=np.int64)
    pool_nodes = np.empty((width * each, kmax), dtype=np.int64)
    pool_size = np.empty(width * each, dtype=np.int64)
    pool_values = np.empty((width * each, 4))
    beginnings = 1
    for level in range(count):
        pooled = 0
        for at in range(beginnings):
            if h.budget[0] <= 0:
                return
            for back in range(level):
                fix(p, t, b, s, back, nodes[at, back], size[at, back], values[at, back])
            branch(search, level, BEAM_NODES)
            for place in range(min(each, c.count[level])):
                child = c.order[level, place]
                pool_bound[pooled] = c.bound[level, child]
                pool_from[pooled] = at
                pool_nodes[pooled] = c.nodes[level, child]
                pool_size[pooled] = c.size[level, child]
                pool_values[pooled] = c.values[level, child]
                pooled += 1
                if level + 1 == count and c.bound[level, child] < h.best[0]:
                    fix(p, t, b, s, level, c.nodes[level, child], c.size[level, child], c.values[level, child])
                    record(s, h, c.bound[level, child])
                    unfix(p, t, b, s, level)
            for back in range(level - 1, -1, -1):
                unfix(p, t, b, s, back)
        order = np.argsort(pool_bound[:pooled], kind="mergesort")[:width]
        beginnings = order.shape[0]
        for at in range(beginnings):
            entry = order[at]
            new_nodes[at] = nodes[pool_from[entry]]
            new_size[at] = size[pool_from[entry]]
            new_values[at] = values[pool_from[entry]]
            new_nodes[at, level] = pool_nodes[entry]
            new_size[at, level] = pool_size[entry]
            new_values[at, level] = pool_values[entry]
        nodes, new_nodes = new_nodes, nodes
        size, new_size = new_size, size
        values, new_values = new_values, values
