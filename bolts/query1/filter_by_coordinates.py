"""filter_by_coordinates: drops and counts trips that start or end outside the grid.

What remains goes two ways: to compute_route_id, and, as the data's own clock, to metronome.
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
        Stream(fields=["dropoff", "seq", "from_lon", "from_lat", "to_lon", "to_lat"]),
        Stream(fields=["dropoff", "seq", "pickup_text", "dropoff_text"], name=CLOCK),
    )

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._grid = read_settings(conf).grid

    def process(self, tup: Any) -> None:
        dropoff, seq, pickup_text, dropoff_text, *degrees = tup.values
        if self._grid.route(*map(float, degrees)) is None:
            self.counters[str(Reject.OUTSIDE)] += 1
            return
        self.emit([dropoff, seq, pickup_text, dropoff_text], stream=CLOCK)
        self.emit([dropoff, seq, *degrees])
