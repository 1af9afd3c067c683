"""Baseline: as many replicas of each component as its measured load needs, on the nodes that hold the fewest.

Replicas that are placed stay where they are, and one ends only when the load would have to grow by `slack` to need it
again. Without that, a load near a boundary makes a replica come and go, and with it all those that are dealt after it.
Components of one list of `leeward.apart` share no node.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping

from leeward.core.apart import barred, rivals_of, seated
from leeward.core.model import ClusterView, Component
from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan
from leeward.policies.baselines.settings import EvenSettings


class Even:
    """See the module."""

    Settings = EvenSettings

    def __init__(self, settings: EvenSettings) -> None:
        self._settings = settings

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        """Never looks at costs, delays or the price of change.

        Raises PlanError if components that are to be apart find no nodes.
        """
        nodes = {node.id: node.capacity for node in view.nodes if not node.draining}
        allowed = {c.id: [node for node in nodes if not c.pinned or node in c.pinned] for c in view.components}
        present = {} if view.first else present_deployment(view) or {}
        numbers = {c.id: self._replicas(view, c, sum(present.get(c.id, {}).values())) for c in view.components}
        wanted = _staying(view, present, allowed, nodes)
        used = sum(wanted.values(), Counter[str]())
        for name, number in numbers.items():
            for _ in range(wanted[name].total() - number):
                _end_one(wanted[name], used)
        rivals = rivals_of(view.apart)
        for name, number in numbers.items():  # replicas that go make room for others
            near = [node for node in allowed[name] if node not in barred(name, rivals, wanted)]
            while wanted[name].total() < number and (free := [node for node in near if used[node] < nodes[node]]):
                node = _emptiest(free, used)
                wanted[name][node] += 1
                used[node] += 1
        counts = {name: {node: n for node, n in sorted(mine.items()) if n} for name, mine in wanted.items()}
        return carry(view, counts, reason="replicas by load, dealt evenly")

    def _replicas(self, view: ClusterView, component: Component, present: int) -> int:
        """Replicas that its load needs; more of the `present` ones stay while they are needed with `slack`."""
        measured = view.measured.get(component.id)
        if component.source or measured is None or not measured.service_rate:
            return 1
        load = measured.arrival_rate * (1 + self._settings.headroom)
        need, lasting = (
            min(component.max_replicas, max(1, math.ceil(rate / (self._settings.target * measured.service_rate))))
            for rate in (load, load * (1 + self._settings.slack))
        )
        return max(need, min(present, lasting))


def _staying(
    view: ClusterView, present: Mapping[str, Mapping[str, int]], allowed: Mapping[str, Collection[str]],
    nodes: Mapping[str, int],
) -> dict[str, Counter[str]]:  # fmt: skip
    """The present replicas that may stay where they are; of components that are to be apart at least one each."""
    kept: dict[str, Counter[str]] = {}
    used: Counter[str] = Counter()
    for component in view.components:
        here = [(node, n) for node, n in present.get(component.id, {}).items() if node in allowed[component.id]]
        kept[component.id] = Counter({node: max(0, min(n, nodes[node] - used[node])) for node, n in here})
        used.update(kept[component.id])
    return {name: Counter(counts) for name, counts in seated(view.apart, kept, allowed, nodes).items()}


def _end_one(counts: Counter[str], used: Counter[str]) -> None:
    """On the node that holds the most of all replicas; ties by id."""
    node = min((node for node, n in counts.items() if n), key=lambda node: (-used[node], node))
    counts[node] -= 1
    used[node] -= 1


def _emptiest(nodes: Collection[str], used: Counter[str]) -> str:
    """The one that holds the fewest of all replicas; ties by id."""
    return min(nodes, key=lambda node: (used[node], node))
