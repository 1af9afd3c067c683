"""The board of all active dataflows: it knows where each query runs, and how long each dataflow's paths are.

A query that comes or goes changes the lengths of the dataflows that share its resource, and no others.  These are
marked, and their lengths follow when somebody asks for them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import rates
from leeward.policies.edge_cloud.model.instance import check_on_fabric
from leeward.policies.edge_cloud.planning.loads import Floats, Loads, Mask
from leeward.policies.edge_cloud.planning.packed import Packed


@dataclass(slots=True)
class Active:
    """A dataflow on the board."""

    dataflow: Dataflow
    #: omega_in of each query, events/s.
    w_in: tuple[float, ...]
    #: The resource of each query; None: not placed.
    place: list[int | None]
    #: L_i (10) of each query, s; NaN behind a query that is not placed.
    lengths: list[float]
    #: Whether the lengths hold.
    fresh: bool = False
    #: Non-source queries on each resource.
    on: Counter[int] = field(default_factory=Counter)


class Board:
    """Dataflows, the resource of each of their queries, and what follows from them."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.loads = Loads(fabric)
        self.active: dict[str, Active] = {}
        self.packed = Packed()
        #: The dataflows with queries on each resource, in the order in which they came.
        self._sharing: list[dict[str, None]] = [{} for _ in fabric.resources]
        self._clouds = ~self.loads.is_edge

    def add(self, dataflow: Dataflow) -> None:
        """A dataflow arrives; none of its queries is placed.  Raises `FieldError` if it does not fit the fabric."""
        if dataflow.name in self.active:
            remedy = "give it another name, or remove the other first"
            raise FieldError("name", dataflow.name, "another dataflow has this name", remedy=remedy)
        check_on_fabric(self.fabric, dataflow)
        size = len(dataflow.queries)
        w_in, _ = rates(dataflow)
        self.active[dataflow.name] = Active(dataflow, w_in, [None] * size, [math.nan] * size)
        self.packed.add(dataflow, w_in)

    def remove(self, name: str) -> None:
        """A dataflow departs, and frees its resources."""
        for v, r in enumerate(self.active[name].place):
            if r is not None:
                self.take(name, v)
        del self.active[name]
        self.packed.remove(name)

    def place(self, name: str, v: int, r: int) -> None:
        """A query that is not placed comes to r, whatever the constraints say."""
        one = self.active[name]
        assert one.place[v] is None, f"query {v} of {name} is placed already"
        one.place[v] = r
        one.fresh = False
        self.packed.put(name, v, r)
        query = one.dataflow.queries[v]
        if query.kind == "source":
            return
        self.loads.place((name, v), query.type, one.w_in[v], r)
        one.on[r] += 1
        self._sharing[r][name] = None
        self._touch(r)

    def take(self, name: str, v: int) -> int:
        """A query leaves its resource; the resource."""
        one = self.active[name]
        r = one.place[v]
        assert r is not None, f"query {v} of {name} is not placed"
        one.place[v] = None
        one.fresh = False
        self.packed.put(name, v, -1)
        if one.dataflow.queries[v].kind == "source":
            return r
        self.loads.remove((name, v), r)
        self._touch(r)
        one.on[r] -= 1
        if not one.on[r]:
            del one.on[r], self._sharing[r][name]
        return r

    def _touch(self, r: int) -> None:
        for name in self._sharing[r]:
            self.active[name].fresh = False

    def lengths(self, name: str) -> list[float]:
        """L_i (10) of each query, s; NaN for a query that is not placed, or behind one."""
        one = self.active[name]
        if not one.fresh:
            one.lengths = self._measure(one)
            one.fresh = True
        return one.lengths

    def lengths_beside(self, name: str, kind: int, r: int) -> list[float]:
        """The same if one more query of this type came to r; that query is on no path of the dataflow yet."""
        return self._measure(self.active[name], joined=(kind, r))

    def _measure(self, one: Active, joined: tuple[int, int] | None = None) -> list[float]:
        queries, place = one.dataflow.queries, one.place
        found = [math.nan] * len(queries)
        for v in one.dataflow.order:
            r = place[v]
            if r is None:
                continue
            arrival = 0.0
            for u in one.dataflow.parents[v]:
                s = place[u]
                if s is None or math.isnan(found[u]):
                    arrival = math.nan
                    break
                arrival = max(arrival, found[u] + self.loads.transfer_s(s, r, queries[u].event_bytes))
            if queries[v].kind == "source":
                own = 0.0
            else:
                beside = joined[0] if joined is not None and joined[1] == r else None
                own = self.loads.latency_on(queries[v].type, r, beside)
            found[v] = arrival + own
        return found

    def makespan(self, name: str) -> float:
        """L_G (2), s; NaN while a query is not placed."""
        found = self.lengths(name)
        return math.nan if any(math.isnan(length) for length in found) else max(found)

    def total(self) -> float:
        """The objective (8), s."""
        return math.fsum(self.makespan(name) for name in self.active)

    def arrivals(self, name: str, v: int) -> Floats:
        """The longest way to the input of a query, s, by the resource that it would be on; its parents are placed."""
        one, lengths = self.active[name], self.lengths(name)
        found = np.zeros(len(self.fabric.resources))
        for u in one.dataflow.parents[v]:
            r = one.place[u]
            assert r is not None, f"query {u} of {name} is not placed"
            np.maximum(found, lengths[u] + self.loads.transfer_from(r, one.dataflow.queries[u].event_bytes), out=found)
        return found

    def choices(self, name: str, v: int) -> tuple[Floats, Mask]:
        """For a query that is not placed: its critical length on each resource, s, and where it breaks no constraint.

        The lengths of the parents are the present ones: that the query slows those of them that it would join is
        the penalty of TopSet/P.
        """
        one = self.active[name]
        query = one.dataflow.queries[v]
        if query.kind == "source":
            mask = self.loads.is_edge.copy()
            if query.pin is not None:
                mask[:] = False
                mask[query.pin] = True
            return np.zeros(len(mask)), mask
        service = self.loads.service_with(query.type)
        mask = self.loads.allowed(query.type, one.w_in[v], service)
        if query.kind == "sink":
            mask &= self._clouds
        return self.arrivals(name, v) + self.loads.latency_with(query.type, service), mask
