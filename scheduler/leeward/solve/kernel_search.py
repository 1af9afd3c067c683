"""The compiled branch and bound: fix the operators in the order of the tree, each to a configuration.

Depth first, children by their bound; a beam search over the same children gives the first incumbent.  A bound is
the largest over several tables (`kernel_bound`), each with its own weights and prices.

`finish` and `head` include what side operators that are not yet fixed must delay an operator at least
(`shadows`).  A bound adds what lies below the end of the fixed part of the spine to `late`, the length up to
there; once the whole spine is fixed, that is the response time of everything fixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from leeward.solve.arrays import Arrays
from leeward.solve.kernel_bound import Reach
from leeward.solve.kernel_downtime import config_seconds
from leeward.solve.tree import Tree

NONE = -1
#: Nodes that the beam search makes spread configurations of.
BEAM_NODES = 8


class Tables(NamedTuple):
    """Bounds, first axis: the table.  A table with a `limit` bounds a metric, the others bound F."""

    keep: np.ndarray  # [T, G, n, levels + 1, kmax + 1, 2]
    A: np.ndarray  # [T] weight of response time
    B: np.ndarray  # [T] weight of cost
    mu: np.ndarray  # [T, n] price of a unit
    constant: np.ndarray  # [T] what the multipliers of R_max and C_max take off
    limit: np.ndarray  # [T] infinite for tables that bound F
    root: np.ndarray  # [T, G + 1] what the operators without tree parent add that are not fixed at a level
    hang: np.ndarray  # [G + 1, G] first unfixed children of fixed operators, by level
    hang_count: np.ndarray  # [G + 1]


class State(NamedTuple):
    """The operators fixed so far; scalars by level, so that going back needs no arithmetic."""

    nodes: np.ndarray  # [G, kmax] ascending
    size: np.ndarray  # [G]
    finish: np.ndarray  # [G] longest path up to and with an operator when it was fixed
    rest: np.ndarray  # [n] capacity left
    units: np.ndarray  # [n] the same in units of the bound
    cost: np.ndarray  # [G + 1]
    downtime: np.ndarray  # [G + 1]
    response: np.ndarray  # [G + 1]
    price: np.ndarray  # [T] sum of mu_u times what is left on u
    head: np.ndarray  # [G] longest path up to and with an operator
    tail: np.ndarray  # [G] longest path from and with an operator
    join: np.ndarray  # [G] the same, to the last fixed operator of the spine; -inf if it does not lead there
    fixed: np.ndarray  # [G] whether an operator is fixed


class Children(NamedTuple):
    """Configurations to try at each level."""

    nodes: np.ndarray  # [G, cap, kmax]
    size: np.ndarray  # [G, cap]
    bound: np.ndarray  # [G, cap]
    values: np.ndarray  # [G, cap, 4] finish, cost, downtime, response
    order: np.ndarray  # [G, cap] by bound
    count: np.ndarray  # [G]
    at: np.ndarray  # [G] how many were tried


class Search(NamedTuple):
    """What the search works with and what it has found."""

    best: np.ndarray  # [1] F of the incumbent, or more than any feasible deployment is worth
    best_nodes: np.ndarray  # [G, kmax]
    best_size: np.ndarray  # [G]
    lost: np.ndarray  # [1] least bound of children dropped for want of space
    depth: np.ndarray  # [1]
    slack: np.ndarray  # [2] absolute and relative: what is not better by more is pruned
    floor: np.ndarray  # [2] downtime that every configuration in question has at least, and at most


class Desk(NamedTuple):
    """Working space of `expand`, by node unless said otherwise."""

    ready: np.ndarray  # when the input is there
    onward: np.ndarray  # longest way on among fixed operators
    joined: np.ndarray  # the same to the last fixed operator of the spine
    traffic: np.ndarray  # $/h of the streams to fixed operators
    bound: np.ndarray  # of a configuration with a replica there and another elsewhere
    whole: np.ndarray  # of the configuration with all replicas there
    base: np.ndarray  # [T] what the tables add for what hangs below other operators
    nodes: np.ndarray  # [kmax] the configuration at hand
    sorted: np.ndarray  # [kmax] the same, ascending
    pick: np.ndarray  # [kmax] positions in the list of survivors


@njit(cache=True)
def threshold(h: Search) -> float:
    """A bound of at least this cannot lead to anything worth having."""
    return h.best[0] - h.slack[0] - h.slack[1] * h.best[0]


@njit(cache=True)
def spread_delay(p: Arrays, s: State, q: int, w: int, forward: bool) -> float:
    """d_(U,w) or d_(w,U) for the fixed operator q."""
    far = 0.0
    for at in range(s.size[q]):
        u = s.nodes[q, at]
        far = max(far, p.delay[u, w] if forward else p.delay[w, u])
    return far


@njit(cache=True)
def shadows(p: Arrays, t: Tree, s: State, i: int, out: np.ndarray, desk: Desk) -> None:
    """Least arrival [G, n] on each node from side operators upstream of i that are not fixed."""
    n, count = p.speed.shape[0], p.k.shape[0]
    needed = np.zeros(count, dtype=np.bool_)
    for at in range(count - 1, -1, -1):
        x = p.topo[at]
        for e in range(p.edge_from.shape[0]):
            if p.edge_from[e] == x and not s.fixed[x] and (p.edge_to[e] == i or needed[p.edge_to[e]]):
                needed[x] = True
    ready = desk.ready
    for at in range(count):
        x = p.topo[at]
        if not needed[x]:
            continue
        arrivals(p, s, x, out, ready)
        fastest = p.latency[x, p.k[x]]
        out[x, :] = np.inf
        for u in range(n):
            if not p.allowed[x, u] or s.rest[u] < p.res[x]:
                continue
            here = ready[u] + fastest / p.speed[u]
            row = p.delay[u]
            for w in range(n):
                out[x, w] = min(out[x, w], here + row[w])


@njit(cache=True)
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


@njit(cache=True)
def slowest(p: Arrays, s: State, i: int) -> float:
    """R_i,U of a fixed operator."""
    worst = 0.0
    for a in range(s.size[i]):
        worst = max(worst, p.latency[i, s.size[i]] / p.speed[s.nodes[i, a]])
    return worst


@njit(cache=True)
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


@njit(cache=True)
def ends(p: Arrays, t: Tree, s: State, i: int, desk: Desk) -> None:
    """By node: when i's input is there, how long it takes from there on, and what its streams cost in $/h."""
    n = p.speed.shape[0]
    desk.onward[:] = 0.0
    desk.joined[:] = -np.inf
    desk.traffic[:] = 0.0
    shadow = np.zeros((p.k.shape[0], n))
    shadows(p, t, s, i, shadow, desk)
    arrivals(p, s, i, shadow, desk.ready)
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
                desk.traffic[w] += share * (p.link[u, w] if down else p.link[w, u])
            if not down:
                way = spread_delay(p, s, q, w, False)
                desk.onward[w] = max(desk.onward[w], way + s.tail[q])
                desk.joined[w] = max(desk.joined[w], way + s.join[q])


