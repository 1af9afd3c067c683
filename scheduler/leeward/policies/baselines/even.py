"""Baseline: as many replicas of each component as its measured load needs, dealt round-robin over the nodes."""

from __future__ import annotations

import math
import random

from leeward.core.model import ClusterView, Component
from leeward.core.placing import carry
from leeward.core.plan import Plan
from leeward.policies.baselines.settings import EvenSettings


class Even:
    """See the module."""

    Settings = EvenSettings

    def __init__(self, settings: EvenSettings) -> None:
        self._settings = settings

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        """Never looks at costs, delays or the price of change."""
        usable = [node for node in view.nodes if not node.draining]
        room = {node.id: node.capacity for node in usable}
        wanted: dict[str, dict[str, int]] = {}
        turn = 0
        for component in view.components:
            allowed = [node.id for node in usable if not component.pinned or node.id in component.pinned]
            counts: dict[str, int] = {}
            for _ in range(self._replicas(view, component)):
                free = [node for node in allowed if room[node] > 0]
                if not free:
                    break
                node = free[turn % len(free)]
                turn += 1
                room[node] -= 1
                counts[node] = counts.get(node, 0) + 1
            wanted[component.id] = counts
        return carry(view, wanted, reason="replicas by load, dealt evenly")

    def _replicas(self, view: ClusterView, component: Component) -> int:
        measured = view.measured.get(component.id)
        if component.source or measured is None or not measured.service_rate:
            return 1
        load = measured.arrival_rate * (1 + self._settings.headroom)
        return min(component.max_replicas, max(1, math.ceil(load / (self._settings.target * measured.service_rate))))
