"""The event `cluster_seen`: the parts of a view that a report needs beside the measurements. Pure."""

from __future__ import annotations

from dataclasses import replace

from leeward.control.snapshot import ClusterSnapshot
from leeward.core.model import ClusterView

#: Each move of a topology changes the free slots of all others, and fifty topologies would list a thousand nodes for
#: each of fifty moves. Free slots are told this late, s; nodes that come, go or drain are told at once.
SLOTS_LATE_S = 5.0


def structure_fields(view: ClusterView) -> dict[str, object]:
    """Components, streams and nodes, as `reading` reads them."""
    return {
        "components": [
            {
                "id": component.id, "tasks": len(component.tasks), "max_replicas": component.max_replicas,
                "source": component.source, "stateful": component.stateful, "pinned": list(component.pinned),
            }
            for component in view.components
        ],
        "streams": [list(stream) for stream in view.streams],
        "nodes": [
            {"id": node.id, "slots": len(node.ports), "capacity": node.capacity, "draining": node.draining}
            for node in view.nodes
        ],
    }  # fmt: skip


class News:
    """The fields of `cluster_seen` when they have changed."""

    def __init__(self) -> None:
        self._steady: ClusterSnapshot | None = None
        self._since = 0.0  # when its free slots were taken over
        self._view: ClusterView | None = None  # told last

    def steady(self, cluster: ClusterSnapshot, now: float) -> ClusterSnapshot:
        """`cluster` with the free slots of up to `SLOTS_LATE_S` ago, unless a node has come or gone."""
        kept = self._steady
        if kept is None or now - self._since >= SLOTS_LATE_S or cluster.supervisors != kept.supervisors:
            self._steady, self._since = cluster, now
            return cluster
        return replace(cluster, supervisors=kept.supervisors, taken=kept.taken)

    def of(self, view: ClusterView) -> dict[str, object] | None:
        """None if they were told before. Equal nodes are the same tuple (`nodes_seen.py`)."""
        told, self._view = self._view, view
        if told is not None and view.nodes is told.nodes and view.components == told.components:
            return None
        fields = structure_fields(view)
        return None if told is not None and fields == structure_fields(told) else fields
