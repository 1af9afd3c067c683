"""parser: a CSV line to the columns that query 1 needs; rows that do not parse are counted by reason.

Coordinates travel as numbers. Should the topology be made to use Storm's own JSON, those whose text is longer than
18 characters would not survive between workers (Storm reads them as BigDecimal); the real rows have up to 10.
"""

from __future__ import annotations

from typing import Any

from bolts.query1.trips import Reject, parse_trip
from leeward.runtime import ElasticBolt


class Parser(ElasticBolt):
    """Stateless."""

    outputs = ("seq", "dropoff", "pickup_text", "dropoff_text", "from_lon", "from_lat", "to_lon", "to_lat")

    def process(self, tup: Any) -> None:
        line, seq = tup.values
        trip = parse_trip(line)
        if isinstance(trip, Reject):
            self.counters[str(trip)] += 1
        else:
            self.emit([seq, *trip])
