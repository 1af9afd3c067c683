"""locate: finds the areas of each trip; drops and counts those that start or end outside the grid.

The remaining trips go three ways: the money to the area of the start, the taxi to that of the end, and, as the data's
own clock, the times to the metronome.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamparse import Stream

from bolts.query1.settings import read_settings
from bolts.query1.trips import Reject
from bolts.query2.areas import AREAS, area_id
from leeward.runtime import ElasticBolt

PROFITS, TAXIS, CLOCK = "profits", "taxis", "clock"


class Locate(ElasticBolt):
    """Stateless."""

    outputs = (
        Stream(fields=["area", "dropoff", "cents", "seq"], name=PROFITS),
        Stream(fields=["taxi", "dropoff", "area", "seq"], name=TAXIS),
        Stream(fields=["seq", "pickup_text", "dropoff_text"], name=CLOCK),
    )

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._grid = read_settings(conf, "query2", AREAS).grid

    def process(self, tup: Any) -> None:
        seq, taxi, cents, dropoff, pickup_text, dropoff_text, *ends = tup.values
        cells = self._grid.route(*ends)
        if cells is None:
            self.counters[str(Reject.OUTSIDE)] += 1
            return
        self.emit([seq, pickup_text, dropoff_text], stream=CLOCK)
        self.emit([area_id(*cells[:2]), dropoff, cents, seq], stream=PROFITS)
        self.emit([taxi, dropoff, area_id(*cells[2:]), seq], stream=TAXIS)
