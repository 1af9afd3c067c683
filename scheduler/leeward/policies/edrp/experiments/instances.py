"""Random instances for measurements: clusters in the plane, the reference application, other graphs of any size."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Literal

from leeward.policies.edrp.experiments.reference import SINK, SOURCE, Ratios, reference_operators, reference_streams
from leeward.policies.edrp.problem.latency import Table
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Deployment, Node, Operator, Stream, Weights

Shape = Literal["chain", "tree", "dense"]
SHAPES: tuple[Shape, ...] = ("chain", "tree", "dense")
MEAN_DELAY_S = 0.032
#: Sources of a random instance emit this, tuples/s.
RATE_TPS = 200.0
#: $/h per tuple/s between two nodes, where traffic has a price.
LINK_COST = 0.02
FIRST = Weights(r=0.5, c=0.5, d=0.0)
BALANCED = Weights(r=0.3, c=0.3, d=0.4)
BOUNDS = Bounds(r=0.175, c=30.0, d=7.5)


def random_delays(rng: random.Random, nodes: int, mean_s: float = MEAN_DELAY_S) -> tuple[tuple[float, ...], ...]:
    """Symmetric delays with the given mean: between random points of a square, each up to a fifth longer or shorter."""
    points = [(rng.random(), rng.random()) for _ in range(nodes)]
    length = [[0.0] * nodes for _ in range(nodes)]
    for u in range(nodes):
        for v in range(u):
            length[u][v] = length[v][u] = math.dist(points[u], points[v]) * rng.uniform(0.8, 1.2)
    mean = sum(map(sum, length)) / max(1, nodes * (nodes - 1))
    scale = mean_s / mean if mean > 0 else 0.0
    return tuple(tuple(scale * d for d in row) for row in length)


def random_deployment(
    rng: random.Random, operators: tuple[Operator, ...], nodes: tuple[Node, ...]
) -> dict[str, dict[str, int]]:
    """One or two replicas of each operator on random nodes with room, pinned ones first; a present deployment."""
    room = {node.id: node.res for node in nodes}
    placed: dict[str, dict[str, int]] = {}
    for op in sorted(operators, key=lambda op: op.allowed is None):  # stable: pinned first
        placed[op.id] = {}
        for _ in range(rng.randint(1, min(2, op.k))):
            free = [node for node in (op.allowed or room) if room[node] >= op.res]
            if not free:
                break
            node = rng.choice(free)
            room[node] -= op.res
            placed[op.id][node] = placed[op.id].get(node, 0) + 1
    return {op.id: placed[op.id] for op in operators}


def reference_instance(
    nodes: int, k: int, *, traffic: bool = False, present: bool = False, seed: int = 0, pinned: bool = True
) -> Problem:
    """The reference application at 200 tuples/s on a random cluster; source and sink pinned to random nodes.

    Where traffic has a price, count_by_window emits one tuple per tuple, as 21.2 could not be paid within C_max.
    With a present deployment (a random one) downtime has its price too.
    """
    rng = random.Random(f"reference {nodes} {k} {traffic} {present} {seed}")
    cluster = tuple(Node(id=f"n{u}") for u in range(nodes))
    pins = dict(zip((SOURCE, SINK), (node.id for node in rng.sample(cluster, 2)), strict=True)) if pinned else {}
    operators = reference_operators(RATE_TPS, k, pins)
    return Problem(
        name=f"reference n{nodes} k{k}{' traffic' * traffic}{' present' * present} seed {seed}",
        nodes=cluster,
        delay_s=random_delays(rng, nodes),
        operators=operators,
        streams=reference_streams(RATE_TPS, Ratios(count_by_window=1.0) if traffic else Ratios()),
        weights=BALANCED if present else FIRST,
        bounds=BOUNDS,
        link_cost=LINK_COST if traffic else 0.0,
        current=random_deployment(rng, operators, cluster) if present else None,
    )


def counted_instance(nodes: int, k: int, *, current: Deployment | None = None, seed: int = 0) -> Problem:
    """The reference application as Table IV counts its variables: nine streams and nobody pinned."""
    rng = random.Random(f"counted {nodes} {seed}")
    return Problem(
        name=f"edrp-table4 n{nodes} k{k}",
        nodes=tuple(Node(id=f"n{u}") for u in range(nodes)),
        delay_s=random_delays(rng, nodes),
        operators=reference_operators(RATE_TPS, k, {}),
        streams=reference_streams(RATE_TPS, Ratios(ticks=0.1)),
        weights=FIRST if current is None else BALANCED,
        bounds=BOUNDS,
        current=current,
    )


def one_each(nodes: int, *, seed: int = 0) -> Deployment:
    """A present deployment for `counted_instance`: random, one replica of each operator, two where there may be."""
    rng = random.Random(f"one each {nodes} {seed}")
    cluster = tuple(Node(id=f"n{u}") for u in range(nodes))
    return random_deployment(rng, reference_operators(RATE_TPS, 1, {}), cluster)


def toy() -> Problem:
    """An instance that every method solves at once, to load what it needs: `counted_instance` with a deployment."""
    return replace(counted_instance(4, 1, current=one_each(4)), link_cost=0.001)


def graph_instance(shape: Shape, operators: int, nodes: int, *, traffic: bool = False, seed: int = 0) -> Problem:
    """A random application of one source: a chain, a tree that fans out, or a dense graph (half of all edges).

    Each operator sends its load on, shared among those that it feeds; services of 2 to 10 ms at 30 to 130 % of one
    replica's capacity, at most three replicas, nodes of four units.
    """
    rng = random.Random(f"graph {shape} {operators} {nodes} {traffic} {seed}")
    edges = _edges(rng, shape, operators)
    fed = [sum(i == source for source, _ in edges) for i in range(operators)]
    load = [RATE_TPS] + [0.0] * (operators - 1)
    streams = []
    for i, j in edges:  # by source, so that a load is whole before it is sent on
        share = load[i] / fed[i]
        load[j] += share
        streams.append(Stream(source=f"op{i}", target=f"op{j}", rate=share))
    depth = _longest_path(operators, edges)
    return Problem(
        name=f"{shape} of {operators} on n{nodes}{' traffic' * traffic} seed {seed}",
        nodes=tuple(Node(id=f"n{u}", res=4.0) for u in range(nodes)),
        delay_s=random_delays(rng, nodes),
        operators=tuple(
            Operator(
                id=f"op{i}",
                k=3,
                curve=_service(rng.uniform(0.002, 0.010), rng.uniform(0.3, 1.3), k=3),
                source_rate=RATE_TPS if i == 0 else 0.0,
            )
            for i in range(operators)
        ),
        streams=tuple(streams),
        weights=FIRST,
        bounds=Bounds(r=0.1 + 0.06 * depth, c=4.0 * operators * (2.0 if traffic else 1.0), d=7.5),
        link_cost=LINK_COST if traffic else 0.0,
    )


def _edges(rng: random.Random, shape: Shape, operators: int) -> list[tuple[int, int]]:
    """Edges sorted by source; each operator but the first is fed."""
    if shape == "chain":
        return [(i, i + 1) for i in range(operators - 1)]
    if shape == "tree":
        return sorted((rng.randrange(max(0, j - 3), j), j) for j in range(1, operators))
    edges = {(i, j) for j in range(1, operators) for i in range(j) if rng.random() < 0.5}
    fed = {j for _, j in edges}
    return sorted(edges | {(rng.randrange(j), j) for j in range(1, operators) if j not in fed})


def _longest_path(operators: int, edges: list[tuple[int, int]]) -> int:
    longest = [0] * operators
    for i, j in edges:
        longest[j] = max(longest[j], longest[i] + 1)
    return max(longest)


def _service(seconds: float, utilisation: float, k: int) -> Table:
    """R with m replicas: seconds / (1 - utilisation / m), infinite where they cannot keep up."""
    return Table(
        values_s=tuple(seconds / (1 - utilisation / m) if utilisation < m else math.inf for m in range(1, k + 1))
    )
