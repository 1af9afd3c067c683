"""Instances for the tests of edge and cloud: small ones by hand, random ones by Hypothesis, the stored cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import MODES, Cloud, Edge, Network, Query
from leeward.policies.edge_cloud.planning.board import Board
from tests.helpers.shared_folder import stored

TYPES = 4


def stored_cases() -> list[Path]:
    """The files of the stored cases; skips where the folder is absent."""
    return stored("instances/edge_cloud", "case_*.json")


def case_document(*, edges: int = 2, clouds: int = 1) -> dict[str, Any]:
    """source -> work -> sink: edges 5 ms from all others, 1 ms for each event on an edge and 0.25 ms in the cloud."""
    size = edges + clouds
    edge = {"kind": "edge", "battery_mAh": 10000.0, "base_mA": 230.0, "recharge_s": 86400.0}
    lam = [0.001] * edges + [0.00025] * clouds
    instance = {
        "mode": "shared",
        "lam": [lam, lam],
        "eps": [[1e-5] * edges + [0.0] * clouds] * 2,
        "latency": [[0.0 if r == s else 0.005 for s in range(size)] for r in range(size)],
        "bandwidth": [[1e7] * size for _ in range(size)],
        "pi_edge": [0.0, 0.0, 0.1],
        "pi_cloud": [0.0, 0.0, 0.02],
        "resources": [dict(edge) for _ in range(edges)] + [{"kind": "cloud"} for _ in range(clouds)],
        "dataflows": [
            {
                "name": "chain",
                "queries": [
                    {"type": 0, "sigma": 1.0, "delta": 1000.0, "kind": "source", "rate": 100.0, "pin": 0},
                    {"type": 0, "sigma": 0.5, "delta": 500.0, "kind": "query"},
                    {"type": 1, "sigma": 1.0, "delta": 100.0, "kind": "sink"},
                ],
                "edges": [[0, 1], [1, 2]],
            }
        ],
    }
    return {"instance": json.loads(json.dumps(instance)), "placement": [[0, 0, edges]]}


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Up to four edges and three clouds on fewer sites, or on one each; queries take up to 2 ms."""
    edges, clouds = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    size = edges + clouds
    sites = draw(st.integers(1, size))
    batteries = st.builds(
        Edge, battery_mah=numbers(3000, 12000), base_ma=numbers(0, 230), recharge_s=st.sampled_from([3600.0, 86400.0])
    )

    def matrix(rows: int, columns: int, low: float, high: float) -> tuple[tuple[float, ...], ...]:
        row = st.lists(numbers(low, high), min_size=columns, max_size=columns).map(tuple)
        return draw(st.lists(row, min_size=rows, max_size=rows).map(tuple))

    overheads = st.lists(numbers(0, 0.5), min_size=0, max_size=4).map(lambda found: (0.0, 0.0, *found))
    return Fabric(
        resources=(*draw(st.lists(batteries, min_size=edges, max_size=edges)), *[Cloud()] * clouds),
        lam_s=matrix(TYPES, size, 1e-5, 2e-3),
        eps_mah=matrix(TYPES, size, 0, 1e-4),
        network=Network(
            site=tuple(draw(st.lists(st.integers(0, sites - 1), min_size=size, max_size=size))),
            latency_s=matrix(sites, sites, 0, 0.05),
            bandwidth_bps=matrix(sites, sites, 1e5, 1e8),
        ),
        pi_edge=draw(overheads),
        pi_cloud=draw(overheads),
        mode=draw(st.sampled_from(MODES)),
    )


