"""global_rank: the ten top routes of all; publishes a row when they changed. One task, the sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bolts.query1.grid import Grid, cells_of
from bolts.query1.logic import GlobalRank, Ranked, result_row
from bolts.query1.result_sink import ResultSink
from leeward.runtime import Arrow, View

CELLS = Grid().cells


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
        self.shown = picture(self.state.get("shown", ()), pulse.data["dropoff"])


def picture(routes: Sequence[str], note: str) -> View:
    """The ten top routes over the grid, from the middle of a cell to that of another."""
    arrows = []
    for rank, route in enumerate(routes, 1):
        east, south, to_east, to_south = (cell - 0.5 for cell in cells_of(route))
        arrows.append(
            Arrow(start=(east, south), end=(to_east, to_south), label=f"{rank}. {route.replace('>', ' to ')}")
        )
    return View(
        title="Ten most frequent routes, by cells of 500 m", note=note, width=CELLS, height=CELLS, arrows=tuple(arrows)
    )
