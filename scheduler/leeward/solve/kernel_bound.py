"""Lower bounds on what the operators still to be fixed must add, by dynamic programming along the tree.

A bound that ignores capacity prunes nothing, since everything would sit on one node.  So follow one replica: an
operator either stays with it on node v, as far as the rest rho on v goes, or has a replica on another node and
pays the delay and the traffic of the way there.  For a tree (`tree.py`), weights A on response time and B on
cost, and a price mu_u on each unit of node u (Lagrange multipliers of the capacities), `KEEP[g, v, rho, m, s]` is
the least that g, its later siblings and all below them add when their parent has m replicas, one of them on v,
where rho units are left; s = 0 if all of the parent is on v, 1 if not.

It is a relaxation: of a configuration that is spread over nodes only one node is followed, a node's rest is known
for consecutive operators only (mu makes up for that), and streams outside the tree cost nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.solve.arrays import Arrays
from leeward.solve.compiled import kernel
from leeward.solve.tree import Tree

NONE = -1


class Reach(NamedTuple):
    """What does not change while weights and prices do."""

    some: np.ndarray  # [G, kmax + 1, n] a configuration with a replica here and one elsewhere may be chosen
    alone: np.ndarray  # [G, kmax + 1, n] all replicas here may be chosen
    near_out: np.ndarray  # [G, n] least delay from here to another node that may host g
    next_out: np.ndarray  # [G, n] the same to the second nearest
    near_in: np.ndarray  # [n] least delay to here from another node
    link_out: np.ndarray  # [n] least traffic cost from here to another node
    link_any: float  # least traffic cost between two different nodes
    levels: int  # most units on a node
    inside: np.ndarray  # [G, kmax + 1, kmax + 1, kmax + 1] see `fill_inside`
    inside_one: np.ndarray  # [G, kmax + 1, kmax + 1] see `fill_inside`


@kernel
def fill_reach(
    p: Arrays, near_out: np.ndarray, next_out: np.ndarray, near_in: np.ndarray, link_out: np.ndarray
) -> None:  # fmt: skip
    """Fills the minima over other nodes; infinite where there is none."""
    n = p.speed.shape[0]
    near_out[:] = np.inf
    next_out[:] = np.inf
    near_in[:] = np.inf
    link_out[:] = np.inf
    for v in range(n):
        for w in range(n):
            if w == v:
                continue
            near_in[w] = min(near_in[w], p.delay[v, w])
            link_out[v] = min(link_out[v], p.link[v, w])
            for g in range(p.k.shape[0]):
                if p.allowed[g, w] and (1 - p.held[g]) * p.res[g] <= p.room[w]:
                    next_out[g, v] = min(next_out[g, v], max(near_out[g, v], p.delay[v, w]))
                    near_out[g, v] = min(near_out[g, v], p.delay[v, w])


@kernel
def fill_inside(p: Arrays, t: Tree, inside: np.ndarray, inside_one: np.ndarray) -> None:
    """How much of a stream can stay inside nodes when the parent has m replicas, not all on one node.

    `inside[g, m, size, here]`: at most this share, when the child has `size` replicas, `here` of them on one of
    the parent's nodes.  `inside_one[g, m, size]`: the same when the child is all on one node, where at least one
    replica of the parent is not.  Capacity limits both: what shares a node must fit there together.
    """
    kmax = inside.shape[1] - 1
    best = np.zeros((kmax + 1, kmax + 1))
    for g in range(p.k.shape[0]):
        q = t.parent[g]
        if q == NONE:
            continue
        largest = 0.0
        for v in range(p.speed.shape[0]):
            if p.allowed[g, v] and p.allowed[q, v]:
                largest = max(largest, p.full[v])
        for m in range(kmax + 1):
            for size in range(kmax + 1):
                best[m, size] = 0.0
                for mine in range(1, m + 1):
                    for theirs in range(1, size + 1):
                        if mine * p.res[q] + theirs * p.res[g] <= largest:
                            best[m, size] = max(best[m, size], mine * theirs + best[m - mine, size - theirs])
        for m in range(2, p.k[q] + 1):
            for size in range(1, p.k[g] + 1):
                for here in range(size + 1):
                    most = 0.0
                    for mine in range(1, m):
                        if here == 0 or mine * p.res[q] + here * p.res[g] <= largest:
                            most = max(most, mine * here + best[m - mine, size - here])
                    inside[g, m, size, here] = most / (m * size)
                for mine in range(1, m):
                    if mine * p.res[q] + size * p.res[g] <= largest:
                        inside_one[g, m, size] = mine / m


@kernel
def apart(rate_price: float, g: int, m: int, s: int, size: int, here: int, x: Reach, v: int) -> float:
    """Least price of the stream to g when `here` of its `size` replicas are on v, the parent as (m, s)."""
    if rate_price == 0.0 or (s == 0 and here == size):
        return 0.0
    if s == 0:
        return rate_price * (1.0 - here / size) * x.link_out[v]
    return rate_price * (1.0 - x.inside[g, m, size, here]) * x.link_any


@kernel
def landing(
    p: Arrays, t: Tree, x: Reach, A: float, B: float, mu: np.ndarray, g: int, keep: np.ndarray,
    together: np.ndarray, spread: np.ndarray,
) -> None:  # fmt: skip
    """Least that g and all below it add with m replicas, at least one on w; [kmax + 1, n].

    `together`: all on w; `spread`: not all.
    """
    child = t.first[g]
    weight = A if t.on_spine[g] else 0.0
    cheapest = mu.min()
    together[:] = np.inf
    spread[:] = np.inf
    for w in range(p.speed.shape[0]):
        if not p.allowed[g, w]:
            continue
        for m in range(1, p.k[g] + 1):
            if not np.isfinite(p.latency[g, m]):
                continue
            own = B * m * p.price[g] + weight * p.latency[g, m] / p.speed[w]
            needs = m - p.held[g]
            left = p.room_units[w] - needs * p.res_units[g]
            if x.alone[g, m, w] and left >= 0 and needs * p.res[g] <= p.room[w]:
                below = keep[child, w, left, m, 0] if child != NONE else 0.0
                together[m, w] = own + mu[w] * needs * p.res[g] + below
            left = p.room_units[w] - p.res_units[g]
            if m > 1 and x.some[g, m, w] and left >= 0 and p.res[g] <= p.room[w]:
                below = keep[child, w, left, m, 1] if child != NONE else 0.0
                spread[m, w] = own + (mu[w] + (m - 1) * cheapest) * p.res[g] + below


@kernel
def leaving(
    p: Arrays, x: Reach, g: int, delay_weight: float, rate_price: float, parent_k: int, together: np.ndarray,
    spread: np.ndarray, far: np.ndarray,
) -> None:  # fmt: skip
    """Least of having nobody on v, by the parent's replicas m if they are not all on v, by 1 if they are."""
    n, top = p.speed.shape[0], p.k[g]
    whole, part = np.empty(n), np.empty(n)
    for m in range(1, parent_k + 1):
        if m > 2 and rate_price == 0.0:
            far[m] = far[2]
            continue
        whole[:] = np.inf
        part[:] = np.inf
        for size in range(1, top + 1):
            at_one = rate_price * (1.0 - x.inside_one[g, m, size]) * x.link_any if m > 1 else 0.0
            at_more = rate_price * (1.0 - x.inside[g, m, size, 0]) * x.link_any if m > 1 else 0.0
            for w in range(n):
                whole[w] = min(whole[w], together[size, w] + at_one)
                part[w] = min(part[w], spread[size, w] + at_more)
        with_links = rate_price if m == 1 else 0.0
        for v in range(n):
            best = np.inf
            row, links = p.delay[v], p.link[v]
            second = delay_weight * x.next_out[g, v] if delay_weight > 0.0 else 0.0
            out = with_links * x.link_out[v] if with_links > 0.0 else 0.0
            for w in range(n):
                if w != v:
                    way = delay_weight * row[w]
                    best = min(best, way + with_links * links[w] + whole[w], max(way, second) + out + part[w])
            far[m, v] = best