@st.composite
def dataflows(draw: st.DrawFn, fabric: Fabric, name: str = "d", most: int = 7) -> Dataflow:
    """Up to so many queries in a random order, so that positions say nothing about the way of events."""
    size = draw(st.integers(2, most))
    sources = draw(st.integers(1, max(1, size // 3)))
    edges = {(draw(st.integers(0, v - 1)), v) for v in range(sources, size)}
    edges |= {(u, v) for v in range(sources, size) for u in range(v) if draw(st.integers(0, 3)) == 0}
    # only queries without outputs are sinks, and every source needs an output: the last query reads from all the rest
    senders = {u for u, _ in edges}
    edges |= {(u, size - 1) for u in range(sources) if u not in senders}
    shuffled = draw(st.permutations(range(size)))
    queries: list[Query] = [Query(type=0, selectivity=1.0, event_bytes=0.0)] * size
    for v in range(size):
        is_source, is_sink = v < sources, v >= sources and all(u != v for u, _ in edges)
        queries[shuffled[v]] = Query(
            type=draw(st.integers(0, TYPES - 1)),
            selectivity=draw(numbers(0, 2)),
            event_bytes=draw(numbers(0, 20000)),
            kind="source" if is_source else "sink" if is_sink else "query",
            rate=draw(st.none() | numbers(0, 100)) if is_source else None,
            pin=draw(st.none() | st.sampled_from(fabric.edges)) if is_source else None,
        )
    return Dataflow(
        name=name,
        queries=tuple(queries),
        edges=tuple((shuffled[u], shuffled[v]) for u, v in sorted(edges)),
        rate=draw(numbers(0, 200)),
    )


@st.composite
def instances(draw: st.DrawFn, most: int = 3) -> Instance:
    fabric = draw(fabrics())
    count = draw(st.integers(1, most))
    return Instance(fabric=fabric, dataflows=tuple(draw(dataflows(fabric, f"d{number}")) for number in range(count)))


@st.composite
def placed(draw: st.DrawFn) -> tuple[Instance, list[list[int]]]:
    """An instance, and any resource for each query, constraints or not."""
    instance = draw(instances())
    return instance, draw(placements(instance))


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Instance, list[list[int]]]:
    """Up to four dataflows on two or three resources so near each other that every latency counts."""
    fabric = draw(fabrics())
    net = fabric.network
    near = Network(
        site=net.site,
        latency_s=tuple(tuple(latency / 100 for latency in row) for row in net.latency_s),
        bandwidth_bps=tuple(tuple(rate * 1000 for rate in row) for row in net.bandwidth_bps),
    )
    fabric = replace(fabric, network=near)
    count = draw(st.integers(2, 4))
    instance = Instance(fabric=fabric, dataflows=tuple(draw(dataflows(fabric, f"d{n}")) for n in range(count)))
    resources = st.sampled_from(draw(st.permutations(range(len(fabric.resources))))[:3])
    rows = [draw(st.lists(resources, min_size=n, max_size=n)) for n in (len(d.queries) for d in instance.dataflows)]
    return instance, rows


@st.composite
def placements(draw: st.DrawFn, instance: Instance) -> list[list[int]]:
    resources = st.integers(0, len(instance.fabric.resources) - 1)
    return [
        draw(st.lists(resources, min_size=len(dataflow.queries), max_size=len(dataflow.queries)))
        for dataflow in instance.dataflows
    ]


def board_with(instance: Instance, rows: list[list[int]]) -> Board:
    """All dataflows of the instance on a board, each query on the resource that its row says."""
    board = Board(instance.fabric)
    for dataflow, row in zip(instance.dataflows, rows, strict=True):
        board.add(dataflow)
        for v, r in enumerate(row):
            board.place(dataflow.name, v, r)
    return board


def snapshot(board: Board) -> list[str]:
    """All that a board of whole dataflows says, to the last bit."""
    board.refresh()
    loads = board.loads
    arrays = (
        loads.count, loads.lam_sum_s, loads.service_s, loads.fastest, loads.drain_mah_s, loads.factors, board.slope,
    )  # fmt: skip
    hosted = [list(one.items()) for one in loads.hosted]
    sharing = [list(one.items()) for one in board.sharing]
    packed = {name: [int(board.packed.place[at]) for at in board.packed.positions(name)] for name in board.active}
    active = [
        (name, one.place, one.weight, one.hops, board.lengths(name), one.ways, sorted(one.on.items()))
        for name, one in board.active.items()
    ]
    return [*(str(array.tolist()) for array in arrays), str(loads.factor), *map(str, (hosted, sharing, packed, active))]
