"""A local search from a deployment: the gain of moving, adding, removing or swapping a few replicas.

It proves nothing; a better incumbent lets the branch and bound prune more, and where time runs out it is the answer.
A step changes one or two operators, so what the others add to F is kept from one look to the next: `refresh` computes
the terms of an operator and of its edges, `worth` adds all terms up, always in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import leaf
from leeward.policies.edrp.exact.kernel_downtime import config_seconds

#: A step must gain this much.
GAIN = 1e-9


class Draft(NamedTuple):
    """The deployment at hand and what follows from it."""

    nodes: np.ndarray  # [G, kmax] ascending
    size: np.ndarray  # [G]
    rest: np.ndarray  # [n] capacity left
    seconds: np.ndarray  # [G] downtime
    arrival: np.ndarray  # [G] working space
    own: np.ndarray  # [G] R_i,U
    far: np.ndarray  # [E] d_(U,V)
    toll: np.ndarray  # [E] C_(i,j),(U,V)
    edges: np.ndarray  # [E] edges, those into upstream operators first
    begin: np.ndarray  # [G + 1] where the edges of each operator begin in `incident`
    incident: np.ndarray  # [2 E]
    touched: np.ndarray  # [G] working space
    fresh: np.ndarray  # [kmax + 1] nodes to try
    old: np.ndarray  # [kmax] those that one operator had before
    value: np.ndarray  # [1] F
    budget: np.ndarray  # [1] deployments that may still be looked at


@leaf
def occupy_nodes(p: Arrays, d: Draft, i: int, sign: int) -> bool:
    """Books (1) or frees (-1) what i takes; whether it fits."""
    fits = True
    for a in range(d.size[i]):
        d.rest[d.nodes[i, a]] -= sign * p.res[i]
    for a in range(d.size[i]):
        fits = fits and d.rest[d.nodes[i, a]] >= 0.0 and p.allowed[i, d.nodes[i, a]]
    return fits


@leaf
def are_apart(p: Arrays, d: Draft) -> bool:
    """No operator shares a node with one of its rivals."""
    for i in range(p.rivals.shape[0]):
        for place in range(p.rivals.shape[1]):
            q = p.rivals[i, place]
            if q < i:  # -1, or a pair that was looked at
                continue
            for a in range(d.size[i]):
                for c in range(d.size[q]):
                    if d.nodes[i, a] == d.nodes[q, c]:
                        return False
    return True


@leaf
def refresh(p: Arrays, d: Draft, i: int) -> None:
    """Brings R_i,U and the terms of the edges from and to i up to date."""
    worst = 0.0
    for a in range(d.size[i]):
        worst = max(worst, p.latency[i, d.size[i]] / p.speed[d.nodes[i, a]])
    d.own[i] = worst
    for at in range(d.begin[i], d.begin[i + 1]):
        e = d.incident[at]
        q, j = p.edge_from[e], p.edge_to[e]
        far, traffic = 0.0, 0.0
        for a in range(d.size[q]):
            for c in range(d.size[j]):
                far = max(far, p.delay[d.nodes[q, a], d.nodes[j, c]])
                traffic += p.link[d.nodes[q, a], d.nodes[j, c]]
        d.far[e] = far
        d.toll[e] = p.rate[e] * traffic / (d.size[q] * d.size[j])


@leaf
def worth(p: Arrays, d: Draft) -> float:
    """F of the draft, whose terms are up to date; infinite if it breaks a bound or shares a node that it must not.

    Capacity is not looked at.
    """
    d.budget[0] -= 1
    if not are_apart(p, d):
        return np.inf
    cost, downtime, response = 0.0, 0.0, 0.0
    for i in range(p.k.shape[0]):
        d.arrival[i] = d.own[i]  # until the input's arrival is added
        cost += d.size[i] * p.price[i]
        downtime = max(downtime, d.seconds[i])
        response = max(response, d.own[i])
    own_done = -1
    wait = 0.0
    for at in range(d.edges.shape[0]):
        e = d.edges[at]
        q, i = p.edge_from[e], p.edge_to[e]
        if i != own_done:
            own_done, wait = i, 0.0
        cost += d.toll[e]
        before = max(0.0, d.arrival[q] + d.far[e] - wait)
        d.arrival[i] += before  # the arrival grows to the latest so far
        wait += before
        response = max(response, d.arrival[i])
    if response > p.r_max or cost > p.c_max or downtime > p.d_max:
        return np.inf
    return p.a * response + p.b * cost + p.e * downtime


@leaf
def settle(p: Arrays, d: Draft, i: int) -> None:
    """Sorts the nodes of i and brings its downtime up to date."""
    for a in range(1, d.size[i]):
        node, at = d.nodes[i, a], a
        while at > 0 and d.nodes[i, at - 1] > node:
            d.nodes[i, at] = d.nodes[i, at - 1]
            at -= 1
        d.nodes[i, at] = node
    d.seconds[i] = config_seconds(p, i, d.nodes[i], d.size[i])


@leaf
def attempt(p: Arrays, d: Draft, i: int, count: int) -> bool:
    """Gives i the first `count` nodes of `fresh` if that is better."""
    looked, was, seconds = False, d.size[i], d.seconds[i]
    occupy_nodes(p, d, i, -1)
    for a in range(was):
        d.old[a] = d.nodes[i, a]
    for a in range(count):
        d.nodes[i, a] = d.fresh[a]
    d.size[i] = count
    if occupy_nodes(p, d, i, 1) and np.isfinite(p.latency[i, count]):
        settle(p, d, i)
        refresh(p, d, i)
        value = worth(p, d)
        if value < d.value[0] - GAIN:
            d.value[0] = value
            return True
        looked = True
    occupy_nodes(p, d, i, -1)
    for a in range(was):
        d.nodes[i, a] = d.old[a]
    d.size[i], d.seconds[i] = was, seconds
    occupy_nodes(p, d, i, 1)
    if looked:
        refresh(p, d, i)
    return False


@leaf
def vary(p: Arrays, d: Draft, i: int) -> bool:
    """One replica of i moved, added or removed, or all of them brought to one node; whether anything was gained."""
    gained = False
    for v in range(p.speed.shape[0]):
        if not p.allowed[i, v] or d.budget[0] <= 0:
            continue
        for a in range(d.size[i] + 1):  # the last adds one
            if a < p.k[i]:
                for c in range(d.size[i]):
                    d.fresh[c] = d.nodes[i, c]
                if a == d.size[i] or d.fresh[a] != v:
                    d.fresh[a] = v
                    gained = attempt(p, d, i, max(a + 1, d.size[i])) or gained
        for count in range(1, p.k[i] + 1):
            for c in range(count):
                d.fresh[c] = v
            gained = attempt(p, d, i, count) or gained
    for a in range(p.k[i]):
        if d.size[i] > 1 and a < d.size[i]:
            for c in range(d.size[i] - 1):
                d.fresh[c] = d.nodes[i, c if c < a else c + 1]
            gained = attempt(p, d, i, d.size[i] - 1) or gained
    return gained


@leaf
def exchange(p: Arrays, d: Draft, u: int, v: int) -> bool:
    """Everything on u goes to v and the other way round, if that is better; otherwise it goes back."""
    looked = False
    for back in range(2):
        fits = True
        for i in range(p.k.shape[0]):
            d.touched[i] = False
            for a in range(d.size[i]):
                d.touched[i] = d.touched[i] or d.nodes[i, a] == u or d.nodes[i, a] == v
            if not d.touched[i]:
                continue
            occupy_nodes(p, d, i, -1)
            for a in range(d.size[i]):
                w = d.nodes[i, a]
                d.nodes[i, a] = v if w == u else (u if w == v else w)
            settle(p, d, i)
            occupy_nodes(p, d, i, 1)
            for a in range(d.size[i]):
                fits = fits and p.allowed[i, d.nodes[i, a]]
        if looked or (back == 0 and fits and d.rest[u] >= 0.0 and d.rest[v] >= 0.0):
            for i in range(p.k.shape[0]):
                if d.touched[i]:
                    refresh(p, d, i)
        if back == 0 and fits and d.rest[u] >= 0.0 and d.rest[v] >= 0.0:
            looked = True
            value = worth(p, d)
            if value < d.value[0] - GAIN:
                d.value[0] = value
                return True
    return False


@leaf
def swap(p: Arrays, d: Draft, i: int, j: int, a: int, c: int) -> bool:
    """Replica a of i and replica c of j change places if that is better; otherwise they change back."""
    u, v = d.nodes[i, a], d.nodes[j, c]
    looked = False
    if u == v:
        return False
    for back in range(2):
        occupy_nodes(p, d, i, -1)
        occupy_nodes(p, d, j, -1)
        for x in range(d.size[i]):
            if d.nodes[i, x] == (u if back == 0 else v):
                d.nodes[i, x] = v if back == 0 else u
                break
        for x in range(d.size[j]):
            if d.nodes[j, x] == (v if back == 0 else u):
                d.nodes[j, x] = u if back == 0 else v
                break
        settle(p, d, i)
        settle(p, d, j)
        fits = occupy_nodes(p, d, i, 1)
        fits = occupy_nodes(p, d, j, 1) and fits
        if looked or (back == 0 and fits and d.rest[u] >= 0.0 and d.rest[v] >= 0.0):
            refresh(p, d, i)
            refresh(p, d, j)
        if back == 0 and fits and d.rest[u] >= 0.0 and d.rest[v] >= 0.0:
            looked = True
            value = worth(p, d)
            if value < d.value[0] - GAIN:
                d.value[0] = value
                return True
    return False


def draft_of(p: Arrays, nodes: np.ndarray, size: np.ndarray, budget: int) -> Draft:
    """A draft to improve: node positions [G, kmax] and how many of these each operator has."""
    rank = np.empty(len(p.topo), dtype=np.int64)
    rank[p.topo] = np.arange(len(p.topo))
    edges, ends = len(p.edge_to), np.concatenate([p.edge_from, p.edge_to])
    return Draft(
        nodes=nodes.copy(),
        size=size.copy(),
        rest=p.full.copy(),
        seconds=np.zeros(len(size)),
        arrival=np.zeros(len(size)),
        own=np.zeros(len(size)),
        far=np.zeros(edges),
        toll=np.zeros(edges),
        edges=np.argsort(rank[p.edge_to], kind="stable"),
        begin=np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(size)))]),
        incident=np.argsort(ends, kind="stable") % max(1, edges),
        touched=np.zeros(len(size), dtype=np.bool_),
        fresh=np.zeros(nodes.shape[1] + 1, dtype=np.int64),
        old=np.zeros(nodes.shape[1], dtype=np.int64),
        value=np.array([np.inf]),
        budget=np.array([budget]),
    )


@leaf
def improve(p: Arrays, d: Draft) -> None:
    """Steps that gain, operator by operator and node by node, until none does or the budget is gone."""
    for i in range(p.k.shape[0]):
        occupy_nodes(p, d, i, 1)
        settle(p, d, i)
    for i in range(p.k.shape[0]):
        refresh(p, d, i)
    d.value[0] = worth(p, d)
    gained = True
    while gained and d.budget[0] > 0:
        gained = False
        for i in range(p.k.shape[0]):
            gained = vary(p, d, i) or gained
        for i in range(p.k.shape[0]):
            for j in range(i):
                for a in range(p.k[i]):
                    for c in range(p.k[j]):
                        if a < d.size[i] and c < d.size[j] and d.budget[0] > 0:
                            gained = swap(p, d, i, j, a, c) or gained
        for i in range(p.k.shape[0]):
            for a in range(p.k[i]):
                for v in range(p.speed.shape[0]):
                    if a < d.size[i] and v != d.nodes[i, a] and d.budget[0] > 0:
                        gained = exchange(p, d, d.nodes[i, a], v) or gained
