"""A workload of chains, and a joint policy that counts components, both simple enough to know their figures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leeward.core.fields import FieldError
from leeward.core.model import ClusterView, Component, Node
from leeward.core.network import NIMBUS, Network, NetworkNode, Site
from leeward.core.options import check, setting
from leeward.core.placing import carry
from leeward.core.plan import Plan, Refusal
from leeward.core.workload import Arriving, Figures, Running

SIZES = (1, 2, 2, 3, 5, 8)
#: Components on a node, more of which are a violation.
ROOM = 3


class Chains:
    """Each application is a chain, its first component on a node that the arrival draws."""

    sizes: Sequence[int] = SIZES

    def __init__(self, *, nodes: int, seed: int) -> None:
        if nodes < 2:
            raise FieldError("nodes", nodes, "a chain needs two", remedy="give 2 or more")
        self.nodes = tuple(Node(id=f"n{number:03}", ports=(6700, 6701), capacity=1000) for number in range(nodes))
        homes = (
            *(NetworkNode(id=node.id, site="here") for node in self.nodes),
            NetworkNode(id="nimbus", site="here", role=NIMBUS),
        )
        self.network = Network(sites=(Site(id="here"),), nodes=homes)

    def arriving(self, entry: int, name: str, rng: random.Random) -> Arriving:
        ids = [f"c{number}" for number in range(self.sizes[entry])]
        pins = [(rng.choice(self.nodes).id,), *[()] * (len(ids) - 1)]
        return Arriving(
            components=tuple(
                Component(id=id, tasks=(at + 1,), stateful=False, source=at == 0, max_replicas=1, pinned=pin)
                for at, (id, pin) in enumerate(zip(ids, pins, strict=True))
            ),
            streams=tuple(pairwise(ids)),
        )

    def measure(self, running: Mapping[str, Running]) -> Figures:
        """A hop between two nodes takes 1 s, and each neighbour on a node adds 0.01 s to a component."""
        load = Counter(node for one in running.values() for node in one.places.values())
        hops = sum(one.places[a] != one.places[b] for one in running.values() for a, b in one.arriving.streams)
        beside = sum(count * (count - 1) for count in load.values())
        return Figures(makespan_s=hops + 0.01 * beside, violations=sum(count > ROOM for count in load.values()))

    def stabilization_s(self, before: Mapping[str, Running], after: Mapping[str, Running]) -> float:
        """Half a second for each move."""
        return 0.5 * sum(
            before[name].places[id] != node
            for name, one in after.items()
            if name in before
            for id, node in one.places.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSettings:
    """See Least."""

    room: int = setting(ROOM, "", "components on a node at most")
    restless: bool = setting(False, "", "each arrival and departure moves a component of another topology")
    nervous: bool = setting(False, "", "the same of each question")

    def __post_init__(self) -> None:
        check(self, where="least.")


class Least:
    """Each component goes to the node with the fewest, as this policy has counted them; full nodes refuse."""

    Settings = LeastSettings

    def __init__(self, settings: LeastSettings) -> None:
        self._settings = settings
        self._places: dict[str, dict[str, str]] = {}
        self._load: Counter[str] = Counter()

    def decide_all(
        self, views: Sequence[ClusterView], *, now: float, rng: random.Random
    ) -> Mapping[str, Plan | Refusal]:
        gone = self._places.keys() - {view.topology for view in views}
        for name in gone:
            self._load.subtract(self._places.pop(name).values())
        answers: dict[str, Plan | Refusal] = {}
        running = [view for view in views if not view.first]
        for view in running:
            if view.topology not in self._places:
                self._put(view.topology, {c.id: view.assignment[c.tasks[0]].node for c in view.components})
        moves = self._settings.nervous or (self._settings.restless and (gone or len(running) < len(views)))
        if moves and running:
            answers |= self._move(rng.choice(running), rng)
        return answers | {view.topology: self._arrive(view) for view in views if view.first}

    def _arrive(self, view: ClusterView) -> Plan | Refusal:
        places: dict[str, str] = {}
        load = self._load.copy()
        for component in view.components:
            node = component.pinned[0] if component.pinned else min(view.nodes, key=lambda n: (load[n.id], n.id)).id
            load[node] += 1
            places[component.id] = node
            if load[node] > self._settings.room:
                return Refusal(reason=f"{component.id}: {node} is full")
        self._put(view.topology, places)
        return carry(view, {id: {node: 1} for id, node in places.items()})

    def _move(self, view: ClusterView, rng: random.Random) -> dict[str, Plan]:
        last = view.components[-1]
        if last.pinned:
            return {}
        places = {**self._places[view.topology], last.id: rng.choice(view.nodes).id}
        self._load.subtract(self._places[view.topology].values())
        self._put(view.topology, places)
        return {view.topology: carry(view, {id: {node: 1} for id, node in places.items()})}

    def _put(self, name: str, places: dict[str, str]) -> None:
        self._places[name] = places
        self._load.update(places.values())
