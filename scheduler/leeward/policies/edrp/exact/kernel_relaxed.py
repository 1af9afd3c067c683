"""The relaxed optimum behind a bound: which nodes it uses, found by going down the tables of `kernel_bound`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_bound import Relaxation, Seat, rate_price, spine_weight, spread_state, staying

NONE = -1


class Usage(NamedTuple):
    """Use of the relaxed optimum: the subgradients of its bound, and how far the way down the tree has come."""

    nodes: np.ndarray  # [n] units of each node
    totals: np.ndarray  # [2] response time and cost
    place: np.ndarray  # [G, 4] of each operator: node, units left there, replicas, index of KEEP


@kernel
def relaxed_use(r: Relaxation, usage: Usage) -> None:
    """Fills `usage` by going down: a node that is used beyond its capacity should cost more."""
    p, t, x = r.p, r.t, r.x
    choice = np.zeros(3, dtype=np.int64)
    usage.nodes[:] = 0.0
    usage.totals[:] = 0.0
    for at in range(p.k.shape[0]):
        g = t.order[at]
        parent = t.parent[g]
        if parent == NONE:
            w = np.argmin(np.minimum(r.together[g], r.spread[g]))
            land(r, g, w, r.spread[g, w] < r.together[g, w], usage)
            continue
        seat = Seat(usage.place[parent, 0], usage.place[parent, 1], usage.place[parent, 2], usage.place[parent, 3])
        v, _, m, s = seat
        w = choose(r, g, seat, usage, choice)
        if w != v:
            land(r, g, w, choice[0] == 1, usage)
            if t.on_spine[g]:
                usage.totals[0] += p.delay[v, w]
            usage.totals[1] += p.rate[t.edge[g]] * (p.link[v, w] if s == 0 else x.link_any / m)
            continue
        size, here = choice[0], choice[1]
        usage.place[g, 0], usage.place[g, 2], usage.place[g, 3] = v, size, choice[2]
        occupy(r, g, v, here, size, usage)
        if t.on_spine[g] and (here < size or s > 0):
            usage.totals[0] += max(x.near_out[g, v] if here < size else 0.0, x.near_in[v] if s > 0 else 0.0)
        if s > 0:
            usage.totals[1] += p.rate[t.edge[g]] * (1.0 - x.inside[g, m, size, here, size - here]) * x.link_any
        elif here < size:
            usage.totals[1] += p.rate[t.edge[g]] * (1.0 - here / size) * x.link_out[v]


@kernel
def choose(r: Relaxation, g: int, seat: Seat, usage: Usage, choice: np.ndarray) -> int:
    """The node that g goes to from v; `choice` is (replicas, of these here) if it stays, (spread, 0) if not.

    The parent's rest for later siblings goes back to `place`, and so does g's rest for its own.
    """
    p, x = r.p, r.x
    v, rho, m, s = seat
    weight, link_price = spine_weight(r, g), rate_price(r, g)
    cheapest = r.mu.min()
    away, to, by_spread = np.inf, v, False
    for w in range(p.speed.shape[0]):
        if w == v:
            continue
        whole = weight * p.delay[v, w] + r.together[g, w]
        part = weight * p.delay[v, w] + r.spread[g, w]
        whole += link_price * (p.link[v, w] if s == 0 else x.link_any / m)
        part += link_price * (x.link_out[v] if s == 0 else x.link_any / m)
        if min(whole, part) < away:
            away, to, by_spread = min(whole, part), w, part < whole
    sibling = r.t.next[g]
    best, best_given = np.inf, 0
    for given in range(rho + 1):
        value = away
        if p.allowed[g, v]:
            value = min(value, staying(r, g, Seat(v, given, m, s), cheapest, choice))
        if sibling != NONE:
            value += r.keep[sibling, v, rho - given, m, s]
        if value < best:
            best, best_given = value, given
    stay = np.inf
    if p.allowed[g, v]:
        stay = staying(r, g, Seat(v, best_given, m, s), cheapest, choice)
    if stay <= away:
        usage.place[r.t.parent[g], 1] = rho - best_given
        usage.place[g, 1] = best_given - (choice[1] - p.held[g]) * p.res_units[g]
        return v
    choice[0], choice[1] = 1 if by_spread else 0, 0
    return to


@kernel
def land(r: Relaxation, g: int, w: int, by_spread: bool, usage: Usage) -> None:
    """Puts g on w as the relaxed optimum does: the number of replicas that gives `together` or `spread`."""
    p, x, mu = r.p, r.x, r.mu
    child = r.t.first[g]
    weight = spine_weight(r, g)
    best, best_m, best_state = np.inf, 1, 0
    for m in range(2 if by_spread else 1, p.k[g] + 1):
        here = 1 if by_spread else m
        needs = here - p.held[g]
        left = p.room_units[w] - needs * p.res_units[g]
        usable = x.some[g, m, w] if by_spread else x.alone[g, m, w]
        if not usable or left < 0 or needs * p.res[g] > p.room[w] or not np.isfinite(p.latency[g, m]):
            continue
        value = r.B * m * p.price[g] + weight * p.latency[g, m] / p.speed[w] + mu[w] * needs * p.res[g]
        value += mu.min() * (m - here) * p.res[g]
        state = spread_state(x, (m - 1) * x.fresh[g]) if by_spread else 0
        value += r.keep[child, w, left, m, state] if child != NONE else 0.0
        if value < best:
            best, best_m, best_state = value, m, state
    here = 1 if by_spread else best_m
    usage.place[g, 0], usage.place[g, 1] = w, p.room_units[w] - (here - p.held[g]) * p.res_units[g]
    usage.place[g, 2], usage.place[g, 3] = best_m, best_state
    occupy(r, g, w, here, best_m, usage)


@kernel
def occupy(r: Relaxation, g: int, w: int, here: int, size: int, usage: Usage) -> None:
    """Books the replicas of g on w; where the others are the relaxation does not know."""
    p = r.p
    usage.nodes[w] += (here - p.held[g]) * p.res[g]
    usage.totals[1] += size * p.price[g]
    if r.t.on_spine[g]:
        usage.totals[0] += p.latency[g, size] / p.speed[w]
