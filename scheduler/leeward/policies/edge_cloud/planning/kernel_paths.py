"""Compiled: latencies, transfers and path lengths of dataflows (formulas (1), (2) and (10)), all in s."""

from __future__ import annotations

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, State
from leeward.policies.edge_cloud.planning.compiled import leaf
from leeward.policies.edge_cloud.planning.loads import Floats

#: Positions in `values.MODES`.
SHARED, OVERHEAD = 0, 1


@leaf
def overhead(devices: Devices, r: int, m: int) -> float:
    """pi_r(m)."""
    row = 1 if devices.is_edge[r] else 0
    return devices.pi[row, min(m, devices.pi.shape[1] - 1)]


@leaf
def transfer_s(devices: Devices, event_bytes: float, r: int, s: int) -> float:
    """l + 8 delta / beta."""
    return 0.0 if r == s else hop_s(devices, event_bytes, devices.site[r], devices.site[s])


@leaf
def hop_s(devices: Devices, event_bytes: float, here: int, there: int) -> float:
    """The same between resources of two sites."""
    return devices.latency_s[here, there] + event_bytes * devices.s_per_byte[here, there]


@leaf
def own_s(flows: Flows, devices: Devices, state: State, q: int) -> float:
    """Lambda of a placed query that is no source."""
    r = state.place[q]
    if devices.mode == SHARED:
        return state.service_s[r]
    alone = devices.lam_s[flows.kind[q], r]
    return alone * state.over[r] if devices.mode == OVERHEAD else alone


@leaf
def arrival_s(flows: Flows, devices: Devices, state: State, q: int, r: int, length: Floats) -> float:
    """The longest way to the input of a query, if it were on r, by the lengths of its parents."""
    longest = 0.0
    for at in range(flows.parent_at[q], flows.parent_at[q + 1]):
        u = flows.parent[at]
        longest = max(longest, length[u] + transfer_s(devices, flows.event_bytes[u], state.place[u], r))
    return longest


@leaf
def onward_s(flows: Flows, devices: Devices, state: State, q: int, r: int, tail: Floats) -> float:
    """The longest way from the output of a query to the end, if it were on r, by the tails of its children."""
    longest = 0.0
    for at in range(flows.child_at[q], flows.child_at[q + 1]):
        c = flows.child[at]
        way = transfer_s(devices, flows.event_bytes[q], r, state.place[c])
        longest = max(longest, way + own_s(flows, devices, state, c) + tail[c])
    return longest


@leaf
def fill_ways_in(flows: Flows, devices: Devices, state: State, q: int, length: Floats, way: Floats) -> None:
    """`way` [site] gets `arrival_s` of a query for all resources there but those of its parents."""
    way[:] = 0.0
    for at in range(flows.parent_at[q], flows.parent_at[q + 1]):
        u = flows.parent[at]
        here = devices.site[state.place[u]]
        for there in range(len(way)):
            way[there] = max(way[there], length[u] + hop_s(devices, flows.event_bytes[u], here, there))


@leaf
def fill_ways_out(flows: Flows, devices: Devices, state: State, q: int, tail: Floats, way: Floats) -> None:
    """`way` [site] gets `onward_s` of a query for all resources there but those of its children."""
    way[:] = 0.0
    for at in range(flows.child_at[q], flows.child_at[q + 1]):
        c = flows.child[at]
        there = devices.site[state.place[c]]
        rest = own_s(flows, devices, state, c) + tail[c]
        for here in range(len(way)):
            way[here] = max(way[here], hop_s(devices, flows.event_bytes[q], here, there) + rest)


@leaf
def makespan_s(flows: Flows, devices: Devices, state: State, f: int, length: Floats) -> float:
    """L_G of the part of a dataflow that is placed; `length` [query] gets the L_i of its queries."""
    longest = 0.0
    for q in range(flows.start[f], flows.start[f] + flows.size[f]):
        if state.place[q] < 0:
            continue
        length[q] = arrival_s(flows, devices, state, q, state.place[q], length)
        if not flows.source[q]:
            length[q] += own_s(flows, devices, state, q)
        longest = max(longest, length[q])
    return longest


@leaf
def fill_tails(flows: Flows, devices: Devices, state: State, f: int, tail: Floats) -> None:
    """`tail` [query] gets the longest way from the output of each query of a dataflow to its end."""
    for q in range(flows.start[f] + flows.size[f] - 1, flows.start[f] - 1, -1):
        tail[q] = onward_s(flows, devices, state, q, state.place[q], tail)
