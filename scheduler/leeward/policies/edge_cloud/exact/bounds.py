"""Lower bounds on what an arriving dataflow costs, and the choices of a query that they rule out.

The cost is the makespan of the dataflow, and what all others then take longer.  A choice (query, place) is ruled out if
every placement with it costs more than one that is known; so is a set of queries on a place.  Nothing is lost: the
known placement stays, and so does each that is better.

All bounds leave out that queries of the dataflow slow each other down, unless they are in the set that is looked at,
and let each child of a query choose anew where that query is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.policies.edge_cloud.exact.arrival import Arrival
from leeward.policies.edge_cloud.exact.others import (
    Other,
    critical,
    least_latency_of_met_s,
    makespan_now_s,
    makespans_s,
)
from leeward.policies.edge_cloud.planning.loads import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that the others take, whatever joins them, and how that rises; [other] and [other, place]."""

    #: How much longer than now each takes if each place has the latency least for it, s; below 0 only where pi falls.
    change_s: Floats
    #: By how much that rises at least with the service time (mode shared, s/s) or with pi (mode overhead, s).
    slope: Floats


def floor_of(arrival: Arrival, others: tuple[Other, ...]) -> Floor:
    """The others' makespans where every place has the least latency, and the critical paths then."""
    slope = np.zeros((len(others), arrival.size))
    change = np.zeros(len(others))
    for d, other in enumerate(others):
        low = [least_latency_of_met_s(arrival, one) for one in other.met]
        change[d] = float(makespans_s(other, low)) - makespan_now_s(other)
        for one in critical(other, low):
            slope[d, one.place] += 1.0 if arrival.mode == "shared" else one.lam_s
    return Floor(change_s=change, slope=slope)


def least_latency_s(arrival: Arrival) -> Floats:
    """Lambda of each query on each place at least, s, [query, place]."""
    together = 1 + arrival.places.pi_low[:, 1]
    if arrival.mode == "exclusive":
        return arrival.lam_s
    if arrival.mode == "overhead":
        return np.asarray(arrival.lam_s * together)
    return np.asarray((arrival.lam_s + arrival.places.lam_sum_s) * together * arrival.computes[:, None])


def least_burden_s(arrival: Arrival, slope: Floats) -> Floats:
    """By how much each query lengthens others at least, s, [query, place]; the sum over queries holds, too.

    The first query on a place raises pi for all, so each gets its share of that as if all came.
    """
    places = arrival.places
    first = (places.pi_low[:, 1] - places.pi_low[:, 0]) / max(1.0, arrival.computes.sum())
    if arrival.mode == "shared":
        rise = arrival.lam_s * (1 + places.pi_low[:, 1]) + first * places.lam_sum_s
    else:
        rise = np.broadcast_to(first, arrival.lam_s.shape)
    return np.asarray(slope * rise * arrival.computes[:, None])


def way_in_s(arrival: Arrival, v: int, lengths: list[Floats]) -> Floats:
    """The longest way to the input of a query, s, [..., place], if each parent is where that way is shortest."""
    found: Floats = np.zeros(1)
    for u in arrival.dataflow.parents[v]:
        found = np.maximum(found, (lengths[u][..., :, None] + arrival.least_transfer_s[u]).min(axis=-2))
    return np.asarray(found)


def way_out_s(arrival: Arrival, u: int, rest: list[Floats]) -> Floats:
    """The longest way from the output of a query, s, [..., place]; `rest`: from each child's input on."""
    found: Floats = np.zeros(1)
    for v in arrival.dataflow.children[u]:
        found = np.maximum(found, (arrival.least_transfer_s[u] + rest[v][..., None, :]).min(axis=-1))
    return np.asarray(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The cost of a placement at least, s, by one of its choices, [query, place], and by two along an edge."""

    choice: Floats
    #: [place, place] for each edge, if its ends are on different resources.
    edge: dict[tuple[int, int], Floats]


def ways_of(arrival: Arrival, floor: Floor, may: Mask) -> Ways:
    """The longest way through each choice of `may`, if all else is where that way is shortest."""
    cost = np.where(may, least_latency_s(arrival) + least_burden_s(arrival, floor.slope.sum(axis=0)), np.inf)
    size, always = len(arrival.dataflow.queries), float(floor.change_s.sum())
    lengths: list[Floats] = [np.zeros(0)] * size
    rest: list[Floats] = [np.zeros(0)] * size
    choice = np.empty_like(cost)
    for v in arrival.dataflow.order:
        lengths[v] = way_in_s(arrival, v, lengths) + cost[v]
    for v in reversed(arrival.dataflow.order):
        out = way_out_s(arrival, v, rest)
        rest[v] = out + cost[v]
        choice[v] = lengths[v] + out
    return Ways(
        choice=np.maximum(choice, choice.min(axis=1).max()) + always,
        edge={
            (u, v): lengths[u][:, None] + arrival.transfer_s[u] + rest[v] + always for u, v in arrival.dataflow.edges
        },
    )