@njit(cache=True)
def bound_of(
    p: Arrays, t: Tree, b: Tables, s: State, level: int, i: int, nodes: np.ndarray, given: int, size: int,
    late: float, cost: float, downtime: float,
) -> float:  # fmt: skip
    """The largest bound once i has `size` replicas of which the first `given` are on `nodes`; infinite: no use.

    `late` is what the response time is at least before anything below comes on top.
    """
    for a in range(given):
        s.units[nodes[a]] -= p.res_units[i]
    best = p.a * late + p.b * cost + p.e * downtime  # nothing costs less than nothing
    single = given == size and nodes[0] == nodes[given - 1]
    for table in range(b.A.shape[0]):
        value = b.A[table] * late + b.B[table] * cost + b.constant[table] + b.root[table, level + 1] - s.price[table]
        for a in range(given):
            value += b.mu[table, nodes[a]] * p.res[i]
        for at in range(b.hang_count[level + 1]):
            child = b.hang[level + 1, at]
            q = t.parent[child]
            keep = b.keep[table, child]
            worst = -np.inf
            if q == i:
                for a in range(given):
                    v = nodes[a]
                    worst = max(worst, keep[v, max(s.units[v], 0), size, 0 if single else 1])
            else:
                alone = s.nodes[q, 0] == s.nodes[q, s.size[q] - 1]
                for a in range(s.size[q]):
                    v = s.nodes[q, a]
                    worst = max(worst, keep[v, max(s.units[v], 0), s.size[q], 0 if alone else 1])
            value += worst
        if np.isfinite(b.limit[table]):
            if value > b.limit[table]:
                best = np.inf
                break
        else:
            best = max(best, value + p.e * downtime)
    for a in range(given):
        s.units[nodes[a]] += p.res_units[i]
    return best


