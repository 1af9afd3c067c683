"""partial_rank: the ten top ones of this task's routes, at each pulse at which the data's time advanced."""

from __future__ import annotations

from typing import Any

from bolts.query1.logic import LocalRank
from leeward.runtime import StatefulBolt


class PartialRank(StatefulBolt):
    """state: see LocalRank."""

    outputs = ("route", "count", "last")

    def resumed(self) -> None:
        self._rank = LocalRank(self.state)

    def process(self, tup: Any) -> None:
        self._rank.update(*tup.values)

    def pulse(self, pulse: Any) -> None:
        if pulse.data["advanced"]:
            for ranked in self._rank.top():
                self.emit(list(ranked))
