"""The paper's formulas as plain functions, with their numbers and units (`values.py` says how they are counted).

Four of them differ from the print: C2 divides by (1 + pi), as an overhead lowers the throughput; C3 converts the
seconds of tau for a current in mA; (10) adds up the lengths of the way; and (1) has latencies under interference
(mode shared), without which TopSet/P would equal TopSet.  A query's own latency ends a path.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.values import Edge, Placement

SECONDS_PER_HOUR = 3600.0
BITS_PER_BYTE = 8.0


def rates(dataflow: Dataflow) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """omega_in and omega_out of each query, events/s (section 3.1); a source has no input."""
    unrated = sum(query.kind == "source" and query.rate is None for query in dataflow.queries)
    w_in = [0.0] * len(dataflow.queries)
    w_out = [0.0] * len(dataflow.queries)
    for v in dataflow.order:
        query = dataflow.queries[v]
        if query.kind == "source":
            w_out[v] = dataflow.rate / unrated if query.rate is None else query.rate
        else:
            w_in[v] = math.fsum(w_out[u] for u in dataflow.parents[v])
            w_out[v] = query.selectivity * w_in[v]
    return tuple(w_in), tuple(w_out)


def overhead(fabric: Fabric, r: int, m: int) -> float:
    """pi_r(m): the share by which m queries together take longer than one after the other."""
    known = fabric.pi_edge if isinstance(fabric.resources[r], Edge) else fabric.pi_cloud
    return known[min(m, len(known) - 1)]


def service_time_s(fabric: Fabric, r: int, types: Sequence[int]) -> float:
    """The inverse of the throughput in C2, s: one event of each query on r, sources left out of `types`."""
    return (1 + overhead(fabric, r, len(types))) * math.fsum(fabric.lam_s[kind][r] for kind in types)


def effective_latency_s(fabric: Fabric, r: int, kind: int, types: Sequence[int]) -> float:
    """Lambda of a query of this type on r, s, where queries of `types` run, itself among them."""
    if fabric.mode == "shared":
        return service_time_s(fabric, r, types)
    if fabric.mode == "overhead":
        return fabric.lam_s[kind][r] * (1 + overhead(fabric, r, len(types)))
    return fabric.lam_s[kind][r]


def transfer_s(fabric: Fabric, event_bytes: float, r: int, s: int) -> float:
    """l + 8 delta / beta, s: the network's part of (1), for one event from r to s."""
    if r == s:
        return 0.0
    net = fabric.network
    here, there = net.site[r], net.site[s]
    return net.latency_s[here][there] + BITS_PER_BYTE * event_bytes / net.bandwidth_bps[here][there]


def path_latency_s(
    fabric: Fabric, dataflow: Dataflow, placement: Placement, lam: Sequence[float], path: Sequence[int]
) -> float:
    """L_p (1), s, for the latencies `lam` of the queries: all edges of the path, then its last query."""
    edges = pairwise(path)
    return lam[path[-1]] + math.fsum(
        lam[u] + transfer_s(fabric, dataflow.queries[u].event_bytes, placement[u], placement[v]) for u, v in edges
    )


def critical_lengths_s(
    fabric: Fabric, dataflow: Dataflow, placement: Placement, lam: Sequence[float]
) -> tuple[float, ...]:
    """L_i (10), s: the longest way from a source to the end of each query."""
    length = [0.0] * len(dataflow.queries)
    for v in dataflow.order:
        arrival = max(
            (
                length[u] + transfer_s(fabric, dataflow.queries[u].event_bytes, placement[u], placement[v])
                for u in dataflow.parents[v]
            ),
            default=0.0,
        )
        length[v] = lam[v] + arrival
    return tuple(length)


def makespan_s(lengths: Iterable[float]) -> float:
    """L_G (2), s: the longest path ends with the query of the greatest critical length."""
    return max(lengths)


def energy_mah(fabric: Fabric, r: int, load: Iterable[tuple[int, float]]) -> float:
    """The left side of C3 for an edge, mAh from one full charge to the next; `load`: types and input rates."""
    edge = fabric.resources[r]
    assert isinstance(edge, Edge), f"resource {r} has no battery"
    events = math.fsum(w_in * fabric.eps_mah[kind][r] for kind, w_in in load)
    return edge.recharge_s * (edge.base_ma / SECONDS_PER_HOUR + events)


def keeps_throughput(w_in: float, service_s: float) -> bool:
    """C2: a query on a resource with this service time works faster than its events arrive."""
    return w_in * service_s < 1


def keeps_energy(fabric: Fabric, r: int, energy: float) -> bool:
    """C3: the battery holds until it is full again."""
    edge = fabric.resources[r]
    return not isinstance(edge, Edge) or energy <= edge.battery_mah


def buffered_events(w_in: float, migration_s: float) -> float:
    """q (5): the events that arrive while a query moves."""
    return w_in * migration_s


def stabilization_s(w_in: float, latency_s: float, migration_s: float) -> float:
    """psi (6), s: until a moved query has worked off its buffer; infinite where it cannot keep up."""
    queued = buffered_events(w_in, migration_s)
    if queued == 0:
        return 0.0
    spare = 1 / latency_s - w_in
    return queued / spare if spare > 0 else math.inf


def moved(before: Placement, after: Placement) -> tuple[int, ...]:
    """The queries with rho = 1 (3) of one dataflow; their number is its part of (4)."""
    return tuple(v for v, (r, s) in enumerate(zip(before, after, strict=True)) if r != s)
