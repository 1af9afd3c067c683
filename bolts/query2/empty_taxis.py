"""empty_taxis: the area in which each taxi stands empty; at a pulse, what changed since the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.query2.logic import TAXI_S, TaxiPlaces
from bolts.values import whole
from leeward.runtime import StatefulBolt


class EmptyTaxis(StatefulBolt):
    """state: see TaxiPlaces. query2.taxi_s: seconds of data time."""

    outputs = ("area", "taxi", "seq")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._window_s = whole(conf, "query2.taxi_s", TAXI_S)

    def resumed(self) -> None:
        self._places = TaxiPlaces(self.state, window_s=self._window_s)

    def process(self, tup: Any) -> None:
        self._places.add(*tup.values)

    def pulse(self, pulse: Any) -> None:
        if pulse.data["advanced"]:
            for place in self._places.changes(pulse.data["t"]):
                self.emit(list(place))
