"""Lower bounds on what the operators still to be fixed must add, by dynamic programming along the tree.

A bound that ignores capacity prunes nothing, since everything would sit on one node.  So follow one replica: an
operator either stays with it on node v, as far as the rest rho on v goes, or has a replica on another node and
pays the delay and the traffic of the way there.  For a tree (`tree.py`), weights A on response time and B on
cost, and a price mu_u on each unit of node u (Lagrange multipliers of the capacities), `KEEP[g, v, rho, m, s]` is
the least that g, its later siblings and all below them add when their parent has m replicas, one of them on v,
where rho units are left; s = 0 if all of the parent is on v, s = 1 + e if not and the parent's other nodes have
room for e more slots in all (e = `most`: nobody counts).  A slot is what the smallest operator takes; without that
count a spread operator would share nodes with those before and with those after it, where only one of them fits.

It is a relaxation: of a configuration that is spread over nodes only one node is followed, a node's rest is known
for consecutive operators only (mu makes up for that), and streams outside the tree cost nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.tree import Tree

NONE = -1


class Reach(NamedTuple):
    """Arrays that stay while weights and prices change."""

    some: np.ndarray  # [G, kmax + 1, n] a configuration with a replica here and one elsewhere may be chosen
    alone: np.ndarray  # [G, kmax + 1, n] all replicas here may be chosen
    near: np.ndarray  # [n, n] the nodes by their delay from one
    near_out: np.ndarray  # [G, n] least delay from here to another node that may host g
    next_out: np.ndarray  # [G, n] the same to the second nearest
    near_in: np.ndarray  # [n] least delay to here from another node
    link_out: np.ndarray  # [n] least traffic cost from here to another node
    link_any: float  # least traffic cost between two different nodes
    levels: int  # most units on a node
    most: int  # slots from which on nobody counts
    slot: int  # units
    takes: np.ndarray  # [G] slots that a replica takes, rounded down
    fresh: np.ndarray  # [G] slots beside a replica that is alone on its node, rounded up
    beside: np.ndarray  # [G] the same beside a replica that shares its node with one of the tree parent
    inside: np.ndarray  # [G, kmax + 1, kmax + 1, kmax + 1, kmax + 1] see `fill_inside`
    inside_one: np.ndarray  # [G, kmax + 1, kmax + 1] see `fill_inside`


class Relaxation(NamedTuple):
    """One relaxed problem: weights A and B, a price mu on the units of each node, and the tables of its optimum."""

    p: Arrays
    t: Tree
    x: Reach
    A: float
    B: float
    mu: np.ndarray  # [n]
    keep: np.ndarray  # [G, n, levels + 1, kmax + 1, most + 2]
    together: np.ndarray  # [G, n] least of landing there with all replicas
    spread: np.ndarray  # [G, n] the same with some of them
    roots: np.ndarray  # [G] the least of both over all nodes


class Seat(NamedTuple):
    """Where a child finds its tree parent: m replicas, one of them on v with rho units left there; s as in KEEP."""

    v: int
    rho: int
    m: int
    s: int


@kernel
def spine_weight(r: Relaxation, g: int) -> float:
    """The weight on the latency of g and of the stream to it: only the spine counts."""
    return r.A if r.t.on_spine[g] else 0.0


@kernel
def rate_price(r: Relaxation, g: int) -> float:
    """Weight of the traffic cost of the stream from g's tree parent, per $/h and tuple/s."""
    return r.B * r.p.rate[r.t.edge[g]]


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

    `inside[g, m, size, here, met]`: at most this share, when the child has `size` replicas, `here` of them on one
    of the parent's nodes and `met` on others of these.  `inside_one[g, m, size]`: the same when the child is all
    on one node, where at least one replica of the parent is not.  Capacity limits both: replicas that share a node
    must fit there together.
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
                    for met in range(size - here + 1):
                        most = 0.0
                        for mine in range(1, m):
                            if here == 0 or mine * p.res[q] + here * p.res[g] <= largest:
                                most = max(most, mine * here + best[m - mine, met])
                        inside[g, m, size, here, met] = most / (m * size)
                for mine in range(1, m):
                    if mine * p.res[q] + size * p.res[g] <= largest:
                        inside_one[g, m, size] = mine / m


@kernel
def spread_state(x: Reach, slots: int) -> int:
    """The index of KEEP for a spread operator with this room beside its other replicas."""
    return 1 + min(slots, x.most)


