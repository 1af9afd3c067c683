"""profit_by_area: the median of what trips from each area brought; at a pulse, what changed since the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.query2.logic import PROFIT_S, ProfitWindow
from bolts.values import whole
from leeward.runtime import StatefulBolt


class ProfitByArea(StatefulBolt):
    """state: see ProfitWindow. query2.profit_s: seconds of data time."""

    outputs = ("area", "trips", "twice_cents", "last")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._window_s = whole(conf, "query2.profit_s", PROFIT_S)

    def resumed(self) -> None:
        self._window = ProfitWindow(self.state, window_s=self._window_s)

    def process(self, tup: Any) -> None:
        self._window.add(*tup.values)

    def pulse(self, pulse: Any) -> None:
        if pulse.data["advanced"]:
            for profit in self._window.changes(pulse.data["t"]):
                self.emit(list(profit))
