"""The workloads that the simulator finds by name: a generated cluster, its catalogue, and the model's figures.

The figures come straight from the formulas (`model/evaluate.py`), not from the arrays that the policies plan with.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from leeward.core.model import Node
from leeward.core.network import Network
from leeward.core.workload import Arriving, Figures, Running
from leeward.policies.edge_cloud.facts import components_of, dataflow_of, fabric_of
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.evaluate import change, evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Placement
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import at_sensors, catalogue
from leeward.policies.edge_cloud.workload.setup import REF, TH, Flavour, cluster


class Generated:
    """39 dataflows on a cluster of `nodes` resources, 4 % of them machines of the cloud."""

    flavour: Flavour = REF

    def __init__(self, *, nodes: int, seed: int) -> None:
        """Raises `FieldError` for fewer than 2 nodes."""
        rng = random.Random(seed)
        self.nodes: tuple[Node, ...]
        self.network: Network | None
        self.nodes, self.network = cluster(nodes, self.flavour, rng)
        self._catalogue = catalogue(self.flavour, rng)
        self._names = tuple(node.id for node in self.nodes)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self.fabric = fabric_of(self.nodes, self.network, EdgeCloudSettings())
        #: Topology -> its newest form and dataflow, so that a dataflow is not made anew in every interval.
        self._flows: dict[str, tuple[Arriving, Dataflow]] = {}

    @property
    def sizes(self) -> Sequence[int]:
        """Queries of each dataflow of the catalogue."""
        return tuple(len(dataflow.queries) for dataflow in self._catalogue)

    def arriving(self, entry: int, name: str, rng: random.Random) -> Arriving:
        """A dataflow of the catalogue, whose sensors are on random edges."""
        dataflow = at_sensors(self._catalogue[entry], name, len(self.fabric.edges), rng)
        components = components_of(dataflow, self._names)
        ids = [component.id for component in components]
        return Arriving(components=components, streams=tuple((ids[u], ids[v]) for u, v in sorted(dataflow.edges)))

    def measure(self, running: Mapping[str, Running]) -> Figures:
        """The sum of the makespans (8), and the broken constraints, of all dataflows that run."""
        found = evaluate(self._instance(running), [self._placement(one) for one in running.values()])
        return Figures(makespan_s=found.total, violations=len(found.violations))

    def stabilization_s(self, before: Mapping[str, Running], after: Mapping[str, Running]) -> float:
        """The total stabilization time (7) of the queries that moved, with the service times after all moves."""
        old = [self._placement(before.get(name, one)) for name, one in after.items()]
        new = [self._placement(one) for one in after.values()]
        return change(self._instance(after), old, new).stabilization_shared

    def _instance(self, running: Mapping[str, Running]) -> Instance:
        self._flows = {name: self._flow(name, one.arriving) for name, one in running.items()}
        return Instance(fabric=self.fabric, dataflows=tuple(dataflow for _, dataflow in self._flows.values()))

    def _flow(self, name: str, arriving: Arriving) -> tuple[Arriving, Dataflow]:
        known = self._flows.get(name)
        if known is not None and known[0] is arriving:
            return known
        return arriving, self.dataflow(name, arriving)

    def dataflow(self, name: str, arriving: Arriving) -> Dataflow:
        """The dataflow of a topology that came."""
        return dataflow_of(name, arriving.components, arriving.streams, self._numbers)

    def placement(self, arriving: Arriving, places: Mapping[str, str]) -> Placement:
        """The resource of each query; `places`: component -> node."""
        return tuple(self._numbers[places[component.id]] for component in arriving.components)

    def _placement(self, running: Running) -> Placement:
        return self.placement(running.arriving, running.places)


class TransferHeavy(Generated):
    """Slower links to the cloud, and larger events."""

    flavour = TH
