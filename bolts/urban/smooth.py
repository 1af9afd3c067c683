"""smooth: smooths each sensor's values, and names the place that they belong to."""

from __future__ import annotations

from typing import Any

from bolts.urban.places import Smoothing
from bolts.urban.reports import city_of
from leeward.runtime import StatefulBolt


class Smooth(StatefulBolt):
    """state: see Smoothing."""

    outputs = ("place", "t", "value")

    def process(self, tup: Any) -> None:
        sensor, kind, t, value = tup.values
        self.emit([f"{city_of(sensor)}.{kind}", t, Smoothing(self.state).add(sensor, kind, value)])
