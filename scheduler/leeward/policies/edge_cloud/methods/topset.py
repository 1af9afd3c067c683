"""TopSet and TopSet/P (paper, section 4.1): each query of an arriving dataflow goes where its path is shortest.

The paper does not say on which resource the latency is meant by that ranks the queries of a set; here it is the mean
over all resources.  Ties go to the lower number, of queries and of resources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.policies.edge_cloud.methods.outcome import Placed, Refused, hopeless
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Scratch, State, devices, scratch_of, state_of
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.kernel_topset import place_topset


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A dataflow that has come to the board, and is placed as a whole in `state` alone."""

    flows: Flows
    machines: Devices
    state: State
    scratch: Scratch
    #: Its number in the arrays, and the position of each of its queries.
    number: int
    at: tuple[int, ...]


def topset(board: Board, dataflow: Dataflow, *, penalty: bool) -> Placed | Refused:
    """Puts an arriving dataflow on the board, beside the others, which do not move; `penalty` makes it TopSet/P."""
    found = draft(board, dataflow, penalty=penalty)
    return found if isinstance(found, Refused) else commit(board, dataflow, found)


def draft(board: Board, dataflow: Dataflow, *, penalty: bool) -> Draft | Refused:
    """The same in a copy of the board's state; a dataflow that is refused has left the board."""
    board.add(dataflow)
    at = board.packed.positions(dataflow.name)
    flows, machines = board.packed.flows(), devices(board.loads)
    found = Draft(
        flows=flows,
        machines=machines,
        scratch=scratch_of(flows, machines),
        state=state_of(board.loads, board.packed.place),
        number=board.packed.number(dataflow.name),
        at=at,
    )
    stuck = _place_sources(board, dataflow, found)
    if stuck is None:
        order = np.array([at[v] for v in visits(board, dataflow) if dataflow.queries[v].kind != "source"])
        query = place_topset(flows, machines, found.state, found.scratch, found.number, order, penalty)
        stuck = None if query < 0 else at.index(query)
    if stuck is None:
        return found
    board.remove(dataflow.name)
    return Refused(query=stuck, reason=_reason(board, dataflow, stuck))


def _place_sources(board: Board, dataflow: Dataflow, found: Draft) -> int | None:
    """Each source on the edge that has its sensor, or on the first one; the source for which there is no edge."""
    for v, query in enumerate(dataflow.queries):
        if query.kind != "source":
            continue
        if not board.fabric.edges:
            return v
        found.state.place[found.at[v]] = board.fabric.edges[0] if query.pin is None else query.pin
    return None


def commit(board: Board, dataflow: Dataflow, found: Draft) -> Placed:
    """The dataflow runs as in the draft's state."""
    wanted = tuple(int(found.state.place[q]) for q in found.at)
    board.rearrange(dataflow.name, wanted)
    return Placed(placement=wanted)


def visits(board: Board, dataflow: Dataflow) -> list[int]:
    """The topological sets (9) one after the other, each by decreasing latency of its queries."""
    mean_s = board.loads.mean_s
    return [
        v
        for one in dataflow.sets
        for v in sorted(one, key=lambda query: (-mean_s[dataflow.queries[query].type], query))
    ]


def _reason(board: Board, dataflow: Dataflow, v: int) -> str:
    reason = hopeless(board.fabric, dataflow)
    if reason is not None:
        return reason
    query = dataflow.queries[v]
    where = "cloud machine" if query.kind == "sink" else "resource"
    return f"queries[{v}] = {query.kind!r}: no {where} has room for it beside the queries that run there."
