"""top_areas: the ten top areas of all; publishes a row when a figure of them changed. One task, the sink."""

from __future__ import annotations

from typing import Any

from bolts.query1.result_sink import ResultSink
from bolts.query2.logic import Standing, TopAreas, result_row


class TopAreasSink(ResultSink):
    """state: see TopAreas."""

    application = "query2"

    def process(self, tup: Any) -> None:
        TopAreas(self.state).candidate(Standing(*tup.values))

    def pulse(self, pulse: Any) -> None:
        if not pulse.data["advanced"]:
            return
        areas = TopAreas(self.state).merge()
        if areas is not None:
            row = result_row(pulse.data["pickup"], pulse.data["dropoff"], areas)
            self.publish(pulse.number, row, w0=pulse.data["w0"])
