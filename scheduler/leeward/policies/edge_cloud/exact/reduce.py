"""The columns that the bounds leave: every placement that is better than the best known one is made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leeward.policies.edge_cloud.exact.arrival import Arrival, arrival_of, only
from leeward.policies.edge_cloud.exact.bounds import Floor, floor_of, ways_of
from leeward.policies.edge_cloud.exact.columns import Columns, columns_on, columns_s, joined, no_columns
from leeward.policies.edge_cloud.exact.incumbent import Known, best_of, known, of_topset
from leeward.policies.edge_cloud.exact.others import Other, others_of
from leeward.policies.edge_cloud.exact.outcome import Infeasible
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats, Mask

#: A bound above a known cost by this share rules out; below it, it may be the last digits of a sum.
SURE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """An arrival, and the rest of its choices."""

    arrival: Arrival
    #: The choices that are in a column, [query, place]; a query that has none cannot be placed.
    may: Mask
    #: The dataflows with queries on places that are left.
    others: tuple[Other, ...]
    columns: Columns
    #: Where the ends of each edge may be if they are on different resources, [place, place].
    apart: dict[tuple[int, int], Mask]
    known: Known | None
    #: A lower bound on the cost, s: the makespan of the dataflow, and how much longer all others take.
    bound_s: float
    #: (8) without the arriving dataflow, s.
    before_s: float

    @property
    def unit_s(self) -> float:
        """The size of the numbers, s."""
        return 1e-3 if self.known is None else self.known.makespan


def reduced(board: Board, dataflow: Dataflow) -> Reduced | Infeasible:
    """An arrival after the bounds; the better of TopSet and TopSet/P is the placement to beat."""
    starts, arrival = of_topset(board, dataflow), arrival_of(board, dataflow)
    may = fits_alone(arrival)
    for v, query in enumerate(dataflow.queries):
        if not may[v].any():
            return Infeasible(reason=f"queries[{v}] = {query.kind!r}: no resource has room for it")
    best = min(filter(None, (known(board, dataflow, one) for one in starts)), key=lambda one: one.total, default=None)
    if best is not None:
        may = _open(board, arrival, may, _limit_s(best, board.total()))
        # the worse start may be on places that are ruled out
        used = {r for placement in starts for r in placement}
        keep = np.array([not used.isdisjoint(members) for members in arrival.places.members])
        keep |= may.any(axis=0)
        best = best_of(board, only(arrival, keep), may[:, keep], starts)
    return narrowed(board, arrival, may, best)


def narrowed(board: Board, arrival: Arrival, may: Mask, best: Known | None) -> Reduced:
    """Bounds on the choices of `may`, then on columns, until they rule out nothing more."""
    before = board.total()
    limit = _limit_s(best, before)
    left = _open(board, arrival, may, limit)
    while True:
        keep = np.asarray(left.any(axis=0))
        arrival, may = only(arrival, keep), left[:, keep]
        others = others_of(board, arrival)
        floor = floor_of(arrival, others)
        columns = _columns(arrival, others, floor, may, limit)
        left = choices_in(columns, may)
        if (left == may).all() or not left.any(axis=1).all():
            break
    ways = ways_of(arrival, floor, may)
    return Reduced(
        arrival=arrival,
        may=left,
        others=others,
        columns=columns,
        apart={edge: _apart(arrival, bound, limit) for edge, bound in ways.edge.items()},
        known=best,
        bound_s=float(ways.choice.min()),
        before_s=before,
    )


def choices_in(columns: Columns, may: Mask) -> Mask:
    """The choices that are in a column, [query, place]."""
    found = np.zeros_like(may)
    for p, has in zip(columns.place, columns.has, strict=True):
        found[has, p] = True
    return found


def fits_alone(arrival: Arrival) -> Mask:
    """Where C1 holds, and C2 and C3 if the other queries of the dataflow stay away: more of them do not help."""
    places, loaded = arrival.places, arrival.computes[:, None] > 0
    service = (1 + places.pi_low[:, 1]) * (places.lam_sum_s + arrival.lam_s)
    energy = places.recharge_s * (places.base_mah_s + (places.drain_mah_s + arrival.drain_mah_s))
    fits = (np.maximum(places.fastest, arrival.w_in[:, None]) * service < 1) & (energy <= places.battery_mah)
    return np.asarray(arrival.may & (fits | ~loaded))


def _limit_s(best: Known | None, before_s: float) -> float:
    """The cost of the known placement, and a little for the last digits of sums."""
    return math.inf if best is None else best.total - before_s + SURE * best.total


def _open(board: Board, arrival: Arrival, may: Mask, limit_s: float) -> Mask:
    """The choices that are left; fewer of them make the bounds better, so again until nothing changes."""
    while True:
        keep = np.asarray(may.any(axis=0))
        near, there = only(arrival, keep), may[:, keep]
        left = np.zeros_like(may)
        left[:, keep] = there & (ways_of(near, floor_of(near, others_of(board, near)), there).choice <= limit_s)
        if (left == may).all():
            return may
        may = left


def _apart(arrival: Arrival, bound_s: Floats, limit_s: float) -> Mask:
    """Where the ends of an edge may be on different resources; the bound is [place, place]."""
    several = np.array([len(members) > 1 for members in arrival.places.members])
    return np.asarray((bound_s <= limit_s) & (~np.eye(len(several), dtype=bool) | several))


def _columns(arrival: Arrival, others: tuple[Other, ...], floor: Floor, may: Mask, limit_s: float) -> Columns:
    """The columns of all places within the limit."""
    found = [no_columns(len(may))]
    for p in range(arrival.size):
        columns = columns_on(arrival, p, may)
        if len(columns):
            found.append(columns.where(columns_s(arrival, others, floor, may, columns) <= limit_s))
    return joined(found)
