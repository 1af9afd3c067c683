"""answers: gives the readings back; an ask that was read again after a restore gets no second answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bolts.sensing.streams import Streams
from leeward.core.errors import FencedError
from leeward.runtime import ElasticBolt


class Answers(ElasticBolt):
    """The sink."""

    outputs = ()
    transient = ()

    def initialize(self, conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self._streams = Streams(conf)

    def process(self, tup: Any) -> None:
        ask, reading = tup.values
        try:
            new = self._streams.answer(ask, reading, self.fencing_token)
        except FencedError:  # this process was replaced: its successor writes the answer
            self.counters["fenced"] += 1
            return
        self.counters["answers" if new else "repeats"] += 1
