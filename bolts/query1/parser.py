"""parser: a CSV line to the columns that query 1 needs; rows that do not parse are counted by reason.

Coordinates travel as text: a long float would not survive Storm's JSON, and the text of a float is exact.
"""

from __future__ import annotations

from typing import Any

from bolts.query1.trips import Reject, parse_trip
from leeward.runtime import ElasticBolt


class Parser(ElasticBolt):
    """Stateless."""

    outputs = ("dropoff", "seq", "pickup_text", "dropoff_text", "from_lon", "from_lat", "to_lon", "to_lat")

    def process(self, tup: Any) -> None:
        line, seq = tup.values
        trip = parse_trip(line)
        if isinstance(trip, Reject):
            self.counters[str(trip)] += 1
            return
        degrees = (trip.from_lon, trip.from_lat, trip.to_lon, trip.to_lat)
        self.emit([trip.dropoff_s, seq, trip.pickup, trip.dropoff, *map(str, degrees)])
