"""Edge-only and Cloud-only over time: the paper's weak lower bounds of the dataflows that a run had active."""

from __future__ import annotations

import math

from leeward.core.experiment import Played, Setting
from leeward.policies.edge_cloud.facts import dataflow_of, fabric_of
from leeward.policies.edge_cloud.methods.unbounded import Where, bound_s
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.generated import Generated


def bounds_s(setting: Setting, played: Played, where: Where) -> list[float]:
    """The sum of the bounds of the active dataflows in each interval, s."""
    made = Generated(nodes=setting.nodes, seed=setting.seed)
    numbers = {node.id: number for number, node in enumerate(made.nodes)}
    fabric = fabric_of(made.nodes, made.network, EdgeCloudSettings())
    active: dict[str, float] = {}
    found = []
    for row in played.intervals:
        for name in row.departed:
            active.pop(name, None)
        for name in (name for name in row.arrived if name not in row.refused):
            one = played.topologies[name]
            active[name] = bound_s(fabric, dataflow_of(name, one.components, one.streams, numbers), where)
        found.append(math.fsum(active.values()))
    return found
