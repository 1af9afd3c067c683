"""A source: events at an even rate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bolts.dataflow.events import FIELDS, Event, padding
from leeward.core.topology_conf import FACTS
from leeward.runtime import StatefulSpout

#: After a pause the backlog is at most that of so many seconds: it would wait in front of the queries, and the model
#: knows no queues.
BACKLOG_S = 0.1
#: Most of one call: markers wait so long, and looks cost processor.
NAP_S = 0.02


class Source(StatefulSpout):
    """state: `n`, the number of the last event. Facts: `rate` events/s, `event_bytes`."""

    outputs = FIELDS

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        facts = conf[FACTS.name]
        self._apart_s, self._pad = 1 / facts["rate"], padding(facts["event_bytes"])
        self._due = 0.0

    def resumed(self) -> None:
        self._due = time.monotonic()

    def next_tuple(self) -> None:
        now = time.monotonic()
        if now < self._due:
            time.sleep(min(NAP_S, self._due - now))
            return
        self._due = max(self._due + self._apart_s, now - BACKLOG_S)
        number = self.state["n"] = self.state.get("n", 0) + 1
        event = Event(path=self.component_name, number=number, sent_us=time.time_ns() // 1000, lost=0, doubled=0)
        self.emit([*event, self._pad])
