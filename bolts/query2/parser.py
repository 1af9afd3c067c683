"""parser: a CSV line to the columns that query 2 needs; rows that do not parse are counted by reason."""

from __future__ import annotations

from typing import Any

from bolts.query2.fares import Fare, parse_fare
from leeward.runtime import ElasticBolt


class FareParser(ElasticBolt):
    """Stateless."""

    outputs = (
        "seq", "taxi", "cents", "dropoff", "pickup_text", "dropoff_text", "from_lon", "from_lat", "to_lon", "to_lat",
    )  # fmt: skip

    def process(self, tup: Any) -> None:
        line, seq = tup.values
        fare = parse_fare(line)
        if isinstance(fare, Fare):
            self.emit([seq, fare.taxi, fare.cents, *fare.trip])
        else:
            self.counters[str(fare)] += 1
