"""The exact method: reduce by bounds, solve the integer programme, decode, verify by the board."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leeward.policies.edge_cloud.exact.incumbent import best_of
from leeward.policies.edge_cloud.exact.outcome import Infeasible, Optimal, Outcome, Unproven
from leeward.policies.edge_cloud.exact.programme import Answer, solve
from leeward.policies.edge_cloud.exact.reduce import Reduced, narrowed, reduced
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats

#: A gap of this share of the makespan is that of the solver's tolerances.
CLOSED = 1e-6
#: Why each query has room somewhere, and not all have at once.
TOGETHER = "every placement breaks a bound on throughput or energy"
#: With more columns than that the linear relaxation is solved first: its bound, and the placement that it leads to,
#: leave fewer for the integer programme, or none.
RELAX_ABOVE = 60


def best_placement(board: Board, dataflow: Dataflow, *, time_limit_s: float | None = None) -> Outcome:
    """The placement of an arriving dataflow with the least total makespan (8), if the others do not move.

    The board has the others, each placed as a whole, and is left as it was.  `time_limit_s` is for each of the
    solver's calls; the rest takes milliseconds to seconds.  Raises `FieldError` for a dataflow that does not fit the
    fabric, that is on the board, or that has too many queries.
    """
    rest = reduced(board, dataflow)
    if isinstance(rest, Infeasible):
        return rest
    if not rest.may.any(axis=1).all():
        return Infeasible(reason=TOGETHER)
    status = ""
    if len(rest.columns) > RELAX_ABOVE:
        relaxed = solve(rest, whole=False, time_limit_s=time_limit_s)
        rest = _beside(board, rest, relaxed, None if relaxed.q is None else rounded(rest, relaxed.q))
    if not _closed(rest):
        answer = solve(rest, whole=True, time_limit_s=time_limit_s)
        rest = _beside(board, rest, answer, None if answer.q is None else decode(rest, answer.q))
        status = answer.status
    return _conclude(rest, status)


def _beside(board: Board, rest: Reduced, answer: Answer, placement: tuple[int, ...] | None) -> Reduced:
    """The rest with the answer's bound, and narrowed down if its placement leads to a better one."""
    bound = rest.bound_s if answer.bound_s is None else max(rest.bound_s, answer.bound_s)
    if placement is not None:
        best = best_of(board, rest.arrival, rest.may, [placement])
        if best is not None and (rest.known is None or best.total < rest.known.total):
            rest = narrowed(board, rest.arrival, rest.may, best)
    return replace(rest, bound_s=max(rest.bound_s, bound))


def _closed(rest: Reduced) -> bool:
    if rest.known is None:
        return False
    return rest.known.total - rest.before_s - rest.bound_s <= CLOSED * rest.known.makespan


def _conclude(rest: Reduced, status: str) -> Outcome:
    """A status counts only where there is no placement that the board has verified."""
    bound = rest.before_s + rest.bound_s
    if rest.known is None:
        if status == "infeasible":
            return Infeasible(reason=TOGETHER)
        return Unproven(placement=None, total=None, bound=bound)
    total = rest.known.total
    kind = Optimal if _closed(rest) else Unproven
    # placements that cost more than the known one were left out of the programme: they are not in its bound
    return kind(placement=rest.known.placement, total=total, bound=min(bound, total))


def decode(rest: Reduced, q: Floats) -> tuple[int, ...] | None:
    """The resource of each query: a column takes the lowest free one of its place.  None if one has none."""
    free = [list(reversed(members)) for members in rest.arrival.places.members]
    found = [-1] * len(rest.arrival.dataflow.queries)
    for c in np.flatnonzero(q > 0.5):
        if not free[rest.columns.place[c]]:
            return None
        r = free[rest.columns.place[c]].pop()
        for v in np.flatnonzero(rest.columns.has[c]):
            found[v] = r
    return None if -1 in found else tuple(found)


def rounded(rest: Reduced, q: Floats) -> tuple[int, ...]:
    """The resource of each query where it is for the greatest share; all queries of a place are on its first one."""
    members = rest.arrival.places.members
    share = np.zeros((len(members), rest.columns.has.shape[1]))
    np.add.at(share, rest.columns.place, rest.columns.has * q[:, None])
    return tuple(members[p][0] for p in share.argmax(axis=0))
