"""The sink of an application on taxi rows: publishes a row under the number of its pulse, once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bolts.latency.notes import open_notes
from bolts.query1.settings import read_settings
from bolts.query1.stores import Result, open_sink
from leeward.core.errors import FencedError
from leeward.runtime import StatefulBolt


class ResultSink(StatefulBolt):
    """Derive the sink from it, and call `publish` at a pulse."""

    application = "query1"  #: whose settings these are

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        settings = read_settings(conf, self.application)
        self._sink = open_sink(settings, conf)
        self.writes = settings.out if settings.sink == "redis" and not settings.latency.rate else ""
        self._notes = open_notes(settings.latency.out)

    def publish(self, number: int, row: str, *, w0: str) -> None:
        """A result under its number, which grows; `w0`: when its last input left the source, epoch seconds."""
        now = time.time()
        result = Result(number=number, row=row, w=f"{now:.3f}", w0=w0)
        try:
            new = self._sink.publish(result, self.fencing_token)
        except FencedError:  # this process was replaced: its successor writes the result
            self.counters["fenced"] += 1
            return
        self.counters["results" if new else "repeats"] += 1
        if self._notes is not None and new:
            self._notes.write(number, sent=float(w0), received=now, row=row)
