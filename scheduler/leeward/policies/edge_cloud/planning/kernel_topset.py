"""Compiled: TopSet and TopSet/P (paper, section 4.1) on the state of all dataflows."""

from __future__ import annotations

import numpy as np

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Ints, Scratch, State
from leeward.policies.edge_cloud.planning.compiled import kernel, leaf
from leeward.policies.edge_cloud.planning.kernel_moves import (
    fill_lists,
    fill_overheads,
    fits,
    own_with,
    put,
    service_with,
    trace,
    withdraw,
)
from leeward.policies.edge_cloud.planning.kernel_paths import arrival_s, fill_ways_in, makespan_s


@kernel
def place_topset(
    flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, order: Ints, penalty: bool
) -> int:
    """Places the queries `order` of dataflow f one by one; -1, or the query that fits nowhere.

    Its sources are placed already.  A query goes where its critical length (10) is least, plus, with `penalty`, what
    it lengthens the paths to the dataflow's queries there.  Ties go to the lower number.
    """
    fill_lists(flows, state)
    fill_overheads(devices, state)
    length, way = scratch.length, scratch.way_in
    hosts = np.zeros(len(state.queries), dtype=np.bool_)
    for q in range(flows.start[f], flows.start[f] + flows.size[f]):
        if flows.source[q]:
            hosts[state.place[q]] = True
    for q in order:
        makespan_s(flows, devices, state, f, length)
        fill_ways_in(flows, devices, state, q, length, way)
        least, place = np.inf, -1
        for s in range(len(state.queries)):
            service = service_with(flows, devices, state, q, s)
            own = own_with(flows, devices, state, q, s, service)
            if hosts[s]:
                cost = arrival_s(flows, devices, state, q, s, length) + own
                if penalty:
                    cost += _interference_s(flows, devices, state, scratch, q, s)
            else:
                cost = way[devices.site[s]] + own
            if cost < least and fits(flows, devices, state, q, s):
                least, place = cost, s
        if place < 0:
            return int(q)
        put(flows, devices, state, q, place)
        hosts[place] = True
    return -1


@leaf
def _interference_s(flows: Flows, devices: Devices, state: State, scratch: Scratch, q: int, s: int) -> float:
    """By how much query q on s would lengthen the paths, `scratch.length`, to the queries of its dataflow there, s."""
    length, slowed = scratch.length, scratch.tail
    f, kept = flows.owner[q], trace(state, s)
    put(flows, devices, state, q, s)
    makespan_s(flows, devices, state, f, slowed)
    grown = 0.0
    other = state.first[s]
    while other >= 0:
        if other != q and flows.owner[other] == f:
            grown += slowed[other] - length[other]
        other = state.after[other]
    withdraw(flows, devices, state, q, kept)
    return grown
