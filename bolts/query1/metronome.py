"""metronome: sends count_by_window, with each pulse, whether the data's own time advanced, and by which row.

It sends no tuples, only pulses: to their data it adds `pickup`, `dropoff` and `seq` of the last valid row,
and `advanced`. One task: it sees every valid row.
"""

from __future__ import annotations

from typing import Any

from bolts.query1.logic import DataClock
from leeward.runtime import StatefulBolt


class Metronome(StatefulBolt):
    """state: see DataClock."""

    outputs = ("t",)  # the stream that count_by_window subscribes to; pulses travel beside it

    def resumed(self) -> None:
        self._clock = DataClock(self.state)

    def process(self, tup: Any) -> None:
        self._clock.row(*tup.values)

    def pulse(self, pulse: Any) -> dict[str, Any]:
        return self._clock.tell()
