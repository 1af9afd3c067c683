"""A good placement to start from: the better it is, the more the bounds rule out.

TopSet and TopSet/P, then the best move of a few queries to one resource, all moves weighed at once, until none helps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from leeward.policies.edge_cloud.exact.arrival import Arrival
from leeward.policies.edge_cloud.exact.others import Other, latency_if_joined_s, makespan_now_s, makespans_s, others_of
from leeward.policies.edge_cloud.methods.outcome import Placed
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats, Mask

Ints = NDArray[np.int64]
#: So many queries move together at most.
TOGETHER = 3
#: A move has to save this share of the cost.
WORTH = 1e-9
#: Moves that are weighed at once, for the memory that they take.
AT_ONCE = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A placement that breaks no constraint; with it, the objective (8) and the makespan of the dataflow, s."""

    placement: tuple[int, ...]
    total: float
    makespan: float


def of_topset(board: Board, dataflow: Dataflow) -> list[tuple[int, ...]]:
    """The placements of TopSet/P and TopSet, if they find one; the board is left as it was."""
    found = []
    for penalty in (True, False):
        outcome = topset(board, dataflow, penalty=penalty)
        if isinstance(outcome, Placed):
            board.remove(dataflow.name)
            found.append(outcome.placement)
    return found


def known(board: Board, dataflow: Dataflow, placement: Sequence[int]) -> Known | None:
    """The total with this placement, as the board says it; None if a constraint is broken on a resource in use."""
    board.enter(dataflow, placement)
    used = list(board.active[dataflow.name].on)
    found = None
    if not board.loads.broken()[used].any():
        found = Known(placement=tuple(placement), total=board.total(), makespan=board.makespan(dataflow.name))
    board.remove(dataflow.name)
    return found


def best_of(board: Board, arrival: Arrival, may: Mask, starts: Sequence[Sequence[int]]) -> Known | None:
    """The best placement that one of these on the arrival's places leads to; None if all break a constraint.

    Queries move to the choices of `may`, [query, place].
    """
    others = others_of(board, arrival)
    ends = {_polished(arrival, others, may, placement) for placement in starts}
    found = [known(board, arrival.dataflow, placement) for placement in sorted({*ends, *map(tuple, starts)})]
    return min((one for one in found if one is not None), key=lambda one: one.total, default=None)


def _polished(arrival: Arrival, others: Sequence[Other], may: Mask, placement: Sequence[int]) -> tuple[int, ...]:
    """The placement after the best moves; all that it meets is in `others`."""
    place_of = np.full(1 + max(r for members in arrival.places.members for r in members), -1)
    for p, members in enumerate(arrival.places.members):
        place_of[list(members)] = p
    moves = _moves(arrival, may)
    best = np.array(placement)
    cost = float(costs_s(arrival, others, place_of, best[None])[0])
    while len(moves):
        tried = np.where(moves >= 0, moves, best)
        spans = [tried[at : at + AT_ONCE] for at in range(0, len(tried), AT_ONCE)]
        found = np.concatenate([costs_s(arrival, others, place_of, span) for span in spans])
        # a start that breaks a constraint costs infinitely much, and every other placement is worth a move
        if not found.min() < (cost - WORTH * abs(cost) if math.isfinite(cost) else cost):
            break
        best, cost = tried[found.argmin()], float(found.min())
    return tuple(map(int, best))


def _moves(arrival: Arrival, may: Mask) -> Ints:
    """All moves, [move, query]: the new resource, or -1.  A place offers as many resources as there are queries."""
    size, rows = len(may), []
    for together in range(1, min(TOGETHER, size) + 1):
        for queries in map(list, combinations(range(size), together)):
            for p in np.flatnonzero(may[queries].all(axis=0)):
                for r in arrival.places.members[p][:size]:
                    row = np.full(size, -1)
                    row[queries] = r
                    rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, size)


def costs_s(arrival: Arrival, others: Sequence[Other], place_of: Ints, placements: Ints) -> Floats:
    """The makespan, and how much longer the others take, s, [case]; infinite where C2 or C3 is broken.

    `placements` are resources, [case, query], where C1 holds, and all places with other dataflows are in `others`.
    """
    places, where = arrival.places, place_of[placements]
    together = (placements[:, :, None] == placements[:, None, :]) * arrival.computes
    queries = np.arange(placements.shape[1])
    lam, drain = arrival.lam_s[queries, where], arrival.drain_mah_s[queries, where]
    overhead = places.pi[where, together.sum(axis=2).astype(int)]
    service = (1 + overhead) * (places.lam_sum_s[where] + (together * lam[:, None, :]).sum(axis=2))
    fastest = np.maximum(places.fastest[where], (together * arrival.w_in).max(axis=2))
    energy = places.recharge_s[where] * (
        places.base_mah_s[where] + (places.drain_mah_s[where] + (together * drain[:, None, :]).sum(axis=2))
    )
    fits = (fastest * service < 1) & (energy <= places.battery_mah[where]) | (arrival.computes == 0)
    alone = {"shared": service, "overhead": lam * (1 + overhead), "exclusive": lam}[arrival.mode]
    cost = _makespans_s(arrival, placements, where, alone * arrival.computes)
    # service time and pi of all places with these queries on them
    rows = np.arange(len(placements))[:, None]
    joins = arrival.computes > 0
    services = np.repeat(((1 + places.pi[:, 0]) * places.lam_sum_s)[None], len(placements), axis=0)
    services[rows, where[:, joins]] = service[:, joins]
    overheads = np.repeat(places.pi[None, :, 0], len(placements), axis=0)
    overheads[rows, where[:, joins]] = overhead[:, joins]
    for other in others:
        latencies = [
            latency_if_joined_s(arrival, one, services[:, one.place], overheads[:, one.place]) for one in other.met
        ]
        cost = cost + (makespans_s(other, latencies) - makespan_now_s(other))
    return np.where(fits.all(axis=1), cost, np.inf)


def _makespans_s(arrival: Arrival, placements: Ints, where: Ints, latency_s: Floats) -> Floats:
    lengths = np.zeros(placements.shape)
    for v in arrival.dataflow.order:
        for u in arrival.dataflow.parents[v]:
            onward = np.where(
                placements[:, u] == placements[:, v], 0.0, arrival.transfer_s[u, where[:, u], where[:, v]]
            )
            lengths[:, v] = np.maximum(lengths[:, v], lengths[:, u] + onward)
        lengths[:, v] += latency_s[:, v]
    return np.asarray(lengths.max(axis=1))
