"""A query: passes a share of its events on. The time that it takes is emulated (`leeward.service_times`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.dataflow.events import FIELDS, Event, counted, padding, passed_on
from leeward.core.topology_conf import FACTS
from leeward.runtime import StatefulBolt


class Query(StatefulBolt):
    """state: see `events.counted`. Facts: `selectivity`, `event_bytes`."""

    outputs = FIELDS

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        facts = conf[FACTS.name]
        self._selectivity, self._pad = facts["selectivity"], padding(facts["event_bytes"])

    def process(self, tup: Any) -> None:
        event = counted(self.state, Event(*tup.values[:-1]))
        for output in passed_on(event, self.component_name, self._selectivity):
            self.emit([*output, self._pad])
