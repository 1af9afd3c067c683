"""The event `cluster_seen`: the parts of a view that a report needs beside the measurements. Pure."""

from __future__ import annotations

from leeward.core.model import ClusterView


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
        self._source: object = None
        self._draining: list[str] = []
        self._told: dict[str, object] = {}

    def of(self, view: ClusterView, source: object) -> dict[str, object] | None:
        """None if they were told before. `source`: the snapshot that the view is made of; while it is the same object,
        only the flags of draining are compared."""
        draining = [node.id for node in view.nodes if node.draining]
        if source is self._source and draining == self._draining:
            return None
        self._source, self._draining = source, draining
        fields = structure_fields(view)
        if fields == self._told:
            return None
        self._told = fields
        return fields
