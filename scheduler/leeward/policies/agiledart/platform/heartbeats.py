"""Loads as neighbours know them: from the newest heartbeat, while operators are placed since."""

from __future__ import annotations

from collections.abc import Mapping

from leeward.policies.agiledart.dataflow.nodes import Loads


class LoadsOfHeartbeats(Loads):
    """Operators on others are those of the newest `beat`; a node knows its own room, and refuses more."""

    def __init__(self, capacity: Mapping[int, int]) -> None:
        super().__init__(capacity)
        self._nodes = tuple(capacity)
        self._told: dict[int, int] = {}
        self.beat()

    def beat(self) -> None:
        """All nodes tell their loads."""
        self._told = {node: self.hosted(node) for node in self._nodes}

    def known(self, node: int) -> int:
        """Operators on a node at the newest heartbeat."""
        return self._told[node]
