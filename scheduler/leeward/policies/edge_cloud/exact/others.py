"""The dataflows that run already: how much longer they take if the arriving one joins them.

Their queries stay where they are, so a makespan is the longest of fixed paths, and the latency of a query follows from
what joins its own place alone.  Hence the makespans rise with the latencies and are convex in them: the sum over the
path that is critical for some latencies is a lower bound for all others.

Only the queries that can be joined are kept; the others are part of the ways between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leeward.policies.edge_cloud.exact.arrival import Arrival
from leeward.policies.edge_cloud.planning.active import Active
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A query of another dataflow that the arriving one may join."""

    place: int
    #: Lambda now, and lambda, s.
    latency_s: float
    lam_s: float
    #: The longest way from a source to its input past no other such query, s; -inf if there is none.
    entry_s: float
    #: Likewise from its output to the end of the dataflow.
    exit_s: float
    #: Likewise from earlier such queries (positions in `Other.met`) to its input.
    ways: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """One dataflow that shares a place where the arriving one may be."""

    name: str
    #: Each after those that it follows on a path.
    met: tuple[Met, ...]
    #: The longest path past none of them, s; -inf if there is none.
    apart_s: float


def others_of(board: Board, arrival: Arrival) -> tuple[Other, ...]:
    """The dataflows with a query on one of the places; none in mode exclusive, where nobody slows another down."""
    if arrival.mode == "exclusive":
        return ()
    place_of = {r: p for p, members in enumerate(arrival.places.members) for r in members}
    return tuple(_other(board, one, place_of) for one in board.active.values() if any(r in place_of for r in one.on))


def _other(board: Board, one: Active, place_of: Mapping[int, int]) -> Other:
    queries, loads = one.dataflow.queries, board.loads
    where = [r for r in one.place if r is not None]
    assert len(where) == len(queries), f"dataflow {one.dataflow.name} is not placed as a whole"
    latency = [
        0.0 if query.kind == "source" else loads.latency_on(query.type, r)
        for query, r in zip(queries, where, strict=True)
    ]
    into = [
        [(u, loads.transfer_s(where[u], where[v], queries[u].event_bytes)) for u in parents]
        for v, parents in enumerate(one.dataflow.parents)
    ]
    met = [v for v in one.dataflow.order if queries[v].kind != "source" and where[v] in place_of]
    sources = [v for v, query in enumerate(queries) if query.kind == "source"]
    entry, apart = _reach(one.dataflow.order, into, latency, met, sources)
    reached = [_reach(one.dataflow.order, into, latency, met, [v]) for v in met]
    return Other(
        name=one.dataflow.name,
        met=tuple(
            Met(
                place=place_of[where[v]],
                latency_s=latency[v],
                lam_s=float(loads.lam_s[queries[v].type, where[v]]),
                entry_s=entry[v],
                exit_s=reached[position][1],
                ways=tuple((before, ways[v]) for before, (ways, _) in enumerate(reached[:position]) if ways[v] >= 0),
            )
            for position, v in enumerate(met)
        ),
        apart_s=apart,
    )


def _reach(
    order: Sequence[int],
    into: Sequence[Sequence[tuple[int, float]]],
    latency_s: Sequence[float],
    met: Sequence[int],
    start: Sequence[int],
) -> tuple[list[float], float]:
    """The longest ways from outputs of `start` past no query of `met`: to each input, and to an end; -inf if none."""
    input_s, output_s = [-math.inf] * len(order), [-math.inf] * len(order)
    for v in order:
        input_s[v] = max((output_s[u] + transfer for u, transfer in into[v]), default=-math.inf)
        if v in start:
            output_s[v] = 0.0
        elif v not in met:
            output_s[v] = input_s[v] + latency_s[v]
    return input_s, max(output_s)


def makespans_s(other: Other, latency_s: Sequence[Floats | float]) -> Floats:
    """L_G (2), s, for latencies [met] that are numbers, or arrays over cases."""
    lengths: list[Floats | float] = []
    longest: Floats | float = other.apart_s
    for one, latency in zip(other.met, latency_s, strict=True):
        arrival: Floats | float = one.entry_s
        for u, way in one.ways:
            arrival = np.maximum(arrival, lengths[u] + way)
        lengths.append(arrival + latency)
        longest = np.maximum(longest, lengths[-1] + one.exit_s)
    return np.asarray(longest)


def makespan_now_s(other: Other) -> float:
    """L_G (2), s, if nobody joins it."""
    return float(makespans_s(other, [one.latency_s for one in other.met]))


def latency_if_joined_s(arrival: Arrival, one: Met, service_s: Floats, overhead: Floats) -> Floats:
    """Lambda of a query, s, by the service time and pi of its place (mode shared or overhead)."""
    return service_s if arrival.mode == "shared" else np.asarray(one.lam_s * (1 + overhead))


def least_latency_of_met_s(arrival: Arrival, one: Met) -> float:
    """Lambda of a query, s, at least, whatever joins it."""
    alone = arrival.places.lam_sum_s[one.place] if arrival.mode == "shared" else one.lam_s
    return float((1 + arrival.places.pi_low[one.place, 0]) * alone)


def critical(other: Other, latency_s: Sequence[float]) -> list[Met]:
    """Those on a longest path; none if a path past them is the longest."""
    lengths: list[float] = []
    before: list[int | None] = []
    for one, latency in zip(other.met, latency_s, strict=True):
        ways = [(one.entry_s, None), *[(lengths[u] + way, u) for u, way in one.ways]]
        arrival, u = max(ways, key=lambda way: way[0])
        lengths.append(arrival + latency)
        before.append(u)
    ends = [length + one.exit_s for length, one in zip(lengths, other.met, strict=True)]
    if max(ends, default=-math.inf) <= other.apart_s:
        return []
    at: int | None = ends.index(max(ends))
    path = []
    while at is not None:
        path.append(other.met[at])
        at = before[at]
    return path
