"""global_rank: the ten top routes of all; publishes a row when they changed. One task, the sink."""

from __future__ import annotations

from typing import Any

from bolts.query1.logic import GlobalRank, Ranked, result_row
from bolts.query1.result_sink import ResultSink


class GlobalRankSink(ResultSink):
    """state: see GlobalRank."""

    def process(self, tup: Any) -> None:
        GlobalRank(self.state).candidate(Ranked(*tup.values))

    def pulse(self, pulse: Any) -> None:
        if not pulse.data["advanced"]:
            return
        routes = GlobalRank(self.state).merge()
        if routes is not None:
            row = result_row(pulse.data["pickup"], pulse.data["dropoff"], routes)
            self.publish(pulse.number, row, w0=pulse.data["w0"])
