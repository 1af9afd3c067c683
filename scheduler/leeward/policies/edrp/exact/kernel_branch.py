"""Branching: the configurations that are worth trying for the next operator, each with its bound.

A bound is the largest over several tables (`kernel_bound`), each with its own weights and prices.  It adds what
lies below the end of the fixed part of the spine to `late`, the length up to there; once the whole spine is
fixed, that is the response time of everything fixed.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_bound import spread_state, state_of
from leeward.policies.edrp.exact.kernel_downtime import config_seconds
from leeward.policies.edrp.exact.kernel_paths import ends
from leeward.policies.edrp.exact.kernel_state import Branching, Children, Incumbent, Scratch, Search, State, cutoff

NONE = -1


@kernel
def barred(p: Arrays, s: State, i: int, w: int) -> bool:
    """An operator that may not share a node with i is fixed on w."""
    for place in range(p.rivals.shape[1]):
        q = p.rivals[i, place]
        if q == NONE:
            break
        if s.fixed[q]:
            for a in range(s.size[q]):
                if s.nodes[q, a] == w:
                    return True
    return False


@kernel
def bound_of(search: Search, at: Branching, given: int, late: float, cost: float, downtime: float) -> float:
    """The largest bound once the first `given` replicas are on the nodes of the scratch; infinite: no use.

    `late` is what the response time is at least before anything below comes on top.
    """
    p, t, x, b, s, nodes = search.p, search.t, search.x, search.b, search.s, search.scratch.nodes
    level, i, size = at.level, at.i, at.size
    for a in range(p.held[i], given):
        s.units[nodes[a]] -= p.res_units[i]
    best = p.a * late + p.b * cost + p.e * downtime  # nothing costs less than nothing
    for table in range(b.A.shape[0]):
        value = b.A[table] * late + b.B[table] * cost + b.constant[table] + b.root[table, level + 1] - s.price[table]
        for a in range(p.held[i], given):
            value += b.mu[table, nodes[a]] * p.res[i]
        for place in range(b.hang_count[level + 1]):
            child = b.hang[level + 1, place]
            q = t.parent[child]
            keep = b.keep[table, child]
            worst = -np.inf
            if q == i:
                for a in range(given):
                    v = nodes[a]
                    state = state_of(p, x, i, nodes, given, size, v, s.units)
                    worst = max(worst, keep[v, max(s.units[v], 0), size, state])
            else:
                for a in range(s.size[q]):
                    v = s.nodes[q, a]
                    state = state_of(p, x, q, s.nodes[q], s.size[q], s.size[q], v, s.units)
                    worst = max(worst, keep[v, max(s.units[v], 0), s.size[q], state])
            value += worst
        if np.isfinite(b.limit[table]):
            if value > b.limit[table]:
                best = np.inf
                break
        else:
            best = max(best, value + p.e * downtime)
    for a in range(p.held[i], given):
        s.units[nodes[a]] += p.res_units[i]
    return best


@kernel
def bound_child(search: Search, at: Branching, given: int, values: np.ndarray) -> float:
    """The bound of the (partial) configuration `scratch.nodes[:given]`; fills `values`."""
    p, t, s, h, scratch = search.p, search.t, search.s, search.h, search.scratch
    level, i, size = at.level, at.i, at.size
    nodes = scratch.nodes
    ready, onward, joined, speed, traffic = 0.0, 0.0, -np.inf, np.inf, 0.0
    for a in range(given):
        u = nodes[a]
        ready = max(ready, scratch.ready[u])
        onward = max(onward, scratch.onward[u])
        joined = max(joined, scratch.joined[u])
        speed = min(speed, p.speed[u])
        traffic += scratch.traffic[u]
    finish = ready + p.latency[i, size] / speed
    cost = s.cost[level] + size * p.price[i] + (traffic + (size - given) * at.least_traffic) / size
    response = max(s.response[level], finish + onward)
    if response > p.r_max or cost > p.c_max:
        return np.inf
    if level + 1 >= t.whole:
        late = response
    else:
        late = finish if t.on_spine[i] else max(s.head[t.last[level]], finish + joined)
    downtime = max(s.downtime[level], h.floor[0])
    if given == size and p.present_size[i] > 0:
        scratch.sorted[:size] = nodes[:size]
        scratch.sorted[:size].sort()
        own = config_seconds(p, i, scratch.sorted, size)
        if own > h.floor[1]:
            return np.inf
        downtime = max(downtime, own)
    values[0], values[1], values[2], values[3] = finish, cost, downtime, response
    if level + 1 == p.k.shape[0]:
        return p.a * response + p.b * cost + p.e * downtime
    return bound_of(search, at, given, late, cost, downtime)


@kernel
def add_child(
    h: Incumbent, c: Children, scratch: Scratch, at: Branching, bound: float, values: np.ndarray
) -> None:  # fmt: skip
    """Keeps a child for later; at the last level only the best."""
    level, size = at.level, at.size
    last = level + 1 == c.count.shape[0]
    if last and c.count[level] == 1:
        if bound >= c.bound[level, 0]:
            return
        c.count[level] = 0
    child = c.count[level]
    if child == c.bound.shape[1]:
        h.dropped[0] = min(h.dropped[0], bound)
        return
    c.nodes[level, child, :size] = scratch.nodes[:size]
    c.nodes[level, child, :size].sort()
    c.size[level, child] = size
    c.bound[level, child] = bound
    c.values[level, child] = values
    c.count[level] = child + 1


@kernel
def bound_by_node(search: Search, at: Branching) -> None:
    """Bounds of all replicas on a node, and of one there and others elsewhere, by node.

    The same as `bound_child` for all nodes at once, but for what i takes from the nodes of other operators.
    """
    p, t, x, b, s, h, scratch = search.p, search.t, search.x, search.b, search.s, search.h, search.scratch
    level, i, size = at.level, at.i, at.size
    child = NONE
    for table in range(b.A.shape[0]):
        scratch.base[table] = b.constant[table] + b.root[table, level + 1] - s.price[table]
    for place in range(b.hang_count[level + 1]):
        other = b.hang[level + 1, place]
        q = t.parent[other]
        if q == i:
            child = other
            continue
        for table in range(b.A.shape[0]):
            worst = -np.inf
            for a in range(s.size[q]):
                v = s.nodes[q, a]
                state = state_of(p, x, q, s.nodes[q], s.size[q], s.size[q], v, s.units)
                worst = max(worst, b.keep[table, other, v, s.units[v], s.size[q], state])
            scratch.base[table] += worst
    downtime = max(s.downtime[level], h.floor[0])
    fixed_cost = s.cost[level] + size * p.price[i]
    spread = spread_state(x, (size - 1) * x.fresh[i])
    limit = cutoff(h)
    h.budget[0] -= p.speed.shape[0]
    for w in range(p.speed.shape[0]):
        scratch.whole[w], scratch.bound[w] = np.inf, np.inf
        if not p.allowed[i, w] or s.rest[w] < (1 - p.held[i]) * p.res[i] or barred(p, s, i, w):
            continue
        finish = scratch.ready[w] + p.latency[i, size] / p.speed[w]
        response = max(s.response[level], finish + scratch.onward[w])
        if response > p.r_max:
            continue
        if level + 1 >= t.whole:
            late = response
        else:
            late = finish if t.on_spine[i] else max(s.head[t.last[level]], finish + scratch.joined[w])
        for part in range(2):
            here = size if part == 0 else 1
            if part == 1 and size == 1:
                break
            usable = x.alone[i, size, w] if part == 0 else x.some[i, size, w]
            needs = here - p.held[i]
            if not usable or s.rest[w] < needs * p.res[i]:
                continue
            cost = fixed_cost + (here * scratch.traffic[w] + (size - here) * at.least_traffic) / size
            value = p.a * late + p.b * cost + p.e * downtime
            if cost > p.c_max or value >= limit:
                continue
            left = max(s.units[w] - needs * p.res_units[i], 0)
            for table in range(b.A.shape[0]):
                one = scratch.base[table] + b.A[table] * late + b.B[table] * cost + b.mu[table, w] * needs * p.res[i]
                if child != NONE:
                    one += b.keep[table, child, w, left, size, 0 if part == 0 else spread]
                if np.isfinite(b.limit[table]):
                    if one > b.limit[table]:
                        value = np.inf
                else:
                    value = max(value, one + p.e * downtime)
            if part == 0:
                scratch.whole[w] = value
            else:
                scratch.bound[w] = value


@kernel
def branch(search: Search, level: int, most: int) -> None:
    """Fills the children of a level with every configuration whose bound is below the cutoff.

    Spread configurations are made of the `most` best nodes only; a search that proves something takes all.
    """
    p, t, s, h, c, scratch = search.p, search.t, search.s, search.h, search.c, search.scratch
    i = t.order[level]
    n = p.speed.shape[0]
    c.count[level], c.at[level] = 0, 0
    ends(p, t, s, i, scratch)
    least_traffic = np.inf
    for w in range(n):
        if p.allowed[i, w] and s.rest[w] >= (1 - p.held[i]) * p.res[i]:
            least_traffic = min(least_traffic, scratch.traffic[w])
    if least_traffic == np.inf:
        return
    values = np.zeros(4)
    for size in range(1, p.k[i] + 1):
        if not np.isfinite(p.latency[i, size]):
            continue
        at = Branching(level, i, size, least_traffic)
        bound_by_node(search, at)
        limit = cutoff(h)
        for w in range(n):
            if scratch.whole[w] < limit:
                scratch.nodes[:size] = w
                bound = bound_child(search, at, size, values)
                if bound < limit:
                    add_child(h, c, scratch, at, bound, values)
        survivors = np.nonzero(scratch.bound < limit)[0]
        if survivors.shape[0] > 1:
            ranked = survivors[np.argsort(scratch.bound[survivors], kind="mergesort")][:most]
            branch_spread(search, at, ranked, values)
    if c.count[level] > 0:
        c.order[level, : c.count[level]] = np.argsort(c.bound[level, : c.count[level]], kind="mergesort")


@kernel
def branch_spread(search: Search, at: Branching, ranked: np.ndarray, values: np.ndarray) -> None:
    """Configurations on at least two nodes: multisets of the ranked nodes, pruned as they grow.

    Out of budget it leaves the rest; none of it is better than its best node.
    """
    p, s, h, c, scratch = search.p, search.s, search.h, search.c, search.scratch
    i, size = at.i, at.size
    pick, depth = scratch.pick, 0
    pick[0] = 0
    while depth >= 0:
        if pick[depth] == ranked.shape[0]:
            depth -= 1
            if depth >= 0:
                s.rest[ranked[pick[depth]]] += p.res[i]
                pick[depth] += 1
            continue
        w = ranked[pick[depth]]
        if h.budget[0] <= 0:
            h.dropped[0] = min(h.dropped[0], scratch.bound[ranked[pick[0]]])
            for up in range(depth):
                s.rest[ranked[pick[up]]] += p.res[i]
            return
        scratch.nodes[depth] = w
        if scratch.bound[w] >= cutoff(h):
            pick[depth] = ranked.shape[0]  # they are sorted: nobody behind is better
            continue
        spread = pick[depth] != pick[0]
        useless = s.rest[w] < p.res[i] or (depth + 1 == size and not spread)
        if not useless and (spread or depth + 1 == size):
            h.budget[0] -= depth + 1
            bound = bound_child(search, at, depth + 1, values)
            useless = bound >= cutoff(h)
            if not useless and depth + 1 == size:
                add_child(h, c, scratch, at, bound, values)
        if useless or depth + 1 == size:
            pick[depth] += 1
            continue
        s.rest[w] -= p.res[i]
        depth += 1
        pick[depth] = pick[depth - 1]
