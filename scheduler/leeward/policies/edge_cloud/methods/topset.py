"""TopSet and TopSet/P (paper, section 4.1): each query of an arriving dataflow goes where its path is shortest.

The paper does not say on which resource the latency is meant by that ranks the queries of a set; here it is the mean
over all resources.  Ties go to the lower number, of queries and of resources.
"""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.edge_cloud.methods.outcome import Placed, Refused, hopeless
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board


def topset(board: Board, dataflow: Dataflow, *, penalty: bool) -> Placed | Refused:
    """Puts an arriving dataflow on the board, beside the others, which do not move; `penalty` makes it TopSet/P."""
    name = dataflow.name
    board.add(dataflow)
    for v in visits(board, dataflow):
        lengths, allowed = board.choices(name, v)
        if not allowed.any():
            board.remove(name)
            return Refused(query=v, reason=_reason(board, dataflow, v))
        costs = np.where(allowed, lengths, math.inf)
        if penalty and dataflow.queries[v].kind != "source":
            kind = dataflow.queries[v].type
            for r in board.active[name].on:
                if allowed[r]:
                    costs[r] += interference_s(board, name, kind, r)
        board.place(name, v, int(costs.argmin()))
    return Placed(placement=board.placement(name))


def visits(board: Board, dataflow: Dataflow) -> list[int]:
    """The topological sets (9) one after the other, each by decreasing latency of its queries."""
    mean_s = board.loads.mean_s
    return [
        v
        for one in dataflow.sets
        for v in sorted(one, key=lambda query: (-mean_s[dataflow.queries[query].type], query))
    ]


def interference_s(board: Board, name: str, kind: int, r: int) -> float:
    """The penalty, s: by how much a query of this type on r lengthens the paths to the dataflow's queries there."""
    now, then = board.lengths(name), board.lengths_beside(name, kind, r)
    one = board.active[name]
    return math.fsum(
        then[v] - now[v] for v, place in enumerate(one.place) if place == r and one.dataflow.queries[v].kind != "source"
    )


def _reason(board: Board, dataflow: Dataflow, v: int) -> str:
    reason = hopeless(board.fabric, dataflow)
    if reason is not None:
        return reason
    query = dataflow.queries[v]
    where = "cloud machine" if query.kind == "sink" else "resource"
    return f"queries[{v}] = {query.kind!r}: no {where} has room for it beside the queries that run there."
