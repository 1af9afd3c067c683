"""A whole Storm cluster on one machine: ZooKeeper, Nimbus, supervisors, Redis; and the topology jar.

Nothing here is needed on a real cluster. `LocalCluster` starts and ends the processes, `build_jar` makes
what `sparse submit -j` uploads, `submit` does both for a topology file.
"""

from leeward.local.cluster import LocalCluster, end_cluster
from leeward.local.layout import ClusterSpec, Layout, Node, layout_of
from leeward.local.submit import submit_topology
from leeward.local.topology_jar import build_jar

__all__ = [
    "ClusterSpec",
    "Layout",
    "LocalCluster",
    "Node",
    "build_jar",
    "end_cluster",
    "layout_of",
    "submit_topology",
]
