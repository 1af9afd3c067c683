"""stats: count, mean, least and greatest of each place's window, at each pulse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.urban.places import PlaceWindow
from bolts.urban.settings import read_settings
from leeward.runtime import StatefulBolt


class Stats(StatefulBolt):
    """state: see PlaceWindow."""

    outputs = ("city", "kind", "count", "mean", "least", "most")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        settings = read_settings(conf)
        self._pulse_s, self._window_s = settings.pulse_s, settings.window_s

    def resumed(self) -> None:
        self._window = PlaceWindow(self.state, pulse_s=self._pulse_s, window_s=self._window_s)

    def process(self, tup: Any) -> None:
        self._window.add(*tup.values)

    def pulse(self, pulse: Any) -> None:
        for place, figures in self._window.figures(pulse.number):
            self.emit([*place.split("."), *figures])
