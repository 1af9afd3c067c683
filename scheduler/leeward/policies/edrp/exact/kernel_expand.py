"""The configurations that are worth trying for the next operator, each with its bound.

A bound is the largest over several tables (`kernel_bound`), each with its own weights and prices.  It adds what
lies below the end of the fixed part of the spine to `late`, the length up to there; once the whole spine is
fixed, that is the response time of everything fixed.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_bound import Reach, spread_state, state_of
from leeward.policies.edrp.exact.kernel_downtime import config_seconds
from leeward.policies.edrp.exact.kernel_paths import ends
from leeward.policies.edrp.exact.kernel_state import Children, Desk, Search, State, Tables, threshold
from leeward.policies.edrp.exact.tree import Tree

NONE = -1


@kernel
def bound_of(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, level: int, i: int, nodes: np.ndarray, given: int, size: int,
    late: float, cost: float, downtime: float,
) -> float:  # fmt: skip
    """The largest bound once i has `size` replicas of which the first `given` are on `nodes`; infinite: no use.

    `late` is what the response time is at least before anything below comes on top.
    """
    for a in range(p.held[i], given):
        s.units[nodes[a]] -= p.res_units[i]
    best = p.a * late + p.b * cost + p.e * downtime  # nothing costs less than nothing
    for table in range(b.A.shape[0]):
        value = b.A[table] * late + b.B[table] * cost + b.constant[table] + b.root[table, level + 1] - s.price[table]
        for a in range(p.held[i], given):
            value += b.mu[table, nodes[a]] * p.res[i]
        for at in range(b.hang_count[level + 1]):
            child = b.hang[level + 1, at]
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
def judge(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, desk: Desk, level: int, i: int, given: int,
    size: int, least_traffic: float, values: np.ndarray,
) -> float:  # fmt: skip
    """The bound of the (partial) configuration `desk.nodes[:given]` of `size` replicas; fills `values`."""
    nodes = desk.nodes
    ready, onward, joined, speed, traffic = 0.0, 0.0, -np.inf, np.inf, 0.0
    for a in range(given):
        w = nodes[a]
        ready = max(ready, desk.ready[w])
        onward = max(onward, desk.onward[w])
        joined = max(joined, desk.joined[w])
        speed = min(speed, p.speed[w])
        traffic += desk.traffic[w]
    finish = ready + p.latency[i, size] / speed
    cost = s.cost[level] + size * p.price[i] + (traffic + (size - given) * least_traffic) / size
    response = max(s.response[level], finish + onward)
    if response > p.r_max or cost > p.c_max:
        return np.inf
    if level + 1 >= t.whole:
        late = response
    else:
        late = finish if t.on_spine[i] else max(s.head[t.last[level]], finish + joined)
    downtime = max(s.downtime[level], h.floor[0])
    if given == size and p.present_size[i] > 0:
        desk.sorted[:size] = nodes[:size]
        desk.sorted[:size].sort()
        own = config_seconds(p, i, desk.sorted, size)
        if own > h.floor[1]:
            return np.inf
        downtime = max(downtime, own)
    values[0], values[1], values[2], values[3] = finish, cost, downtime, response
    if level + 1 == p.k.shape[0]:
        return p.a * response + p.b * cost + p.e * downtime
    return bound_of(p, t, x, b, s, level, i, nodes, given, size, late, cost, downtime)


@kernel
def offer(h: Search, c: Children, desk: Desk, level: int, size: int, bound: float, values: np.ndarray) -> None:
    """Keeps a child for later; at the last level only the best."""
    last = level + 1 == c.count.shape[0]
    if last and c.count[level] == 1:
        if bound >= c.bound[level, 0]:
            return
        c.count[level] = 0
    at = c.count[level]
    if at == c.bound.shape[1]:
        h.lost[0] = min(h.lost[0], bound)
        return
    c.nodes[level, at, :size] = desk.nodes[:size]
    c.nodes[level, at, :size].sort()
    c.size[level, at] = size
    c.bound[level, at] = bound
    c.values[level, at] = values
    c.count[level] = at + 1


@kernel
def scan(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, desk: Desk, level: int, i: int, size: int,
    least_traffic: float,
) -> None:  # fmt: skip
    """Bounds of i with `size` replicas, by node: all there, or one there and others elsewhere.

    The same as `judge` for all nodes at once, but for what i takes from the nodes of other operators.
    """
    child = NONE
    for table in range(b.A.shape[0]):
        desk.base[table] = b.constant[table] + b.root[table, level + 1] - s.price[table]
    for at in range(b.hang_count[level + 1]):
        other = b.hang[level + 1, at]
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
            desk.base[table] += worst
    downtime = max(s.downtime[level], h.floor[0])
    fixed_cost = s.cost[level] + size * p.price[i]
    spread = spread_state(x, (size - 1) * x.fresh[i])
    limit = threshold(h)
    h.fuel[0] -= p.speed.shape[0]
    for w in range(p.speed.shape[0]):
        desk.whole[w], desk.bound[w] = np.inf, np.inf
        if not p.allowed[i, w] or s.rest[w] < (1 - p.held[i]) * p.res[i]:
            continue
        finish = desk.ready[w] + p.latency[i, size] / p.speed[w]
        response = max(s.response[level], finish + desk.onward[w])
        if response > p.r_max:
            continue
        if level + 1 >= t.whole:
            late = response
        else:
            late = finish if t.on_spine[i] else max(s.head[t.last[level]], finish + desk.joined[w])
        for part in range(2):
            here = size if part == 0 else 1
            if part == 1 and size == 1:
                break
            usable = x.alone[i, size, w] if part == 0 else x.some[i, size, w]
            needs = here - p.held[i]
            if not usable or s.rest[w] < needs * p.res[i]:
                continue
            cost = fixed_cost + (here * desk.traffic[w] + (size - here) * least_traffic) / size
            value = p.a * late + p.b * cost + p.e * downtime
            if cost > p.c_max or value >= limit:
                continue
            left = max(s.units[w] - needs * p.res_units[i], 0)
            for table in range(b.A.shape[0]):
                one = desk.base[table] + b.A[table] * late + b.B[table] * cost + b.mu[table, w] * needs * p.res[i]
                if child != NONE:
                    one += b.keep[table, child, w, left, size, 0 if part == 0 else spread]
                if np.isfinite(b.limit[table]):
                    if one > b.limit[table]:
                        value = np.inf
                else:
                    value = max(value, one + p.e * downtime)
            if part == 0:
                desk.whole[w] = value
            else:
                desk.bound[w] = value


@kernel
def expand(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, c: Children, desk: Desk, level: int, most: int
) -> None:  # fmt: skip
    """Fills the children of a level with every configuration whose bound is below the threshold.

    Spread configurations are made of the `most` best nodes only; a search that proves something takes all.
    """
    i = t.order[level]
    n = p.speed.shape[0]
    c.count[level], c.at[level] = 0, 0
    ends(p, t, s, i, desk)
    least_traffic = np.inf
    for w in range(n):
        if p.allowed[i, w] and s.rest[w] >= (1 - p.held[i]) * p.res[i]:
            least_traffic = min(least_traffic, desk.traffic[w])
    if least_traffic == np.inf:
        return
    values = np.zeros(4)
    for size in range(1, p.k[i] + 1):
        if not np.isfinite(p.latency[i, size]):
            continue
        scan(p, t, x, b, s, h, desk, level, i, size, least_traffic)
        limit = threshold(h)
        for w in range(n):
            if desk.whole[w] < limit:
                desk.nodes[:size] = w
                bound = judge(p, t, x, b, s, h, desk, level, i, size, size, 0.0, values)
                if bound < limit:
                    offer(h, c, desk, level, size, bound, values)
        survivors = np.nonzero(desk.bound < limit)[0]
        if survivors.shape[0] > 1:
            ranked = survivors[np.argsort(desk.bound[survivors], kind="mergesort")][:most]
            spread_out(p, t, x, b, s, h, c, desk, level, i, size, ranked, least_traffic, values)
    if c.count[level] > 0:
        c.order[level, : c.count[level]] = np.argsort(c.bound[level, : c.count[level]], kind="mergesort")


@kernel
def spread_out(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, c: Children, desk: Desk, level: int, i: int,
    size: int, ranked: np.ndarray, least_traffic: float, values: np.ndarray,
) -> None:  # fmt: skip
    """Configurations on at least two nodes: multisets of the ranked nodes, pruned as they grow.

    Out of fuel it leaves the rest; none of it is better than its best node.
    """
    pick, depth = desk.pick, 0
    pick[0] = 0
    while depth >= 0:
        if pick[depth] == ranked.shape[0]:
            depth -= 1
            if depth >= 0:
                s.rest[ranked[pick[depth]]] += p.res[i]
                pick[depth] += 1
            continue
        w = ranked[pick[depth]]
        if h.fuel[0] <= 0:
            h.lost[0] = min(h.lost[0], desk.bound[ranked[pick[0]]])
            for up in range(depth):
                s.rest[ranked[pick[up]]] += p.res[i]
            return
        desk.nodes[depth] = w
        if desk.bound[w] >= threshold(h):
            pick[depth] = ranked.shape[0]  # they are sorted: nobody behind is better
            continue
        spread = pick[depth] != pick[0]
        useless = s.rest[w] < p.res[i] or (depth + 1 == size and not spread)
        if not useless and (spread or depth + 1 == size):
            h.fuel[0] -= depth + 1
            bound = judge(p, t, x, b, s, h, desk, level, i, depth + 1, size, least_traffic, values)
            useless = bound >= threshold(h)
            if not useless and depth + 1 == size:
                offer(h, c, desk, level, size, bound, values)
        if useless or depth + 1 == size:
            pick[depth] += 1
            continue
        s.rest[w] -= p.res[i]
        depth += 1
        pick[depth] = pick[depth - 1]
