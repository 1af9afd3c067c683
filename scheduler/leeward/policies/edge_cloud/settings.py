"""Settings of the policy for edge and cloud; the paper's symbols are those of `model/values.py`."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.options import check, setting
from leeward.policies.edge_cloud.model.values import MODES

METHODS = ("polished", "topset-p", "topset", "gai", "gag", "edge-only", "cloud-only")
#: Baselines that ask no constraint.
UNBOUNDED = ("edge-only", "cloud-only")
REBALANCES = ("none", "vertex", "edge", "vertex-edge")


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCloudSettings:
    """See the module. Construction checks; raises ConfigError."""

    method: str = setting("polished", "", "how an arriving dataflow is placed", choices=METHODS)
    rebalance: str = setting("none", "", "pass over all dataflows after each arrival and departure", choices=REBALANCES)
    mode: str = setting("shared", "", "how a query's latency follows from the queries beside it", choices=MODES)
    pi_edge_step: float = setting(0.05, "", "overhead pi of each further query on an edge")
    pi_edge_most: float = setting(0.5, "", "most overhead on an edge")
    pi_cloud_step: float = setting(0.03, "", "overhead pi of each further query on a machine of the cloud")
    pi_cloud_most: float = setting(0.3, "", "most overhead on a machine of the cloud")

    def __post_init__(self) -> None:
        check(self, where="edge-cloud.")
