"""sensors: the reports of all sensors at a rate, and the pulses of data time (see `bolts.query1.logic`)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bolts.latency.made import Made
from bolts.query1.logic import Intervals
from bolts.urban.reports import made_report, made_time_s, sensors_of_a_city
from bolts.urban.settings import read_settings
from leeward.runtime import StatefulSpout

#: How long one call waits for the next report to be due; nothing else happens in the task meanwhile.
_WAIT_S = 0.02


class Sensors(StatefulSpout):
    """state: `number` of the last report sent, its `interval`, and `ended` once the last was."""

    outputs = ("sensor", "line")

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        settings = read_settings(conf)
        self._pulse_s, self._settings = settings.pulse_s, settings.made
        self._each = sensors_of_a_city(settings.sensors)

    def resumed(self) -> None:
        self._made = Made(self._settings)
        self._intervals = Intervals(self.state, self._pulse_s)

    def next_tuple(self) -> None:
        if self.state.get("ended"):
            return
        number = self._made.due(self.state.get("number", 0), wait_s=_WAIT_S)
        if number is None:
            return
        if self._made.is_over(number):
            self._send_pulse(self._intervals.last())
            self.state["ended"] = 1
            return
        self._send_pulse(self._intervals.due(made_time_s(number, self._each)))
        self.state["number"] = number
        self.emit(list(made_report(self._settings.seed, number, self._each)))

    def _send_pulse(self, due: tuple[int, int] | None) -> None:
        if due is not None:
            number, t = due
            self.emit_pulse(number, {"t": t, "w0": f"{time.time():.6f}"})
