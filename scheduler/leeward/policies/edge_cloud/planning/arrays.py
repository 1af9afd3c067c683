"""All active dataflows as flat arrays, the form that compiled code reads.

Queries are numbered through all dataflows, each dataflow's in topological order, so that one pass over a dataflow's
queries meets every parent before its children.  `-1` stands for none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.policies.edge_cloud.model.values import MODES
from leeward.policies.edge_cloud.planning.loads import Floats, Loads, Mask

Ints = NDArray[np.int64]


class Flows(NamedTuple):
    """The dataflows: [dataflow] start and size; [query] all others; parents and children as ranges of one list."""

    start: Ints
    size: Ints
    #: The dataflow of each query.
    owner: Ints
    source: Mask
    sink: Mask
    kind: Ints
    w_in: Floats
    event_bytes: Floats
    #: The parents of query q are `parent[parent_at[q] : parent_at[q + 1]]`; children likewise.
    parent_at: Ints
    parent: Ints
    child_at: Ints
    child: Ints


class Devices(NamedTuple):
    """The resources and the network; the names and units of `Loads`."""

    is_edge: Mask
    lam_s: Floats
    eps_mah: Floats
    battery_mah: Floats
    base_mah_s: Floats
    recharge_s: Floats
    #: pi(m): [class, m], the cloud first.
    pi: Floats
    site: Ints
    latency_s: Floats
    s_per_byte: Floats
    #: Position in MODES.
    mode: int


class State(NamedTuple):
    """A placement and the loads that follow from it; a kernel changes it in place."""

    place: Ints
    #: m, the number of queries.
    queries: Ints
    lam_sum_s: Floats
    #: 1 + pi(m) of each resource.
    over: Floats
    service_s: Floats
    drain_mah_s: Floats
    #: The queries on a resource as a list: the first, and the next and the one before of each query.
    first: Ints
    after: Ints
    before: Ints


class Scratch(NamedTuple):
    """Notes of kernels; nothing in it outlives a call of `polish`."""

    #: L_i (10), and the longest way from the output to the end, s: [query].
    length: Floats
    tail: Floats
    #: L_G (2), s: [dataflow].
    makespans: Floats
    #: [dataflow] the last mark, of those that are counted in `mark[0]`; and the dataflows that were found by it.
    seen: Ints
    found: Ints
    mark: Ints
    #: [site].
    way_in: Floats
    way_out: Floats
    service_s: Floats
    fastest: Ints
    #: [resource], s.
    score: Floats


def scratch_of(flows: Flows, machines: Devices) -> Scratch:
    """Room for these dataflows and resources."""
    queries, dataflows, sites = len(flows.owner), len(flows.start), len(machines.latency_s)
    return Scratch(
        length=np.zeros(queries),
        tail=np.zeros(queries),
        makespans=np.zeros(dataflows),
        seen=np.full(dataflows, -1),
        found=np.zeros(dataflows, dtype=np.int64),
        mark=np.zeros(1, dtype=np.int64),
        way_in=np.zeros(sites),
        way_out=np.zeros(sites),
        service_s=np.zeros(sites),
        fastest=np.zeros(sites, dtype=np.int64),
        score=np.zeros(len(machines.is_edge)),
    )


def devices(loads: Loads) -> Devices:
    """The parts of `loads` that no query changes."""
    return Devices(
        is_edge=loads.is_edge,
        lam_s=loads.lam_s,
        eps_mah=loads.eps_mah,
        battery_mah=loads.battery_mah,
        base_mah_s=loads.base_mah_s,
        recharge_s=loads.recharge_s,
        pi=loads.overheads.table,
        site=loads.site,
        latency_s=loads.latency_s,
        s_per_byte=loads.s_per_byte,
        mode=MODES.index(loads.fabric.mode),
    )


def state_of(loads: Loads, place: Ints) -> State:
    """A copy of the placement and of `loads` for a kernel; the lists of queries are for `fill_lists` to make."""
    none = np.full(len(place), -1)
    return State(
        place=place.copy(),
        queries=loads.count.copy(),
        lam_sum_s=loads.lam_sum_s.copy(),
        over=np.ones(len(loads.count)),
        service_s=loads.service_s.copy(),
        drain_mah_s=loads.drain_mah_s.copy(),
        first=np.full(len(loads.count), -1),
        after=none,
        before=none.copy(),
    )


class Growing:
    """An array that is appended to; it doubles when it is full."""

    def __init__(self, kind: Any) -> None:
        self._array = np.zeros(64, dtype=kind)
        self.size = 0

    def extend(self, values: Any) -> None:
        """Appends all of them."""
        wanted = self.size + len(values)
        if wanted > len(self._array):
            self._array = np.concatenate([self._array[: self.size], np.zeros(2 * wanted, dtype=self._array.dtype)])
        self._array[self.size : wanted] = values
        self.size = wanted

    @property
    def now(self) -> Any:
        """A view of the values."""
        return self._array[: self.size]
