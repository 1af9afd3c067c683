"""compute_route_id: coordinates to the route id `e1.s1>e2.s2`, the key of everything downstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.query1.settings import read_settings
from leeward.runtime import ElasticBolt


class ComputeRouteId(ElasticBolt):
    """Stateless."""

    outputs = ("route", "dropoff", "seq")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._grid = read_settings(conf).grid

    def process(self, tup: Any) -> None:
        dropoff, seq, *degrees = tup.values
        self.emit([self._grid.route(*map(float, degrees)), dropoff, seq])
