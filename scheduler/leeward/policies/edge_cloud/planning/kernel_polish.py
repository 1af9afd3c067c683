"""Compiled: repeatedly the best single move of a query of one dataflow, by the objective (8)."""

from __future__ import annotations

import numpy as np

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Ints, Scratch, State
from leeward.policies.edge_cloud.planning.compiled import kernel, leaf
from leeward.policies.edge_cloud.planning.kernel_groups import LEAST, move_group
from leeward.policies.edge_cloud.planning.kernel_moves import (
    fill_lists,
    fill_overheads,
    fits,
    gain_s,
    move,
    own_with,
    put,
    service_with,
    sharing,
    take,
)
from leeward.policies.edge_cloud.planning.kernel_paths import (
    arrival_s,
    fill_tails,
    fill_ways_in,
    fill_ways_out,
    makespan_s,
    onward_s,
    own_s,
)
from leeward.policies.edge_cloud.planning.loads import Floats


@kernel
def polish(
    flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, candidates: int, everywhere: bool,
    groups: bool, most: int,
) -> float:  # fmt: skip
    """Moves queries of dataflow f; the objective of the state afterwards, s.

    In each of at most `most` rounds the queries on the critical path (`everywhere`: all queries) are tried on the
    `candidates` resources with the best score of `_fill_scores`, and the move with the greatest gain is made.  Where
    there is none, `groups` of queries are tried.
    """
    fill_lists(flows, state)
    fill_overheads(devices, state)
    for g in range(len(flows.start)):
        scratch.makespans[g] = makespan_s(flows, devices, state, g, scratch.length)
    for _ in range(most):
        if not _move_one(flows, devices, state, scratch, f, candidates, everywhere):
            if not groups or not move_group(flows, devices, state, scratch, f):
                break
            for g in range(len(flows.start)):
                scratch.makespans[g] = makespan_s(flows, devices, state, g, scratch.length)
    return scratch.makespans.sum()


@leaf
def _move_one(
    flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, candidates: int, everywhere: bool
) -> bool:
    """Makes the move of one query of dataflow f that lowers the objective most; False if none does."""
    length, tail, makespans = scratch.length, scratch.tail, scratch.makespans
    makespan_s(flows, devices, state, f, length)
    fill_tails(flows, devices, state, f, tail)
    best, query, resource = -LEAST, -1, -1
    for q in range(flows.start[f], flows.start[f] + flows.size[f]):
        if flows.source[q] or not (everywhere or length[q] + tail[q] >= makespans[f] - LEAST):
            continue
        _fill_scores(flows, devices, state, scratch, q)
        for _ in range(candidates):
            s = _least(scratch.score)
            if scratch.score[s] == np.inf:
                break
            scratch.score[s] = np.inf
            if fits(flows, devices, state, q, s):
                grown = gain_s(flows, devices, state, scratch, q, s)
                if grown < best:
                    best, query, resource = grown, q, s
        makespan_s(flows, devices, state, f, length)
    if query < 0:
        return False
    sharers = scratch.found[: sharing(flows, state, scratch, state.place[query], resource)]
    move(flows, devices, state, query, resource)
    for g in sharers:
        makespans[g] = makespan_s(flows, devices, state, g, length)
    return True


@leaf
def _least(score: Floats) -> int:
    """The first position with the least value."""
    found = 0
    for s in range(1, len(score)):
        if score[s] < score[found]:
            found = s
    return found


@kernel
def polish_starts(
    flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, order: Ints, cuts: Ints, candidates: int,
    everywhere: bool, most: int,
) -> None:  # fmt: skip
    """Polishes the placement of dataflow f in the state, and the starts that `cuts` give; the best one is left.

    A start visits the queries in `order`, and from its cut on puts them in the cloud: a dataflow whose events have once
    gone there seldom gains by their coming back, and no single move brings all its later queries across.  Where there
    are starts, groups of queries move, too.
    """
    groups = len(cuts) > 0
    best = polish(flows, devices, state, scratch, f, candidates, everywhere, groups, most)
    ends = np.array([flows.start[f], flows.start[f] + flows.size[f]])
    kept = state.place[ends[0] : ends[1]].copy()
    for cut in cuts:
        if _start(flows, devices, state, scratch, f, order, cut):
            found = polish(flows, devices, state, scratch, f, candidates, everywhere, groups, most)
            if found < best - LEAST:
                best = found
                kept = state.place[ends[0] : ends[1]].copy()
    state.place[ends[0] : ends[1]] = kept


@leaf
def _start(flows: Flows, devices: Devices, state: State, scratch: Scratch, f: int, order: Ints, cut: int) -> bool:
    """Places dataflow f anew, each query where its own path and those that it slows grow least; False if one fits
    nowhere, and then some are not placed."""
    length = scratch.length
    for q in order:
        if not flows.source[q] and state.place[q] >= 0:
            take(flows, devices, state, q)
    for at in range(len(order)):
        q = order[at]
        if flows.source[q]:
            continue
        least, place = np.inf, -1
        for s in range(len(state.queries)):
            if (at >= cut and devices.is_edge[s]) or not fits(flows, devices, state, q, s):
                continue
            service = service_with(flows, devices, state, q, s)
            cost = arrival_s(flows, devices, state, q, s, length) + own_with(flows, devices, state, q, s, service)
            cost += (service - state.service_s[s]) * state.queries[s]
            if cost < least:
                least, place = cost, s
        if place < 0:
            return False
        put(flows, devices, state, q, place)
        length[q] = arrival_s(flows, devices, state, q, place, length) + own_s(flows, devices, state, q)
    return True


@leaf
def _fill_scores(flows: Flows, devices: Devices, state: State, scratch: Scratch, q: int) -> None:
    """For each resource the longest path through the query if it were there, s, and what it does to those there.

    Cheap: nothing else is taken to move, and each query on the resource to lengthen its dataflow by what it waits more.
    """
    score, length, tail = scratch.score, scratch.length, scratch.tail
    fill_ways_in(flows, devices, state, q, length, scratch.way_in)
    fill_ways_out(flows, devices, state, q, tail, scratch.way_out)
    for s in range(len(score)):
        if flows.sink[q] and devices.is_edge[s]:
            score[s] = np.inf
        else:
            site = devices.site[s]
            score[s] = scratch.way_in[site] + scratch.way_out[site] + _there_s(flows, devices, state, q, s)
    for others, ends in ((flows.parent, flows.parent_at), (flows.child, flows.child_at)):
        for at in range(ends[q], ends[q + 1]):
            s = state.place[others[at]]
            if score[s] < np.inf:  # beside a parent or a child
                ways = arrival_s(flows, devices, state, q, s, length) + onward_s(flows, devices, state, q, s, tail)
                score[s] = ways + _there_s(flows, devices, state, q, s)
    score[state.place[q]] = np.inf


@leaf
def _there_s(flows: Flows, devices: Devices, state: State, q: int, s: int) -> float:
    """The query's own latency on s, and by how much it slows all queries there together."""
    service = service_with(flows, devices, state, q, s)
    return own_with(flows, devices, state, q, s, service) + (service - state.service_s[s]) * state.queries[s]
