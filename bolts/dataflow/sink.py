"""A sink: writes down when each event came."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from bolts.dataflow.events import Event, counted
from leeward.runtime import StatefulBolt

#: Key of the topology: the file that sinks append a line to for each event, on the machine of the sink.
OUT = "dataflow.out"


class Sink(StatefulBolt):
    """state: see `events.counted`. A line is `sink path number sent_us lost doubled written_us node`."""

    outputs = ()

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._node = conf.get("storm.local.hostname") or os.uname().nodename
        self._file = os.open(conf[OUT], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup: Any) -> None:
        event = counted(self.state, Event(*tup.values[:-1]))
        words = (self.component_name, *event, time.time_ns() // 1000, self._node)
        # one write for each line, so that a process that is killed leaves none half done
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())
