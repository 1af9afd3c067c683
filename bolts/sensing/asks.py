"""asks: reads the subtasks that domains hand over, each one once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from bolts.sensing.streams import Entry, Streams
from leeward.runtime import StatefulSpout

#: How long one call waits in Redis for an ask; nothing else happens in the task meanwhile.
_WAIT_MS = 20


class Asks(StatefulSpout):
    """state: `after`, the entry of the last ask sent."""

    outputs = ("ask", "query", "arrived", "due", "unloaded")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._streams = Streams(conf)
        self._fetched: deque[Entry] = deque()

    def resumed(self) -> None:
        self._fetched.clear()  # the offset may have gone back

    def next_tuple(self) -> None:
        if not self._fetched:
            self._fetched.extend(self._streams.fetch(self.state.get("after", "0-0"), wait_ms=_WAIT_MS))
            if not self._fetched:
                return
        entry = self._fetched.popleft()
        self.state["after"] = entry.id
        if entry.ask is None:
            self.counters["no ask"] += 1
            return
        self.emit([*entry.ask])

    def committed(self, state: Mapping[str, Any]) -> None:
        """Asks up to this state's offset will not be read again."""
        if "after" in state:
            self._streams.remove(state["after"])
