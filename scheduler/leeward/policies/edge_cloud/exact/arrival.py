"""One arriving dataflow on a board that is fixed otherwise, as arrays: places, latencies and constraints.

A place is a resource, or several that this dataflow cannot tell apart.  Resources of one site are such if nothing runs
on them, no source of the dataflow is pinned there, and battery, lambda and epsilon are equal: exchanging two of them in
a placement changes neither constraint nor length.

pi may be any table, also one that falls: a bound that has to hold whatever joins later uses the least overhead of all
greater numbers of queries (`pi_low`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import overhead, rates
from leeward.policies.edge_cloud.model.values import Mode
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats, Loads, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places, and what runs there already; arrays are [place] unless their name says more."""

    #: The resources of each place, ascending.
    members: tuple[tuple[int, ...], ...]
    #: The site in the network.
    site: NDArray[np.int64]
    is_edge: Mask
    #: The service time apart from the overhead, s; the fastest input, events/s; the drain, mAh/s.
    lam_sum_s: Floats
    fastest: Floats
    drain_mah_s: Floats
    #: C, mAh, kappa, mAh/s, and tau, s, of C3; a cloud machine's battery is infinite.
    battery_mah: Floats
    base_mah_s: Floats
    recharge_s: Floats
    #: pi if k queries of the arriving dataflow come, [place, k], and the least of k and more.
    pi: Floats
    pi_low: Floats

    def first(self) -> list[int]:
        """One resource of each place."""
        return [members[0] for members in self.members]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The dataflow and its places."""

    dataflow: Dataflow
    mode: Mode
    places: Places
    #: lambda, s, and omega_in epsilon, mAh/s, of each query on each place, [query, place]; 0 for sources.
    lam_s: Floats
    drain_mah_s: Floats
    #: omega_in, events/s, and 1 for those that compute, 0 for sources, [query].
    w_in: Floats
    computes: Floats
    #: Whether C1 lets the query be there, [query, place].
    may: Mask
    #: l + 8 delta / beta, s, of each query's output between different resources, [query, place, place]; the diagonal
    #: is that between two members of a place.
    transfer_s: Floats
    #: The same at least, as two queries on one place may be on one resource: the diagonal is 0.
    least_transfer_s: Floats

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.places.members)


def arrival_of(board: Board, dataflow: Dataflow) -> Arrival:
    """The arrays of a dataflow that is not on the board."""
    fabric, loads = board.fabric, board.loads
    places = _places(fabric, loads, dataflow)
    first = places.first()
    w_in = np.array(rates(dataflow)[0])
    computes = np.array([float(query.kind != "source") for query in dataflow.queries])
    types = [query.type for query in dataflow.queries]
    alone = np.ix_(types, first)
    transfer = np.array([_transfer(loads, places, query.event_bytes) for query in dataflow.queries])
    return Arrival(
        dataflow=dataflow,
        mode=fabric.mode,
        places=places,
        lam_s=loads.lam_s[alone] * computes[:, None],
        drain_mah_s=loads.eps_mah[alone] * (w_in * computes)[:, None],
        w_in=w_in,
        computes=computes,
        may=np.array([[_may(dataflow, v, places, p) for p in range(len(first))] for v in range(len(types))]),
        transfer_s=transfer,
        least_transfer_s=transfer * ~np.eye(len(first), dtype=bool),
    )


def only(arrival: Arrival, keep: Mask) -> Arrival:
    """The same with these places alone, [place]."""
    at = np.flatnonzero(keep)
    per_place = {
        field.name: getattr(arrival.places, field.name)[at] for field in fields(Places) if field.name != "members"
    }
    across = np.ix_(np.arange(len(arrival.w_in)), at, at)
    return replace(
        arrival,
        places=Places(members=tuple(arrival.places.members[p] for p in at), **per_place),
        lam_s=arrival.lam_s[:, at],
        drain_mah_s=arrival.drain_mah_s[:, at],
        may=arrival.may[:, at],
        transfer_s=arrival.transfer_s[across],
        least_transfer_s=arrival.least_transfer_s[across],
    )


def _may(dataflow: Dataflow, v: int, places: Places, p: int) -> bool:
    """C1."""
    query = dataflow.queries[v]
    if query.kind == "source":
        return bool(places.is_edge[p]) if query.pin is None else query.pin in places.members[p]
    return query.kind != "sink" or not places.is_edge[p]


def _transfer(loads: Loads, places: Places, event_bytes: float) -> Floats:
    first = places.first()
    found = np.array([loads.transfer_from(r, event_bytes)[first] for r in first])
    for p, members in enumerate(places.members):
        if len(members) > 1:
            found[p, p] = loads.transfer_s(members[0], members[1], event_bytes)
    return found


def _places(fabric: Fabric, loads: Loads, dataflow: Dataflow) -> Places:
    groups: dict[object, list[int]] = {}
    pins = {query.pin for query in dataflow.queries}
    kinds = sorted({query.type for query in dataflow.queries if query.kind != "source"})
    for r, resource in enumerate(fabric.resources):
        alike: object = r
        if loads.count[r] == 0 and r not in pins:
            columns = loads.lam_s[kinds, r].tolist(), loads.eps_mah[kinds, r].tolist()
            alike = (resource, fabric.network.site[r], *map(tuple, columns))
        groups.setdefault(alike, []).append(r)
    members = tuple(map(tuple, groups.values()))
    first = [one[0] for one in members]
    more = len(dataflow.queries) + 1
    pi = np.array([[overhead(fabric, r, int(loads.count[r]) + k) for k in range(more)] for r in first])
    return Places(
        members=members,
        site=np.array([fabric.network.site[r] for r in first]),
        is_edge=loads.is_edge[first],
        lam_sum_s=loads.lam_sum_s[first],
        fastest=loads.fastest[first],
        drain_mah_s=loads.drain_mah_s[first],
        battery_mah=loads.battery_mah[first],
        base_mah_s=loads.base_mah_s[first],
        recharge_s=loads.recharge_s[first],
        pi=pi,
        pi_low=np.minimum.accumulate(pi[:, ::-1], axis=1)[:, ::-1],
    )
