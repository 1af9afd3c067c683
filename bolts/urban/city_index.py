"""city_index: joins the kinds of a city into its index and alert, at each pulse."""

from __future__ import annotations

from typing import Any

from bolts.urban.index import CityJoin
from bolts.urban.places import Figures
from leeward.runtime import StatefulBolt


class CityIndexes(StatefulBolt):
    """state: see CityJoin."""

    outputs = ("city", "row")

    def process(self, tup: Any) -> None:
        city, kind, *figures = tup.values
        CityJoin(self.state).add(city, kind, Figures(*figures))

    def pulse(self, pulse: Any) -> None:
        for found in CityJoin(self.state).rows(pulse.data["t"]):
            self.emit(list(found))
