"""The formulas of edge and cloud by hand, path by path and query by query, to compare with."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from leeward.policies.edge_cloud.model import formulas
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Cloud, Edge
from leeward.policies.edge_cloud.planning.board import Board

near = pytest.approx
#: Dataflow and query -> resource.
Placed = dict[tuple[int, int], int]


def board_of(instance: Instance) -> Board:
    board = Board(instance.fabric)
    for dataflow in instance.dataflows:
        board.add(dataflow)
    return board


def queries(instance: Instance) -> list[tuple[int, int]]:
    return [(d, v) for d, dataflow in enumerate(instance.dataflows) for v in range(len(dataflow.queries))]


def hosted(instance: Instance, placed: Placed, r: int) -> list[tuple[int, float]]:
    """Type and input rate of the non-source queries on r."""
    return [
        (instance.dataflows[d].queries[v].type, formulas.rates(instance.dataflows[d])[0][v])
        for (d, v), where in placed.items()
        if where == r and instance.dataflows[d].queries[v].kind != "source"
    ]


def keeps(instance: Instance, placed: Placed, r: int) -> tuple[bool, bool]:
    """Whether C2 and C3 hold on r, and whether one is so near its bound that a sum's last digit decides."""
    fabric, load = instance.fabric, hosted(instance, placed, r)
    service = formulas.service_time_s(fabric, r, [kind for kind, _ in load])
    used = [w_in * service for _, w_in in load]
    held = all(formulas.keeps_throughput(w_in, service) for _, w_in in load)
    resource = fabric.resources[r]
    if isinstance(resource, Edge):
        energy = formulas.energy_mah(fabric, r, load)
        held = held and formulas.keeps_energy(fabric, r, energy)
        used.append(energy / resource.battery_mah)
    return held, any(share == near(1, rel=1e-9) for share in used)


def ways(dataflow: Dataflow, end: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every path from a source, or those that end with one query."""
    waiting = deque((v,) for v, query in enumerate(dataflow.queries) if query.kind == "source")
    while waiting:
        path = waiting.popleft()
        if end is None or path[-1] == end:
            yield path
        waiting.extend((*path, v) for u, v in dataflow.edges if u == path[-1])


def source_rate(dataflow: Dataflow, v: int) -> float:
    shared = [query for query in dataflow.queries if query.kind == "source" and query.rate is None]
    rate = dataflow.queries[v].rate
    return dataflow.rate / len(shared) if rate is None else rate


def beside(instance: Instance, all_placed, r: int) -> list[int]:
    """Types of the non-source queries on a resource."""
    return [
        query.type
        for dataflow, placement in zip(instance.dataflows, all_placed, strict=True)
        for query, where in zip(dataflow.queries, placement, strict=True)
        if where == r and query.kind != "source"
    ]


def slow_service(instance: Instance, all_placed, r: int) -> float:
    fabric, types = instance.fabric, beside(instance, all_placed, r)
    table = fabric.pi_cloud if isinstance(fabric.resources[r], Cloud) else fabric.pi_edge
    share = table[len(types)] if len(types) < len(table) else table[-1]
    return sum((1 + share) * fabric.lam_s[kind][r] for kind in types)


def slow_latency(instance: Instance, all_placed, d: int, v: int) -> float:
    fabric, query, r = instance.fabric, instance.dataflows[d].queries[v], all_placed[d][v]
    if query.kind == "source":
        return 0.0
    alone = fabric.lam_s[query.type][r]
    own = sum(fabric.lam_s[kind][r] for kind in beside(instance, all_placed, r))
    together = slow_service(instance, all_placed, r)
    return {"shared": together, "overhead": alone * together / own, "exclusive": alone}[fabric.mode]


def slow_path(instance: Instance, all_placed, d: int, path) -> float:
    """(1), by hand: latencies of the queries on the way, and the network between those on two resources."""
    net, dataflow, placement = instance.fabric.network, instance.dataflows[d], all_placed[d]
    total = sum(slow_latency(instance, all_placed, d, v) for v in path)
    for u, v in zip(path, path[1:], strict=False):  # noqa: RUF007
        r, s = placement[u], placement[v]
        if r != s:
            here, there = net.site[r], net.site[s]
            bits = 8 * dataflow.queries[u].event_bytes
            total += net.latency_s[here][there] + bits / net.bandwidth_bps[here][there]
    return total
