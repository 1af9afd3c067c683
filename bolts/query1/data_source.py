"""data_source: reads the taxi stream from Redis in order and sends the pulses of data time (see `logic`).

With `latency.rate` the rows are made, and come at that rate (`bolts.latency`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from bolts.query1.logic import Intervals
from bolts.query1.settings import read_settings
from bolts.query1.stores import MadeStream, Row, Rows, TaxiStream
from leeward.runtime import StatefulSpout, open_redis

#: How long one call waits in Redis for a row; nothing else happens in the task meanwhile.
_WAIT_MS = 20


class DataSource(StatefulSpout):
    """state: `seq` of the last row sent, its `interval`, and `ended` once the end of the stream was read."""

    outputs = ("line", "seq")
    application = "query1"  #: whose settings these are

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        settings = read_settings(conf, self.application)
        self._pulse_s = settings.pulse_s
        self._stream: Rows
        if settings.latency.rate:
            self._stream = MadeStream(settings.latency)
        else:
            self.reads = settings.taxi_in
            self._stream = TaxiStream(open_redis(conf, patient=True), settings)
        self._fetched: deque[Row] = deque()

    def resumed(self) -> None:
        self._fetched.clear()  # the offset may have gone back
        self._intervals = Intervals(self.state, self._pulse_s)
        if self.state.get("ended"):
            self._stream.publish_end()

    def next_tuple(self) -> None:
        if not self._fetched:
            if not self.state.get("ended"):
                self._fetched.extend(self._stream.fetch(self.state.get("seq", 0), wait_ms=_WAIT_MS))
            if not self._fetched:
                return
        row = self._fetched.popleft()
        if row.line is None:
            self._end(row)
            return
        due = self._intervals.due(row.dropoff_s)
        if due is not None:
            self._send_pulse(*due)
        self.state["seq"] = row.seq
        self.emit([row.line, row.seq])

    def committed(self, state: Mapping[str, Any]) -> None:
        """Rows up to this state's offset will not be read again."""
        if "seq" in state:
            self._stream.publish_progress(state["seq"])

    def _end(self, row: Row) -> None:
        last = self._intervals.last()
        if last is not None:
            self._send_pulse(*last)
        self.state["seq"] = row.seq
        self.state["ended"] = 1
        self._stream.publish_end()

    def _send_pulse(self, number: int, t: int) -> None:
        self.emit_pulse(number, {"t": t, "w0": f"{time.time():.6f}"})
