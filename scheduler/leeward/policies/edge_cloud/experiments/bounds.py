"""Edge-only and Cloud-only over time: the paper's weak lower bounds of the dataflows that a run had active."""

from __future__ import annotations

import math

from leeward.core.experiment import Played, Setting
from leeward.policies.edge_cloud.methods.unbounded import Where, bound_s
from leeward.policies.edge_cloud.workload.generated import Generated


def bounds_s(setting: Setting, played: Played, where: Where) -> list[float]:
    """The sum of the bounds of the active dataflows in each interval, s."""
    made = Generated(nodes=setting.nodes, seed=setting.seed)
    active: dict[str, float] = {}
    found = []
    for row in played.intervals:
        for name in row.departed:
            active.pop(name, None)
        for name in (name for name in row.arrived if name not in row.refused):
            active[name] = bound_s(made.fabric, made.dataflow(name, played.topologies[name]), where)
        found.append(math.fsum(active.values()))
    return found
