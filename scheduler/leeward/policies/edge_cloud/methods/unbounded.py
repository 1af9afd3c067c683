"""Edge-only and Cloud-only (paper, section 5): two baselines that know no constraints.

Edge-only has an edge of its own for each query but the sinks, and no network between edges.  Cloud-only has a machine
of its own for each query but the sources, and no network between machines.  Both pay the network from edge to cloud
once.  The paper means them as a weak lower bound, so here each query is on the fastest resource of its class, and an
event takes the shortest way from edge to cloud.

A simulator wants a placement on the resources that there are: `crowded` spreads the queries over them, and breaks
constraints where that takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import BITS_PER_BYTE, makespan_s
from leeward.policies.edge_cloud.model.instance import check_on_fabric
from leeward.policies.edge_cloud.planning.board import Board

Where = Literal["edge", "cloud"]


def bound_s(fabric: Fabric, dataflow: Dataflow, where: Where) -> float:
    """The makespan (2) of a dataflow by Edge-only or Cloud-only, s.

    Raises `FieldError` for a dataflow that does not fit the fabric, and for a fabric without edges or without machines.
    """
    check_on_fabric(fabric, dataflow)
    for name, some in (("edge", fabric.edges), ("cloud machine", fabric.clouds)):
        if not some:
            raise FieldError("resources", 0, f"there is no {name}", remedy="add one to the resources")
    on_edge = [_on_edge(query.kind, where) for query in dataflow.queries]
    length = [0.0] * len(on_edge)
    for v in dataflow.order:
        query = dataflow.queries[v]
        if query.kind == "source":
            continue
        arrival = max(
            length[u] + (_to_cloud_s(fabric, dataflow, u) if on_edge[u] and not on_edge[v] else 0.0)
            for u in dataflow.parents[v]
        )
        some = fabric.edges if on_edge[v] else fabric.clouds
        length[v] = arrival + min(fabric.lam_s[query.type][r] for r in some)
    return makespan_s(length)


def _on_edge(kind: str, where: Where) -> bool:
    return kind == "source" or (where == "edge" and kind != "sink")


def _to_cloud_s(fabric: Fabric, dataflow: Dataflow, u: int) -> float:
    """The shortest transfer of an event of u from edge to cloud, s; a source is where its sensor is."""
    net, query = fabric.network, dataflow.queries[u]
    start = {net.site[r] for r in (fabric.edges if query.pin is None else (query.pin,))}
    end = {net.site[r] for r in fabric.clouds}
    bits = BITS_PER_BYTE * query.event_bytes
    return min(net.latency_s[r][s] + bits / net.bandwidth_bps[r][s] for r in start for s in end)


def crowded(board: Board, dataflow: Dataflow, where: Where) -> Placed | Refused:
    """Puts an arriving dataflow on the board, each query on the resource of its class with the fewest queries.

    The constraints are not asked.  Refused only where the fabric has no resource of a class.
    """
    fabric, name = board.fabric, dataflow.name
    board.add(dataflow)
    for v in dataflow.order:
        query = dataflow.queries[v]
        some = fabric.edges if _on_edge(query.kind, where) else fabric.clouds
        if query.pin is not None:
            some = (query.pin,)
        if not some:
            board.remove(name)
            return Refused(query=v, reason=f"queries[{v}] = {query.kind!r}: there is no resource of its class.")
        board.place(name, v, _emptiest(board, some))
    return Placed(placement=board.placement(name))


def _emptiest(board: Board, some: Sequence[int]) -> int:
    count = board.loads.count
    return min(some, key=lambda r: (count[r], r))
