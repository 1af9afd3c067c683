"""Compiled: one query moves from a resource to another; whether it fits there, and what that does to the objective."""

from __future__ import annotations

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Scratch, State
from leeward.policies.edge_cloud.planning.compiled import leaf
from leeward.policies.edge_cloud.planning.kernel_paths import OVERHEAD, SHARED, makespan_s, overhead


@leaf
def fill_lists(flows: Flows, state: State) -> None:
    """Makes the lists of queries on each resource; sources, which load nothing, are in none."""
    state.first[:] = -1
    for f in range(len(flows.start)):
        for q in range(flows.start[f], flows.start[f] + flows.size[f]):
            if not flows.source[q] and state.place[q] >= 0:
                _enter(state, q, state.place[q])


@leaf
def fill_overheads(devices: Devices, state: State) -> None:
    """1 + pi(m) of each resource."""
    for r in range(len(state.over)):
        state.over[r] = 1 + overhead(devices, r, state.queries[r])


@leaf
def _enter(state: State, q: int, r: int) -> None:
    state.after[q], state.before[q] = state.first[r], -1
    if state.first[r] >= 0:
        state.before[state.first[r]] = q
    state.first[r] = q


@leaf
def _leave(state: State, q: int, r: int) -> None:
    if state.before[q] >= 0:
        state.after[state.before[q]] = state.after[q]
    else:
        state.first[r] = state.after[q]
    if state.after[q] >= 0:
        state.before[state.after[q]] = state.before[q]


@leaf
def _weigh(devices: Devices, state: State, r: int) -> None:
    state.over[r] = 1 + overhead(devices, r, state.queries[r])
    state.service_s[r] = state.over[r] * state.lam_sum_s[r]


@leaf
def take(flows: Flows, devices: Devices, state: State, q: int) -> None:
    """A query that is no source leaves its resource."""
    r, kind = state.place[q], flows.kind[q]
    _leave(state, q, r)
    state.place[q] = -1
    state.queries[r] -= 1
    state.lam_sum_s[r] -= devices.lam_s[kind, r]
    state.drain_mah_s[r] -= flows.w_in[q] * devices.eps_mah[kind, r]
    _weigh(devices, state, r)


@leaf
def put(flows: Flows, devices: Devices, state: State, q: int, s: int) -> None:
    """A query that is no source, and on no resource, comes to s."""
    kind = flows.kind[q]
    state.place[q] = s
    _enter(state, q, s)
    state.queries[s] += 1
    state.lam_sum_s[s] += devices.lam_s[kind, s]
    state.drain_mah_s[s] += flows.w_in[q] * devices.eps_mah[kind, s]
    _weigh(devices, state, s)


@leaf
def move(flows: Flows, devices: Devices, state: State, q: int, s: int) -> None:
    """A query that is no source moves to s."""
    take(flows, devices, state, q)
    put(flows, devices, state, q, s)


@leaf
def trace(state: State, s: int) -> tuple[float, float]:
    """The sums of s that a query which comes and goes again would leave with rounding."""
    return state.lam_sum_s[s], state.drain_mah_s[s]


@leaf
def withdraw(flows: Flows, devices: Devices, state: State, q: int, kept: tuple[float, float]) -> None:
    """The query that came last leaves; its resource is what it was at `trace`, to the last bit."""
    s = state.place[q]
    take(flows, devices, state, q)
    restore(devices, state, s, kept)


@leaf
def restore(devices: Devices, state: State, s: int, kept: tuple[float, float]) -> None:
    """The sums of s are those of `trace`: the same queries are there."""
    state.lam_sum_s[s], state.drain_mah_s[s] = kept
    _weigh(devices, state, s)


@leaf
def service_with(flows: Flows, devices: Devices, state: State, q: int, s: int) -> float:
    """The service time of s, s, if the query came to it."""
    lam_s = state.lam_sum_s[s] + devices.lam_s[flows.kind[q], s]
    return (1 + overhead(devices, s, state.queries[s] + 1)) * lam_s


@leaf
def own_with(flows: Flows, devices: Devices, state: State, q: int, s: int, service_s: float) -> float:
    """Lambda of the query on s, s, if it came to it; `service_s` is that of `service_with`."""
    if devices.mode == SHARED:
        return service_s
    alone = devices.lam_s[flows.kind[q], s]
    return alone * (1 + overhead(devices, s, state.queries[s] + 1)) if devices.mode == OVERHEAD else alone


@leaf
def fits(flows: Flows, devices: Devices, state: State, q: int, s: int) -> bool:
    """C1 to C3 hold on s, for the query and for the others, if it came to it."""
    if flows.sink[q] and devices.is_edge[s]:
        return False
    w_in, fastest = flows.w_in[q], flows.w_in[q]
    other = state.first[s]
    while other >= 0:
        fastest = max(fastest, flows.w_in[other])
        other = state.after[other]
    if fastest * service_with(flows, devices, state, q, s) >= 1:
        return False
    if not devices.is_edge[s]:
        return True
    drain = state.drain_mah_s[s] + w_in * devices.eps_mah[flows.kind[q], s]
    return devices.recharge_s[s] * (devices.base_mah_s[s] + drain) <= devices.battery_mah[s]


@leaf
def sharing(flows: Flows, state: State, scratch: Scratch, r: int, s: int) -> int:
    """`scratch.found` gets the dataflows with queries on r or s; their number."""
    count = 0
    scratch.mark[0] += 1
    for place in (r, s):
        q = state.first[place]
        while q >= 0:
            f = flows.owner[q]
            if scratch.seen[f] != scratch.mark[0]:
                scratch.seen[f] = scratch.mark[0]
                scratch.found[count] = f
                count += 1
            q = state.after[q]
    return count


@leaf
def gain_s(flows: Flows, devices: Devices, state: State, scratch: Scratch, q: int, s: int) -> float:
    """By how much the objective (8) grows, s, if the query moved to s; `scratch.makespans` are the present ones.

    The state is afterwards what it was, to the last bit.
    """
    r = state.place[q]
    here, there = trace(state, r), trace(state, s)
    sharers = scratch.found[: sharing(flows, state, scratch, r, s)]
    move(flows, devices, state, q, s)
    grown = 0.0
    for f in sharers:
        grown += makespan_s(flows, devices, state, f, scratch.length) - scratch.makespans[f]
    withdraw(flows, devices, state, q, there)
    put(flows, devices, state, q, r)
    restore(devices, state, r, here)
    return grown