@kernel
def staying(
    p: Arrays, t: Tree, x: Reach, A: float, B: float, mu: np.ndarray, g: int, keep: np.ndarray,
    v: int, rho: int, m: int, s: int, choice: np.ndarray,
) -> float:  # fmt: skip
    """Least that g and all below it add with a replica on v, given the parent's state there.

    `choice` gets the number of replicas, and how many of them are on v.
    """
    weight = A if t.on_spine[g] else 0.0
    rate_price = B * p.rate[t.edge[g]]
    child = t.first[g]
    cheapest = mu.min()
    best = np.inf
    for size in range(1, p.k[g] + 1):
        if not np.isfinite(p.latency[g, size]):
            continue
        own = B * size * p.price[g] + weight * p.latency[g, size] / p.speed[v]
        for here in range(1, size + 1):
            needs = here - p.held[g]
            left = rho - needs * p.res_units[g]
            if left < 0 or needs * p.res[g] > p.room[v]:
                break
            if here == size:
                if not x.alone[g, size, v]:
                    continue
                way = x.near_in[v] if s == 1 else 0.0
            else:
                if not x.some[g, size, v]:
                    continue
                way = max(x.near_out[g, v], x.near_in[v]) if s == 1 else x.near_out[g, v]
            held = (mu[v] * needs + cheapest * (size - here)) * p.res[g]
            if weight > 0.0:
                held += weight * way
            below = keep[child, v, left, size, 0 if here == size else 1] if child != NONE else 0.0
            value = own + held + apart(rate_price, g, m, s, size, here, x, v) + below
            if value < best:
                best = value
                choice[0], choice[1] = size, here
    return best


