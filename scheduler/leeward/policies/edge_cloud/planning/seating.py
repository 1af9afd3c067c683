"""Ours: queries of a dataflow that break its limits move until all of them hold.

A pinned query runs on one of its nodes; two rivals share no resource.  The methods place a dataflow by the paper's
constraints alone.  Then its limited queries are seated anew: each stays where it is if it may, or goes where the total
makespan (8) grows least, by a depth-first search that looks at the queries with the fewest resources first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.values import Query
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.limits import Limits
from leeward.policies.edge_cloud.planning.trial import Trial

#: Places that are tried for all queries of a dataflow together, before it is given up.
TRIES = 5_000


def seat(board: Board, name: str, *, bounded: bool) -> int | None:
    """Move the limited queries of a dataflow that is placed as a whole; None if all its limits hold then.

    Else the board is as it was, and the answer is a query for which no resource was found.  `bounded`: no move may
    break a constraint; without it a query stays on edges, or in the cloud.
    """
    one, limits = board.active[name], board.limits.get(name)
    if limits is None or limits.hold(one.place):
        return None
    before = board.placement(name)
    wanted = {v: _candidates(board, name, v, limits, bounded=bounded) for v in limits.queries}
    order = sorted(wanted, key=lambda v: (len(wanted[v]), v))
    for v in order:
        board.take(name, v)
    search = _Search(board=board, name=name, limits=limits, wanted=wanted, order=order, bounded=bounded)
    if search.run(0):
        return None
    board.rearrange(name, before)
    return search.stuck


def _candidates(board: Board, name: str, v: int, limits: Limits, *, bounded: bool) -> list[int]:
    """The resource where it is first, then those with the least total makespan."""
    one = board.active[name]
    query, here = one.dataflow.queries[v], one.place[v]
    some = set(_of_class(board.fabric, query))
    if not bounded and here is not None:
        some &= set(board.fabric.edges if board.loads.is_edge[here] else board.fabric.clouds)
    some &= limits.pinned.get(v, some)
    if query.kind == "source":
        return sorted(some, key=lambda r: (r != here, r))
    trial = Trial(board, name, v)
    return sorted(some, key=lambda r: (r != here, trial.change_s(r), r))


def _of_class(fabric: Fabric, query: Query) -> Sequence[int]:
    if query.kind == "source":
        return fabric.edges if query.pin is None else (query.pin,)
    return fabric.clouds if query.kind == "sink" else range(len(fabric.resources))


@dataclass(slots=True, kw_only=True)
class _Search:
    """Seats the queries of `order` one after the other; the others stay."""

    board: Board
    name: str
    limits: Limits
    wanted: Mapping[int, Sequence[int]]
    order: Sequence[int]
    bounded: bool
    tries: int = TRIES
    deepest: int = -1
    stuck: int = -1  #: the query at which the search came farthest

    def run(self, at: int) -> bool:
        """From a position on; leaves no query seated where it fails."""
        if at == len(self.order):
            return True
        v = self.order[at]
        if at > self.deepest:
            self.deepest, self.stuck = at, v
        for r in self._free(v):
            self.tries -= 1
            if self.tries < 0:
                return False
            self.board.place(self.name, v, r)
            if self.run(at + 1):
                return True
            self.board.take(self.name, v)
        return False

    def _free(self, v: int) -> Iterator[int]:
        one = self.board.active[self.name]
        query, loads = one.dataflow.queries[v], self.board.loads
        asks = self.bounded and query.kind != "source"
        for r in self.wanted[v]:
            if self.limits.allow(v, r, one.place) and (not asks or loads.allows(query.type, one.w_in[v], r)):
                yield r
