"""The board of all active dataflows: it knows where each query runs, and how long each dataflow's paths are.

A query that comes or goes changes the lengths of the dataflows that share its resource, and no others.  These are
noted, and their lengths follow when somebody asks for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import rates
from leeward.policies.edge_cloud.model.instance import check_on_fabric
from leeward.policies.edge_cloud.planning.active import Active, Ways
from leeward.policies.edge_cloud.planning.limits import Limits
from leeward.policies.edge_cloud.planning.loads import Floats, Loads
from leeward.policies.edge_cloud.planning.packed import Packed


class Board:
    """Dataflows, the resource of each of their queries, and what follows from them."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.loads = Loads(fabric)
        self.active: dict[str, Active] = {}
        #: Of the dataflows that have some.
        self.limits: dict[str, Limits] = {}
        self.packed = Packed()
        #: The dataflows with queries on each resource, in the order in which they came, and the weight that the
        #: critical path of each had there when it was last measured.
        self.sharing: list[dict[str, float]] = [{} for _ in fabric.resources]
        #: By how much the total (8) grows at least for each unit that the factor of a resource grows by.
        self.slope: Floats = np.zeros(len(fabric.resources))
        #: The dataflows whose ways are to be measured.
        self._stale: dict[str, None] = {}

    def add(self, dataflow: Dataflow) -> None:
        """A dataflow arrives; none of its queries is placed.  Raises `FieldError` if it does not fit the fabric."""
        if dataflow.name in self.active:
            remedy = "give it another name, or remove the other first"
            raise FieldError("name", dataflow.name, "another dataflow has this name", remedy=remedy)
        check_on_fabric(self.fabric, dataflow)
        size = len(dataflow.queries)
        w_in, _ = rates(dataflow)
        self.active[dataflow.name] = Active(
            dataflow=dataflow,
            w_in=w_in,
            place=[None] * size,
            weight=[0.0] * size,
            hops=[[math.nan] * len(parents) for parents in dataflow.parents],
        )
        self.packed.add(dataflow, w_in)
        self._touch(dataflow.name)

    def remove(self, name: str) -> None:
        """A dataflow departs, and frees its resources."""
        for v, r in enumerate(self.active[name].place):
            if r is not None:
                self.take(name, v)
        del self.active[name]
        self.packed.remove(name)
        self._stale.pop(name, None)

    def place(self, name: str, v: int, r: int) -> None:
        """A query that is not placed comes to r, whatever the constraints say."""
        one = self.active[name]
        assert one.place[v] is None, f"query {v} of {name} is placed already"
        one.place[v] = r
        self.packed.put(name, v, r)
        self._join(one, v, r)
        self._touch(name)
        query = one.dataflow.queries[v]
        if query.kind == "source":
            return
        one.weight[v] = self.loads.weight(query.type, r)
        self.loads.place((name, v), query.type, one.w_in[v], r)
        one.on[r] += 1
        self.sharing[r].setdefault(name, 0.0)
        self._touch_all(r)

    def take(self, name: str, v: int) -> int:
        """A query leaves its resource; the resource."""
        one = self.active[name]
        r = one.place[v]
        assert r is not None, f"query {v} of {name} is not placed"
        one.place[v] = None
        self.packed.put(name, v, -1)
        self._join(one, v, None)
        self._touch(name)
        if one.dataflow.queries[v].kind == "source":
            return r
        self._forget(name)
        self.loads.remove((name, v), r)
        self._touch_all(r)
        one.on[r] -= 1
        if not one.on[r]:
            del one.on[r], self.sharing[r][name]
        return r

    def enter(self, dataflow: Dataflow, placement: Sequence[int]) -> None:
        """A dataflow arrives with a resource for each query, whatever the constraints say; errors as of `add`."""
        self.add(dataflow)
        for v, r in enumerate(placement):
            self.place(dataflow.name, v, r)

    def rearrange(self, name: str, placement: Sequence[int]) -> None:
        """The queries of a dataflow go to these resources; those that are to stay do not leave."""
        place = self.active[name].place
        moving = [v for v, r in enumerate(placement) if place[v] != r]
        for v in moving:
            if place[v] is not None:
                self.take(name, v)
        for v in moving:
            self.place(name, v, placement[v])

    def move(self, name: str, v: int, r: int) -> None:
        """A query goes from its resource to r, whatever the constraints say."""
        self.take(name, v)
        self.place(name, v, r)

    def placement(self, name: str) -> tuple[int, ...]:
        """The resource of each query of a dataflow that is placed as a whole."""
        found = tuple(r for r in self.active[name].place if r is not None)
        assert len(found) == len(self.active[name].place), f"a query of {name} is not placed"
        return found

    def _join(self, one: Active, v: int, r: int | None) -> None:
        """The times of transfer to and from a query that came to r, or left."""
        flow = one.dataflow
        for position, u in enumerate(flow.parents[v]):
            one.hops[v][position] = self._hop(one.place[u], r, flow.queries[u].event_bytes)
        for w in flow.children[v]:
            position = flow.parents[w].index(v)
            one.hops[w][position] = self._hop(r, one.place[w], flow.queries[v].event_bytes)

    def _hop(self, r: int | None, s: int | None, event_bytes: float) -> float:
        return math.nan if r is None or s is None else self.loads.transfer_s(r, s, event_bytes)

    def _touch(self, name: str) -> None:
        self.active[name].lengths = None
        self._stale[name] = None

    def _touch_all(self, r: int) -> None:
        for name in self.sharing[r]:
            self._touch(name)

    def lengths(self, name: str) -> list[float]:
        """L_i (10) of each query, s; NaN for a query that is not placed, or behind one."""
        one = self.active[name]
        if one.lengths is None:
            one.lengths = one.measure(self.loads.factor)
        return one.lengths

    def makespan(self, name: str) -> float:
        """L_G (2), s; NaN while a query is not placed."""
        ways = self.active[name].ways
        if ways is not None and name not in self._stale:
            return ways.makespan_s
        found = self.lengths(name)
        return math.nan if any(map(math.isnan, found)) else max(found)

    def total(self) -> float:
        """The objective (8), s."""
        return math.fsum(self.makespan(name) for name in self.active)

    def ways(self, name: str) -> Ways:
        """The longest ways through a dataflow; it is placed as a whole."""
        self.refresh()
        ways = self.active[name].ways
        assert ways is not None
        return ways

    def refresh(self) -> None:
        """Measures the ways, and so the slopes, of the dataflows that changed; all are placed as a whole."""
        for name in self._stale:
            one = self.active[name]
            self._forget(name)
            one.ways = one.find_ways(self.lengths(name), self.loads.factor)
            for r, weight in one.ways.bears.items():
                self._bear(name, r, weight)
        self._stale.clear()

    def _forget(self, name: str) -> None:
        """The ways of a dataflow no longer hold."""
        one = self.active[name]
        if one.ways is not None:
            for r in one.ways.bears:
                self._bear(name, r, 0.0)
            one.ways = None

    def _bear(self, name: str, r: int, weight: float) -> None:
        self.sharing[r][name] = weight
        # summed anew: a sum that is only added to and subtracted from would drift
        self.slope[r] = sum(self.sharing[r].values())
