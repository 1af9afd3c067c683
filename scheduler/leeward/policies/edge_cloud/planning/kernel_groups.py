"""Compiled: the best move of several queries of one dataflow from a resource that they share, by the objective (8).

Queries that exchange events gain nothing by going to another edge one by one: the first of them pays for the network.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Ints, Scratch, State
from leeward.policies.edge_cloud.planning.compiled import kernel, leaf
from leeward.policies.edge_cloud.planning.kernel_moves import fits, put, restore, sharing, take, trace
from leeward.policies.edge_cloud.planning.kernel_paths import makespan_s, overhead

#: A gain of less is rounding, s.
LEAST = 1e-12


@kernel
def move_group(flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int) -> bool:
    """Makes the best move of two queries or more of dataflow f; False if none gains.

    The queries are all that it has on a resource, or the first or the last ones of these.  Of each site the resource is
    tried that would serve them fastest: events take the same time to all of them.
    """
    best, resource = -LEAST, -1
    chosen, here = np.zeros(0, dtype=np.int64), np.zeros(flows.size[f], dtype=np.int64)
    for first in range(flows.start[f], flows.start[f] + flows.size[f]):
        size = _fill_group(flows, state, f, first, here)
        for count in range(2, size + 1):
            for begin in (0, size - count):
                group = here[begin : begin + count]
                grown, s = _best_place(flows, devices, state, scratch, group, best)
                if grown < best:
                    best, resource, chosen = grown, s, group.copy()
    for q in chosen:
        take(flows, devices, state, q)
        put(flows, devices, state, q, resource)
    return resource >= 0


@leaf
def _fill_group(flows: Flows, state: State, f: int, first: int, here: Ints) -> int:
    """`here` gets the queries of a dataflow that share the resource of its query `first`; their number.

    0 if `first` is a source, or is not the first of them.
    """
    size = 0
    for q in range(flows.start[f], flows.start[f] + flows.size[f]):
        if not flows.source[q] and state.place[q] == state.place[first]:
            here[size] = q
            size += 1
    return size if size and here[0] == first else 0


@leaf
def _best_place(
    flows: Flows, devices: Devices, state: State, scratch: Scratch, group: Ints, best: float
) -> tuple[float, int]:
    """By how much the objective grows if the group goes where that is least, s, and the resource; -1 if nowhere is
    better than `best`.  The state is afterwards what it was, to the last bit, but for the order of lists."""
    r, f, resource = state.place[group[0]], flows.owner[group[0]], -1
    left = trace(state, r)
    for q in group:
        take(flows, devices, state, q)
    _fill_fastest(flows, devices, state, scratch, group, r)
    freed = _grown_s(flows, devices, state, scratch, f, r, r)
    for s in scratch.fastest:
        if s < 0:
            continue
        there = trace(state, s)
        came = _bring(flows, devices, state, group, s)
        if came == len(group):
            grown = makespan_s(flows, devices, state, f, scratch.length) - scratch.makespans[f]
            # those on s can only lose
            if grown + freed < best:
                grown += _grown_s(flows, devices, state, scratch, f, r, s)
                if grown < best:
                    best, resource = grown, s
        for q in group[:came]:
            take(flows, devices, state, q)
        restore(devices, state, s, there)
    for q in group:
        put(flows, devices, state, q, r)
    restore(devices, state, r, left)
    return best, resource


@leaf
def _fill_fastest(flows: Flows, devices: Devices, state: State, scratch: Scratch, group: Ints, r: int) -> None:
    """`scratch.fastest` gets of each site the resource, but r, with the least service time if the group came; or -1."""
    scratch.service_s[:] = np.inf
    scratch.fastest[:] = -1
    for s in range(len(state.queries)):
        lam_s = state.lam_sum_s[s]
        for q in group:
            lam_s += devices.lam_s[flows.kind[q], s]
        site, together = devices.site[s], (1 + overhead(devices, s, state.queries[s] + len(group))) * lam_s
        if s != r and together < scratch.service_s[site]:
            scratch.service_s[site], scratch.fastest[site] = together, s


@leaf
def _bring(flows: Flows, devices: Devices, state: State, group: Ints, s: int) -> int:
    """Puts the queries on s, up to the first one that does not fit; their number."""
    for k in range(len(group)):
        if not fits(flows, devices, state, group[k], s):
            return k
        put(flows, devices, state, group[k], s)
    return len(group)


@leaf
def _grown_s(flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, r: int, s: int) -> float:
    """By how much the makespans of the dataflows on r or s but f have grown, s."""
    grown = 0.0
    for g in scratch.found[: sharing(flows, state, scratch, r, s)]:
        if g != f:
            grown += makespan_s(flows, devices, state, g, scratch.length) - scratch.makespans[g]
    return grown
