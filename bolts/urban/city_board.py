"""city_board: publishes the results of a pulse, a row for each city. One task, the sink."""

from __future__ import annotations

from typing import Any

from bolts.query1.result_sink import ResultSink
from bolts.urban.reports import CITIES


class CityBoard(ResultSink):
    """state["rows"] = {city: row} since the last pulse."""

    application = "urban"

    def process(self, tup: Any) -> None:
        city, row = tup.values
        self.state["rows"] = {**self.state.get("rows", {}), city: row}

    def pulse(self, pulse: Any) -> None:
        rows = self.state.get("rows", {})
        self.state["rows"] = {}
        for city in sorted(rows):
            self.publish(number_of(pulse.number, city), rows[city], w0=pulse.data["w0"])


def number_of(interval: int, city: str) -> int:
    """Of a city's result, growing with the interval and then the city's name."""
    return interval * len(CITIES) + CITIES.index(city)
