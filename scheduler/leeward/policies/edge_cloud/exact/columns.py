"""The columns of the integer programme: a place, and the set of all queries of the dataflow on one resource there.

In a column the count is known, so are pi, the service time and the latencies, and C2 and C3 hold or do not: columns
that break them are left out, and interference needs no product of variables.  There are 2^n sets of n queries, which is
why the method is for small dataflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.exact.arrival import Arrival
from leeward.policies.edge_cloud.exact.bounds import Floor, least_burden_s, least_latency_s, way_in_s
from leeward.policies.edge_cloud.exact.others import (
    Other,
    latency_if_joined_s,
    least_latency_of_met_s,
    makespan_now_s,
    makespans_s,
)
from leeward.policies.edge_cloud.planning.loads import Floats, Mask

#: At most so many queries may have a place in common: 16384 columns for it.
MOST_ON_ONE = 14
#: Numbers that a step of the bounds holds at once.
AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Some columns; arrays are [column] unless their name says more."""

    place: np.ndarray
    #: Whether the query is in the set, [column, query].
    has: Mask
    #: The service time, s, and pi of the resource with this set.
    service_s: Floats
    overhead: Floats

    def __len__(self) -> int:
        return len(self.place)

    def where(self, keep: Mask) -> Columns:
        """Those that are marked."""
        return Columns(
            place=self.place[keep], has=self.has[keep], service_s=self.service_s[keep], overhead=self.overhead[keep]
        )


def no_columns(queries: int) -> Columns:
    """None yet."""
    none = np.zeros(0)
    return Columns(place=none.astype(int), has=np.zeros((0, queries), dtype=bool), service_s=none, overhead=none)


def joined(parts: Sequence[Columns]) -> Columns:
    """The columns of several places."""
    return Columns(
        place=np.concatenate([one.place for one in parts]),
        has=np.concatenate([one.has for one in parts]),
        service_s=np.concatenate([one.service_s for one in parts]),
        overhead=np.concatenate([one.overhead for one in parts]),
    )


def columns_on(arrival: Arrival, p: int, may: Mask) -> Columns:
    """The columns of one place that break no constraint there; `may`: [query, place]."""
    queries, places = np.flatnonzero(may[:, p]), arrival.places
    if len(queries) > MOST_ON_ONE:
        name = arrival.dataflow.name
        remedy = f"prove the optimum of dataflows of at most {MOST_ON_ONE} queries, or start from a better placement"
        raise FieldError("queries", len(arrival.dataflow.queries), f"{name} has too many for a proof", remedy=remedy)
    has = np.zeros((2 ** len(queries) - 1, may.shape[0]), dtype=bool)
    has[:, queries] = (np.arange(1, 2 ** len(queries))[:, None] >> np.arange(len(queries))) & 1
    # a query that may be nowhere else is in every set of its place, if that is one resource
    if len(places.members[p]) == 1:
        has = has[has[:, may[:, p] & (may.sum(axis=1) == 1)].all(axis=1)]
    overhead = places.pi[p, (has @ arrival.computes).astype(int)]
    service = (1 + overhead) * (places.lam_sum_s[p] + has @ arrival.lam_s[:, p])
    drain = places.drain_mah_s[p] + has @ arrival.drain_mah_s[:, p]
    keeps_up = np.maximum(places.fastest[p], (has * arrival.w_in).max(axis=1, initial=0.0)) * service < 1
    keeps_energy = places.recharge_s[p] * (places.base_mah_s[p] + drain) <= places.battery_mah[p]
    # sources count in no load: where nothing else comes, the place stays as it is
    fits = (keeps_up & keeps_energy) | ~(has & (arrival.computes > 0)).any(axis=1)
    return Columns(place=np.full(len(has), p), has=has, service_s=service, overhead=overhead).where(fits)


def own_latency_s(arrival: Arrival, columns: Columns) -> Floats:
    """Lambda of each query in each column, s, [column, query]; 0 for a query that is not in it."""
    inside = columns.has * arrival.computes
    if arrival.mode == "shared":
        return np.asarray(inside * columns.service_s[:, None])
    alone = inside * arrival.lam_s.T[columns.place]
    return np.asarray(alone * (1 + columns.overhead[:, None]) if arrival.mode == "overhead" else alone)


def columns_s(arrival: Arrival, others: tuple[Other, ...], floor: Floor, may: Mask, columns: Columns) -> Floats:
    """The cost of a placement with each of these columns of one place at least, s.

    The others with a query on that place are counted exactly, and those elsewhere by their slopes.
    """
    p = int(columns.place[0])
    here = np.array([any(one.place == p for one in other.met) for other in others], dtype=bool)
    least = least_latency_s(arrival) + least_burden_s(arrival, floor.slope[~here].sum(axis=0))
    own, cost = own_latency_s(arrival, columns), np.where(may, least, np.inf)
    rows = max(1, AT_ONCE // arrival.size**2)
    spans = [
        _span_s(arrival, p, cost, columns.has[at : at + rows], own[at : at + rows]) for at in range(0, len(own), rows)
    ]
    burden = sum(
        (burden_s(arrival, other, columns) for other, near in zip(others, here, strict=True) if near), start=0.0
    )
    return np.concatenate(spans) + burden + float(floor.change_s[~here].sum())


def _span_s(arrival: Arrival, p: int, cost_s: Floats, has: Mask, own_s: Floats) -> Floats:
    """The makespan of the dataflow at least, s, [column]."""
    lengths: list[Floats] = [np.zeros(0)] * has.shape[1]
    longest = np.zeros(len(has))
    for v in arrival.dataflow.order:
        cost = np.where(has[:, v, None], np.inf, cost_s[v])
        # a query that is not in the set may still be on another resource of the place
        alone = cost[:, p] if len(arrival.places.members[p]) > 1 else np.inf
        cost[:, p] = np.where(has[:, v], own_s[:, v], alone)
        lengths[v] = way_in_s(arrival, v, lengths) + cost
        longest = np.maximum(longest, lengths[v].min(axis=-1))
    return longest


def burden_s(arrival: Arrival, other: Other, columns: Columns) -> Floats:
    """By how much another dataflow takes longer with each of these columns of one place, s, at least."""
    p = int(columns.place[0])
    latencies: list[Floats | float] = [
        latency_if_joined_s(arrival, one, columns.service_s, columns.overhead)
        if one.place == p
        else least_latency_of_met_s(arrival, one)
        for one in other.met
    ]
    return makespans_s(other, latencies) - makespan_now_s(other)
