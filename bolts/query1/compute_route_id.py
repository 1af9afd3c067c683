"""compute_route_id: the cells of a trip to the route id `e1.s1>e2.s2`, the key of everything downstream."""

from __future__ import annotations

from typing import Any

from bolts.query1.grid import route_id
from leeward.runtime import ElasticBolt


class ComputeRouteId(ElasticBolt):
    """Stateless."""

    outputs = ("route", "dropoff", "seq")

    def process(self, tup: Any) -> None:
        seq, dropoff, from_east, from_south, to_east, to_south = tup.values
        self.emit([route_id(from_east, from_south, to_east, to_south), dropoff, seq])