@njit(cache=True)
def judge(
    p: Arrays, t: Tree, b: Tables, s: State, h: Search, desk: Desk, level: int, i: int, given: int, size: int,
    least_traffic: float, values: np.ndarray,
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
    return bound_of(p, t, b, s, level, i, nodes, given, size, late, cost, downtime)


@njit(cache=True)
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


@njit(cache=True)
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
        alone = s.nodes[q, 0] == s.nodes[q, s.size[q] - 1]
        for table in range(b.A.shape[0]):
            worst = -np.inf
            for a in range(s.size[q]):
                v = s.nodes[q, a]
                worst = max(worst, b.keep[table, other, v, s.units[v], s.size[q], 0 if alone else 1])
            desk.base[table] += worst
    downtime = max(s.downtime[level], h.floor[0])
    fixed_cost = s.cost[level] + size * p.price[i]
    limit = threshold(h)
    for w in range(p.speed.shape[0]):
        desk.whole[w], desk.bound[w] = np.inf, np.inf
        if not p.allowed[i, w] or s.rest[w] < p.res[i]:
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
            if not usable or s.rest[w] < here * p.res[i]:
                continue
            cost = fixed_cost + (here * desk.traffic[w] + (size - here) * least_traffic) / size
            value = p.a * late + p.b * cost + p.e * downtime
            if cost > p.c_max or value >= limit:
                continue
            left = max(s.units[w] - here * p.res_units[i], 0)
            for table in range(b.A.shape[0]):
                one = desk.base[table] + b.A[table] * late + b.B[table] * cost + b.mu[table, w] * here * p.res[i]
                if child != NONE:
                    one += b.keep[table, child, w, left, size, part]
                if np.isfinite(b.limit[table]):
                    if one > b.limit[table]:
                        value = np.inf
                else:
                    value = max(value, one + p.e * downtime)
            if part == 0:
                desk.whole[w] = value
            else:
                desk.bound[w] = value


@njit(cache=True)
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
        if p.allowed[i, w] and s.rest[w] >= p.res[i]:
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
                bound = judge(p, t, b, s, h, desk, level, i, size, size, 0.0, values)
                if bound < limit:
                    offer(h, c, desk, level, size, bound, values)
        survivors = np.nonzero(desk.bound < limit)[0]
        if survivors.shape[0] > 1:
            ranked = survivors[np.argsort(desk.bound[survivors], kind="mergesort")][:most]
            spread_out(p, t, b, s, h, c, desk, level, i, size, ranked, least_traffic, values)
    if c.count[level] > 0:
        c.order[level, : c.count[level]] = np.argsort(c.bound[level, : c.count[level]], kind="mergesort")


@njit(cache=True)
def spread_out(
    p: Arrays, t: Tree, b: Tables, s: State, h: Search, c: Children, desk: Desk, level: int, i: int, size: int,
    ranked: np.ndarray, least_traffic: float, values: np.ndarray,
) -> None:  # fmt: skip
    """Configurations on at least two nodes: multisets of the ranked nodes, pruned as they grow."""
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
        desk.nodes[depth] = w
        if desk.bound[w] >= threshold(h):
            pick[depth] = ranked.shape[0]  # they are sorted: nobody behind is better
            continue
        spread = pick[depth] != pick[0]
        useless = s.rest[w] < p.res[i] or (depth + 1 == size and not spread)
        if not useless and (spread or depth + 1 == size):
            bound = judge(p, t, b, s, h, desk, level, i, depth + 1, size, least_traffic, values)
            useless = bound >= threshold(h)
            if not useless and depth + 1 == size:
                offer(h, c, desk, level, size, bound, values)
        if useless or depth + 1 == size:
            pick[depth] += 1
            continue
        s.rest[w] -= p.res[i]
        depth += 1
        pick[depth] = pick[depth - 1]


@njit(cache=True)
def fix(p: Arrays, t: Tree, b: Tables, s: State, level: int, nodes: np.ndarray, size: int, values: np.ndarray) -> None:
    """Makes a child the configuration of its operator."""
    i = t.order[level]
    s.nodes[i, :size] = nodes[:size]
    s.size[i] = size
    s.fixed[i] = True
    for a in range(size):
        s.rest[nodes[a]] -= p.res[i]
        s.units[nodes[a]] -= p.res_units[i]
        for table in range(b.A.shape[0]):
            s.price[table] -= b.mu[table, nodes[a]] * p.res[i]
    s.finish[i] = values[0]
    s.cost[level + 1] = values[1]
    s.downtime[level + 1] = values[2]
    s.response[level + 1] = refresh(p, s, t.last[level + 1])


@njit(cache=True)
def unfix(p: Arrays, t: Tree, b: Tables, s: State, level: int) -> None:
    """Undoes `fix`; heads and tails are only looked at right after `fix`, so they may stay."""
    i = t.order[level]
    for a in range(s.size[i]):
        s.rest[s.nodes[i, a]] += p.res[i]
        s.units[s.nodes[i, a]] += p.res_units[i]
        for table in range(b.A.shape[0]):
            s.price[table] += b.mu[table, s.nodes[i, a]] * p.res[i]
    s.fixed[i] = False


@njit(cache=True)
def record(p: Arrays, s: State, h: Search, value: float) -> None:
    """A better deployment than any before."""
    h.best[0] = value
    h.best_nodes[:] = s.nodes
    h.best_size[:] = s.size


@njit(cache=True)
def run(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, c: Children, desk: Desk, budget: int
) -> int:  # fmt: skip
    """Goes on with the depth-first search for `budget` expansions; returns how many of these are left.

    It begins with `h.depth` at -2 and has seen everything when that is -1.
    """
    count = p.k.shape[0]
    depth = h.depth[0]
    if depth == -2:
        expand(p, t, x, b, s, h, c, desk, 0, p.speed.shape[0])
        depth = 0
    while depth >= 0 and budget > 0:
        if c.at[depth] == c.count[depth]:
            depth -= 1
            if depth >= 0:
                unfix(p, t, b, s, depth)
            continue
        child = c.order[depth, c.at[depth]]
        c.at[depth] += 1
        if c.bound[depth, child] >= threshold(h):
            c.at[depth] = c.count[depth]
            continue
        fix(p, t, b, s, depth, c.nodes[depth, child], c.size[depth, child], c.values[depth, child])
        if depth + 1 == count:
            record(p, s, h, c.bound[depth, child])
            unfix(p, t, b, s, depth)
            continue
        depth += 1
        budget -= 1
        expand(p, t, x, b, s, h, c, desk, depth, p.speed.shape[0])
    h.depth[0] = depth
    return budget


@njit(cache=True)
def beam(
    p: Arrays, t: Tree, x: Reach, b: Tables, s: State, h: Search, c: Children, desk: Desk, width: int, each: int
) -> None:  # fmt: skip
    """Level by level the `width` best beginnings, from each of them at most the `each` best children."""
    count, kmax = p.k.shape[0], c.nodes.shape[2]
    nodes, new_nodes = np.zeros((2, width, count, kmax), dtype=np.int64)
    size, new_size = np.zeros((2, width, count), dtype=np.int64)
    values, new_values = np.zeros((2, width, count, 4))
    pool_bound = np.empty(width * each)
    pool_from = np.empty(width * each, dtype=np.int64)
    pool_nodes = np.empty((width * each, kmax), dtype=np.int64)
    pool_size = np.empty(width * each, dtype=np.int64)
    pool_values = np.empty((width * each, 4))
    beginnings = 1
    for level in range(count):
        pooled = 0
        for at in range(beginnings):
            for back in range(level):
                fix(p, t, b, s, back, nodes[at, back], size[at, back], values[at, back])
            expand(p, t, x, b, s, h, c, desk, level, BEAM_NODES)
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
                    record(p, s, h, c.bound[level, child])
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
