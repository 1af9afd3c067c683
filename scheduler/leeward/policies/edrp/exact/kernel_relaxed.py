"""The relaxed optimum behind a bound: which nodes it uses, found by going down the tables of `kernel_bound`."""

from __future__ import annotations

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_bound import Reach, spread_state, staying
from leeward.policies.edrp.exact.tree import Tree

NONE = -1


@kernel
def relaxed_use(
    p: Arrays, t: Tree, x: Reach, A: float, B: float, mu: np.ndarray, keep: np.ndarray, together: np.ndarray,
    spread: np.ndarray, use: np.ndarray, totals: np.ndarray,
) -> None:  # fmt: skip
    """What the relaxed optimum uses of each node [n], and its response time and cost (`totals`), by going down.

    These are the subgradients of the bound: a node that is used beyond its capacity should cost more.
    """
    place = np.zeros((p.k.shape[0], 4), dtype=np.int64)  # node, units left there, replicas, index of KEEP
    choice = np.zeros(3, dtype=np.int64)
    use[:] = 0.0
    totals[:] = 0.0
    for at in range(p.k.shape[0]):
        g = t.order[at]
        parent = t.parent[g]
        if parent == NONE:
            w = np.argmin(np.minimum(together[g], spread[g]))
            land(p, t, A, B, mu, g, keep, together, spread, w, spread[g, w] < together[g, w], x, place, use, totals)
            continue
        v, rho, m, s = place[parent]
        w = choose(p, t, x, A, B, mu, g, keep, together, spread, v, rho, m, s, place, choice)
        if w != v:
            by_spread = choice[0] == 1
            land(p, t, A, B, mu, g, keep, together, spread, w, by_spread, x, place, use, totals)
            if t.on_spine[g]:
                totals[0] += p.delay[v, w]
            totals[1] += p.rate[t.edge[g]] * (p.link[v, w] if s == 0 else x.link_any / m)
            continue
        size, here = choice[0], choice[1]
        place[g, 0], place[g, 2], place[g, 3] = v, size, choice[2]
        occupy(p, t, g, v, here, size, use, totals)
        if t.on_spine[g] and (here < size or s > 0):
            totals[0] += max(x.near_out[g, v] if here < size else 0.0, x.near_in[v] if s > 0 else 0.0)
        if s > 0:
            totals[1] += p.rate[t.edge[g]] * (1.0 - x.inside[g, m, size, here, size - here]) * x.link_any
        elif here < size:
            totals[1] += p.rate[t.edge[g]] * (1.0 - here / size) * x.link_out[v]


@kernel
def choose(
    p: Arrays, t: Tree, x: Reach, A: float, B: float, mu: np.ndarray, g: int, keep: np.ndarray, together: np.ndarray,
    spread: np.ndarray, v: int, rho: int, m: int, s: int, place: np.ndarray, choice: np.ndarray,
) -> int:  # fmt: skip
    """The node that g goes to from v; `choice` is (replicas, of these here) if it stays, (spread, 0) if not.

    What is left of the parent's rest for later siblings goes back to `place`, what g leaves to its own.
    """
    weight = A if t.on_spine[g] else 0.0
    rate_price = B * p.rate[t.edge[g]]
    cheapest = mu.min()
    away, to, by_spread = np.inf, v, False
    for w in range(p.speed.shape[0]):
        if w == v:
            continue
        whole = weight * p.delay[v, w] + together[g, w]
        part = weight * p.delay[v, w] + spread[g, w]
        whole += rate_price * (p.link[v, w] if s == 0 else x.link_any / m)
        part += rate_price * (x.link_out[v] if s == 0 else x.link_any / m)
        if min(whole, part) < away:
            away, to, by_spread = min(whole, part), w, part < whole
    sibling = t.next[g]
    best, best_given = np.inf, 0
    for given in range(rho + 1):
        value = away
        if p.allowed[g, v]:
            value = min(value, staying(p, t, x, A, B, mu, cheapest, g, keep, v, given, m, s, choice))
        if sibling != NONE:
            value += keep[sibling, v, rho - given, m, s]
        if value < best:
            best, best_given = value, given
    stay = np.inf
    if p.allowed[g, v]:
        stay = staying(p, t, x, A, B, mu, cheapest, g, keep, v, best_given, m, s, choice)
    if stay <= away:
        place[t.parent[g], 1] = rho - best_given
        place[g, 1] = best_given - (choice[1] - p.held[g]) * p.res_units[g]
        return v
    choice[0], choice[1] = 1 if by_spread else 0, 0
    return to


@kernel
def land(
    p: Arrays, t: Tree, A: float, B: float, mu: np.ndarray, g: int, keep: np.ndarray, together: np.ndarray,
    spread: np.ndarray, w: int, by_spread: bool, x: Reach, place: np.ndarray, use: np.ndarray, totals: np.ndarray,
) -> None:  # fmt: skip
    """Puts g on w as the relaxed optimum does: the number of replicas that gives `together` or `spread`."""
    child = t.first[g]
    weight = A if t.on_spine[g] else 0.0
    best, best_m, best_state = np.inf, 1, 0
    for m in range(2 if by_spread else 1, p.k[g] + 1):
        here = 1 if by_spread else m
        needs = here - p.held[g]
        left = p.room_units[w] - needs * p.res_units[g]
        usable = x.some[g, m, w] if by_spread else x.alone[g, m, w]
        if not usable or left < 0 or needs * p.res[g] > p.room[w] or not np.isfinite(p.latency[g, m]):
            continue
        value = B * m * p.price[g] + weight * p.latency[g, m] / p.speed[w] + mu[w] * needs * p.res[g]
        value += mu.min() * (m - here) * p.res[g]
        state = spread_state(x, (m - 1) * x.fresh[g]) if by_spread else 0
        value += keep[child, w, left, m, state] if child != NONE else 0.0
        if value < best:
            best, best_m, best_state = value, m, state
    here = 1 if by_spread else best_m
    place[g, 0], place[g, 1] = w, p.room_units[w] - (here - p.held[g]) * p.res_units[g]
    place[g, 2], place[g, 3] = best_m, best_state
    occupy(p, t, g, w, here, best_m, use, totals)


@kernel
def occupy(
    p: Arrays, t: Tree, g: int, w: int, here: int, size: int, use: np.ndarray, totals: np.ndarray
) -> None:  # fmt: skip
    """Books the replicas of g on w; where the others are the relaxation does not know."""
    use[w] += (here - p.held[g]) * p.res[g]
    totals[1] += size * p.price[g]
    if t.on_spine[g]:
        totals[0] += p.latency[g, size] / p.speed[w]