@kernel
def fill_keep(
    p: Arrays, t: Tree, x: Reach, A: float, B: float, mu: np.ndarray, keep: np.ndarray, together: np.ndarray,
    spread: np.ndarray, roots: np.ndarray,
) -> None:  # fmt: skip
    """Fills KEEP [G, n, levels + 1, kmax + 1, 2], the landings [G, n] and, for operators without parent, [G]."""
    n, count, kmax = p.speed.shape[0], p.k.shape[0], keep.shape[3] - 1
    far = np.empty((kmax + 1, n))
    whole, part = np.empty((kmax + 1, n)), np.empty((kmax + 1, n))
    alone = np.empty(x.levels + 1)
    choice = np.zeros(2, dtype=np.int64)
    for at in range(count - 1, -1, -1):
        g = t.order[at]
        landing(p, t, x, A, B, mu, g, keep, whole, part)
        for w in range(n):
            together[g, w] = whole[1:, w].min()
            spread[g, w] = part[1:, w].min()
        roots[g] = min(together[g].min(), spread[g].min())
        parent, sibling = t.parent[g], t.next[g]
        if parent == NONE:
            continue
        weight = A if t.on_spine[g] else 0.0
        leaving(p, x, g, weight, B * p.rate[t.edge[g]], p.k[parent], whole, part, far)
        for v in range(n):
            if not p.allowed[parent, v]:
                continue
            for m in range(1, p.k[parent] + 1):
                for s in range(1 if m == 1 else 2):
                    away = far[m if s == 1 else 1, v]
                    for rho in range(p.room_units[v] + 1):
                        alone[rho] = away
                        if p.allowed[g, v]:
                            stay = staying(p, t, x, A, B, mu, g, keep, v, rho, m, s, choice)
                            alone[rho] = min(away, stay)
                    for rho in range(p.room_units[v], -1, -1):
                        best = alone[rho]
                        if sibling != NONE:
                            best = np.inf
                            for given in range(rho + 1):
                                best = min(best, alone[given] + keep[sibling, v, rho - given, m, s])
                        keep[g, v, rho, m, s] = best
