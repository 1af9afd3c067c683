"""filter_by_coordinates: finds the cells of each trip; drops and counts those that start or end outside the grid.

The remaining trips go two ways: to compute_route_id, and, as the data's own clock, to metronome.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamparse import Stream

from bolts.query1.settings import read_settings
from bolts.query1.trips import Reject
from leeward.runtime import ElasticBolt

CLOCK = "clock"


class FilterByCoordinates(ElasticBolt):
    """Stateless."""

    outputs = (
        Stream(fields=["seq", "dropoff", "from_east", "from_south", "to_east", "to_south"]),
        Stream(fields=["seq", "pickup_text", "dropoff_text"], name=CLOCK),
    )

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._grid = read_settings(conf).grid

    def process(self, tup: Any) -> None:
        seq, dropoff, pickup_text, dropoff_text, from_lon, from_lat, to_lon, to_lat = tup.values
        route = self._grid.route(from_lon, from_lat, to_lon, to_lat)
        if route is None:
            self.counters[str(Reject.OUTSIDE)] += 1
            return
        self.emit([seq, pickup_text, dropoff_text], stream=CLOCK)
        self.emit([seq, dropoff, *route])
