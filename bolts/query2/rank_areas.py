"""rank_areas: the ten top ones of this task's areas, at each pulse at which the data's time advanced."""

from __future__ import annotations

from typing import Any

from bolts.query2.logic import AreaRank, Place, Profit
from leeward.runtime import StatefulBolt


class RankAreas(StatefulBolt):
    """state: see AreaRank."""

    outputs = ("area", "taxis", "twice_cents", "last")

    def resumed(self) -> None:
        self._rank = AreaRank(self.state)

    def process(self, tup: Any) -> None:
        if len(tup.values) == len(Profit._fields):
            self._rank.profit(Profit(*tup.values))
        else:
            self._rank.place(Place(*tup.values))

    def pulse(self, pulse: Any) -> None:
        if pulse.data["advanced"]:
            for standing in self._rank.top():
                self.emit(list(standing))