@kernel
def state_of(p: Arrays, x: Reach, g: int, nodes: np.ndarray, given: int, size: int, v: int, units: np.ndarray) -> int:
    """The index of KEEP for g seen from v, with `size` replicas of which the first `given` are on `nodes`.

    Equal nodes stand side by side; `units` is what is left on each.
    """
    if given == size and nodes[0] == nodes[given - 1]:
        return 0
    if x.most == 0:
        return 1
    free = 0
    for a in range(given):
        u = nodes[a]
        if u != v and (a == 0 or u != nodes[a - 1]):
            free += max(units[u], 0)
    return spread_state(x, (free + x.slot - 1) // x.slot + (size - given) * x.fresh[g])


@kernel
def landing(r: Relaxation, g: int, taken: int, together: np.ndarray, spread: np.ndarray) -> None:
    """Least that g and all below it add with m replicas, at least one on w.

    `together` [kmax + 1, n]: all on w, where `taken` units more are in use; `spread` [kmax + 1, kmax + 1, n]: not
    all, the first index says how many share nodes with the parent (0 or 1: the others have nodes of their own).
    """
    p, x, B, mu, keep = r.p, r.x, r.B, r.mu, r.keep
    child = r.t.first[g]
    weight = spine_weight(r, g)
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
            left = p.room_units[w] - needs * p.res_units[g] - taken
            if x.alone[g, m, w] and left >= 0 and needs * p.res[g] <= p.room[w]:
                below = keep[child, w, left, m, 0] if child != NONE else 0.0
                together[m, w] = own + mu[w] * needs * p.res[g] + below
            left = p.room_units[w] - p.res_units[g]
            if m > 1 and x.some[g, m, w] and left >= 0 and p.res[g] <= p.room[w]:
                own += (mu[w] + (m - 1) * cheapest) * p.res[g]
                for met in range(m + 1 if x.most > 0 else 1):
                    others = max(met - 1, 0)  # one of those may be on w
                    state = spread_state(x, (m - 1 - others) * x.fresh[g] + others * x.beside[g])
                    spread[met, m, w] = own + (keep[child, w, left, m, state] if child != NONE else 0.0)


@kernel
def ways_out(
    p: Arrays, x: Reach, g: int, delay_weight: float, link_price: float, whole: np.ndarray, part: np.ndarray,
    far: np.ndarray,
) -> None:  # fmt: skip
    """Least of having nobody on v [n]: the way to w and what it costs to land there, all on w or a part.

    It begins where landing is cheapest and goes on from near to far, until the way alone costs too much.
    """
    n = p.speed.shape[0]
    first, other = np.argmin(whole), np.argmin(part)
    least = min(whole[first], part[other])
    for v in range(n):
        best = np.inf
        row, links = p.delay[v], p.link[v]
        second = delay_weight * x.next_out[g, v] if delay_weight > 0.0 else 0.0
        out = link_price * x.link_out[v] if link_price > 0.0 else 0.0
        for at in range(-2, n):
            w = x.near[v, at] if at >= 0 else (first if at == -2 else other)
            if w == v:
                continue
            way = delay_weight * row[w]
            if at >= 0 and way + out + least >= best:
                break
            best = min(best, way + link_price * links[w] + whole[w], max(way, second) + out + part[w])
        far[v] = best


@kernel
def leaving(
    r: Relaxation, g: int, together: np.ndarray, spread: np.ndarray, shared: np.ndarray, far: np.ndarray
) -> None:  # fmt: skip
    """Least of having nobody on v [kmax + 1, n], by the parent's replicas m if they are not all on v.

    Row 1: they are all on v; row 0: they are not, and their other nodes have no room for a replica of g.
    `shared` is `together` with a replica of the parent on the same node.
    """
    p, x, weight, link_price = r.p, r.x, spine_weight(r, g), rate_price(r, g)
    n, top = p.speed.shape[0], p.k[g]
    whole, part = np.empty(n), np.empty(n)
    for m in range(p.k[r.t.parent[g]] + 1):
        if m > 2 and link_price == 0.0:
            far[m] = far[2]
            continue
        whole[:] = np.inf
        part[:] = np.inf
        apart = link_price * x.link_any if m != 1 else 0.0
        for size in range(1, top + 1):
            for w in range(n):
                whole[w] = min(whole[w], together[size, w] + apart)
                part[w] = min(part[w], spread[0, size, w] + apart)
            if m < 2 or link_price == 0.0:
                continue
            for w in range(n):
                whole[w] = min(whole[w], shared[size, w] + apart * (1.0 - x.inside_one[g, m, size]))
            for met in range(1, size + 1):
                row = met if x.most > 0 else 0
                price = apart * (1.0 - x.inside[g, m, size, 0, met])
                for w in range(n):
                    part[w] = min(part[w], spread[row, size, w] + price)
        ways_out(p, x, g, weight, link_price if m == 1 else 0.0, whole, part, far[m])


@kernel
def staying(r: Relaxation, g: int, seat: Seat, cheapest: float, choice: np.ndarray) -> float:
    """Least that g and all below it add with a replica on v, given the parent's state there; `cheapest` of mu.

    `choice` gets the number of replicas, how many of them are on v, and the index of KEEP for what is below.
    """
    p, x, B, mu, keep = r.p, r.x, r.B, r.mu, r.keep
    v, rho, m, s = seat
    weight, link_price = spine_weight(r, g), rate_price(r, g)
    child = r.t.first[g]
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
            if not (x.alone[g, size, v] if here == size else x.some[g, size, v]):
                continue
            way = x.near_in[v] if s > 0 else 0.0
            if here < size:
                way = max(way, x.near_out[g, v])
            fixed = own + (mu[v] * needs + cheapest * (size - here)) * p.res[g]
            if weight > 0.0:
                fixed += weight * way
            first_met, last_met = 0, size - here
            if s == 0 or link_price == 0.0:
                last_met = 0
            elif x.most == 0:
                first_met = last_met
            for met in range(first_met, last_met + 1):
                others = size - here - met
                free = x.most
                if s > 0 and s - 1 < x.most:
                    free = s - 1 - met * x.takes[g]
                    if free < 0:
                        break
                state = 0
                if here < size:
                    state = spread_state(x, others * x.fresh[g] + min(met * x.beside[g], free))
                value = fixed + (keep[child, v, left, size, state] if child != NONE else 0.0)
                if link_price > 0.0 and s > 0:
                    value += link_price * (1.0 - x.inside[g, m, size, here, met]) * x.link_any
                elif link_price > 0.0 and here < size:
                    value += link_price * (1.0 - here / size) * x.link_out[v]
                if value < best:
                    best = value
                    choice[0], choice[1], choice[2] = size, here, state
    return best


@kernel
def share_out(r: Relaxation, g: int, v: int, m: int, s: int, alone: np.ndarray) -> None:
    """Fills KEEP[g, v, :, m, s] from what g needs alone [levels + 1, states] and the table of its sibling.

    Both share the units left on v and the slots beside the parent's other replicas.
    """
    x, keep, sibling = r.x, r.keep, r.t.next[g]
    for rho in range(r.p.room_units[v], -1, -1):
        best = alone[rho, s]
        if sibling != NONE:
            best = np.inf
            counted = s - 1 if 0 < s <= x.most else 0
            for given in range(rho + 1):
                for slots in range(counted + 1):
                    mine, theirs = (1 + slots, s - slots) if counted > 0 else (s, s)
                    best = min(best, alone[given, mine] + keep[sibling, v, rho - given, m, theirs])
        keep[g, v, rho, m, s] = best


@kernel
def fill_keep(r: Relaxation) -> None:
    """Fills the tables of the relaxation, the last operator first."""
    p, t, x, mu = r.p, r.t, r.x, r.mu
    n, count, kmax = p.speed.shape[0], p.k.shape[0], r.keep.shape[3] - 1
    far = np.empty((kmax + 1, n))
    whole, shared, part = np.empty((kmax + 1, n)), np.empty((kmax + 1, n)), np.empty((kmax + 1, kmax + 1, n))
    alone = np.empty((x.levels + 1, x.most + 2))
    choice = np.zeros(3, dtype=np.int64)
    cheapest = mu.min()
    for at in range(count - 1, -1, -1):
        g = t.order[at]
        parent = t.parent[g]
        if parent != NONE and x.most > 0:
            landing(r, g, p.res_units[parent], shared, part)
        landing(r, g, np.int64(0), whole, part)
        if x.most == 0:
            shared[:] = whole
        for w in range(n):
            r.together[g, w] = whole[1:, w].min()
            r.spread[g, w] = part[0, 1:, w].min()
        r.roots[g] = min(r.together[g].min(), r.spread[g].min())
        if parent == NONE:
            continue
        leaving(r, g, whole, part, shared, far)
        needs = (1 - p.held[g]) * x.takes[g]
        for v in range(n):
            if not p.allowed[parent, v]:
                continue
            for m in range(1, p.k[parent] + 1):
                states = 1 if m == 1 else x.most + 2
                for s in range(states):
                    tight = s > 0 and s - 1 < x.most and s - 1 < needs
                    away = far[1 if s == 0 else (0 if tight else m), v]
                    for rho in range(p.room_units[v] + 1):
                        alone[rho, s] = away
                        if p.allowed[g, v]:
                            stay = staying(r, g, Seat(v, rho, m, s), cheapest, choice)
                            alone[rho, s] = min(away, stay)
                for s in range(states):
                    share_out(r, g, v, m, s, alone)
