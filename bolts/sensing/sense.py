"""sense: takes a reading for each subtask; those whose deadlines are near go first."""

from __future__ import annotations

import math
from typing import Any

from leeward.runtime import ElasticBolt, ordered_by


class Sense(ElasticBolt):
    """Derive a class with a `read` of your own, and name it in topologies/sensing.py."""

    outputs = ("ask", "reading")
    queue = ordered_by("dssp-edfq", arrived="arrived", due="due", unloaded="unloaded")

    def read(self, query: int) -> float | None:
        """The reading for a query, by its number at its provider (below 0: the domain measures its node); None if
        there is none. An exception counts as none.
        """
        return reading(query)

    def process(self, tup: Any) -> None:
        ask, query, *_ = tup.values
        try:
            found = self.read(query)
        except Exception as error:  # a sensor that fails is no fault of this process; the domain hears of it
            self.counters[f"failed: {type(error).__name__}"] += 1
            found = None
        good = found is not None and math.isfinite(found)
        self.emit([ask, repr(float(found)) if found is not None and good else ""])


def reading(query: int) -> float:
    """A made-up one, degrees Celsius from 15 to 25."""
    return 15 + query * 7919 % 1000 / 100
