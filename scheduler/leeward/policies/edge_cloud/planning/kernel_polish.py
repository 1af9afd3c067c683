"""Compiled: repeatedly the best single move of a query of one dataflow, by the objective (8)."""

from __future__ import annotations

import numpy as np

from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Ints, State
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
    makespan_s,
    own_s,
    transfer_s,
)
from leeward.policies.edge_cloud.planning.loads import Floats


@kernel
def polish(
    flows: Flows, devices: Devices, state: State, f: int, candidates: int, everywhere: bool, groups: bool, most: int
) -> float:
    """Moves queries of dataflow f; the objective of the state afterwards, s.

    In each of at most `most` rounds the queries on the critical path (`everywhere`: all queries) are tried on the
    `candidates` resources with the best score of `_score`, and the move with the greatest gain is made.  Where there is
    none, `groups` of queries are tried.
    """
    fill_lists(flows, state)
    fill_overheads(devices, state)
    length, tail = np.zeros(len(state.place)), np.zeros(len(state.place))
    makespans = np.zeros(len(flows.start))
    for g in range(len(flows.start)):
        makespans[g] = makespan_s(flows, devices, state, g, length)
    seen, found = np.full(len(flows.start), -1), np.zeros(len(flows.start), dtype=np.int64)
    mark = 0
    for _ in range(most):
        q, s, mark = _best_move(
            flows, devices, state, f, candidates, everywhere, makespans, length, tail, seen, mark, found
        )
        if q < 0:
            if not groups:
                break
            gained, mark = move_group(flows, devices, state, f, makespans, length, seen, mark, found)
            if not gained:
                break
            for g in range(len(flows.start)):
                makespans[g] = makespan_s(flows, devices, state, g, length)
            continue
        mark += 1
        count = sharing(flows, state, state.place[q], s, seen, mark, found)
        move(flows, devices, state, q, s)
        for g in found[:count]:
            makespans[g] = makespan_s(flows, devices, state, g, length)
        makespans[f] = makespan_s(flows, devices, state, f, length)
    return makespans.sum()


@kernel
def _best_move(
    flows: Flows, devices: Devices, state: State, f: int, candidates: int, everywhere: bool, makespans: Floats,
    length: Floats, tail: Floats, seen: Ints, mark: int, found: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """The query and its new resource, -1 if no move lowers the objective; and the last mark that was used."""
    fill_tails(flows, devices, state, f, tail)
    best, query, resource = -LEAST, -1, -1
    score = np.zeros(len(state.service_s))
    for q in range(flows.start[f], flows.start[f] + flows.size[f]):
        if flows.source[q] or not (everywhere or length[q] + tail[q] >= makespans[f] - LEAST):
            continue
        _score(flows, devices, state, q, length, tail, score)
        for _ in range(candidates):
            s = int(score.argmin())
            if score[s] == np.inf:
                break
            score[s] = np.inf
            if not fits(flows, devices, state, q, s):
                continue
            mark += 1
            count = sharing(flows, state, state.place[q], s, seen, mark, found)
            grown = gain_s(flows, devices, state, q, s, makespans, length, found[:count])
            if grown < best:
                best, query, resource = grown, q, s
        makespan_s(flows, devices, state, f, length)
    return query, resource, mark


@kernel
def polish_starts(
    flows: Flows, devices: Devices, state: State, f: int, order: Ints, cuts: Ints, candidates: int, everywhere: bool,
    most: int,
) -> None:  # fmt: skip
    """Polishes the placement of dataflow f in the state, and the starts that `cuts` give; the best one is left.

    A start visits the queries in `order`, and from its cut on puts them in the cloud: a dataflow whose events have once
    gone there seldom gains by their coming back, and no single move brings all its later queries across.
    """
    groups = len(cuts) > 0
    best = polish(flows, devices, state, f, candidates, everywhere, groups, most)
    ends = np.array([flows.start[f], flows.start[f] + flows.size[f]])
    kept = state.place[ends[0] : ends[1]].copy()
    for cut in cuts:
        if _start(flows, devices, state, f, order, cut):
            found = polish(flows, devices, state, f, candidates, everywhere, groups, most)
            if found < best - LEAST:
                best = found
                kept = state.place[ends[0] : ends[1]].copy()
    state.place[ends[0] : ends[1]] = kept


@kernel
def _start(flows: Flows, devices: Devices, state: State, f: int, order: Ints, cut: int) -> bool:
    """Places dataflow f anew, each query where its own path and those that it slows grow least; False if one fits
    nowhere, and then some are not placed."""
    length = np.zeros(len(state.place))
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
def _score(flows: Flows, devices: Devices, state: State, q: int, length: Floats, tail: Floats, score: Floats) -> None:
    """For each resource the longest path through the query if it were there, s, and what it does to those there.

    Cheap: nothing else is taken to move, and each query on the resource to lengthen its dataflow by what it waits more.
    """
    here = state.place[q]
    for s in range(len(score)):
        if s == here or (flows.sink[q] and devices.is_edge[s]):
            score[s] = np.inf
            continue
        service = service_with(flows, devices, state, q, s)
        more = service - state.service_s[s]
        onward = 0.0
        for at in range(flows.child_at[q], flows.child_at[q + 1]):
            c = flows.child[at]
            way = transfer_s(devices, flows.event_bytes[q], s, state.place[c])
            onward = max(onward, way + own_s(flows, devices, state, c) + tail[c])
        arrival = arrival_s(flows, devices, state, q, s, length)
        score[s] = arrival + own_with(flows, devices, state, q, s, service) + onward + more * state.queries[s]
