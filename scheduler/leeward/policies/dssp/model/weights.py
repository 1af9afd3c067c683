"""How much a late query of each class counts, learned in rounds from how many of a provider's queries are late.

A provider sustains a load while every class keeps its objective, so it wants all classes to be late alike, measured by
what their objectives allow.  The weight of a class is its shadow price: it grows while the class is later than others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

#: The least weight; the greatest is 1.
LEAST = math.exp(-6)
#: A class counts as late by so much of what its objective allows, even if no query is: without it a class of which few
#: queries came would look worse than one of which many came, though none was late.
FLOOR = 0.05
#: Evidence of so many allowed late queries is needed before a class is believed apart from the others.
EVIDENCE = 5.0
#: Queries of a round: 20 that an objective at 99 % allows to be late.
LEARN = 2000
#: Steps become shorter from round to round, so that chance averages out, but not below this: loads change.
LEAST_STEP = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Of one class in a round."""

    late: int  #: queries over their objective
    allowed: float  #: that may be: queries x (1 - p_q / 100)


def learned(weights: Mapping[str, float], round_: Mapping[str, Lateness], *, number: int) -> dict[str, float]:
    """The weights after round `number`, from 1: each times a power of its class's lateness, and the greatest is 1.

    Lateness is late over allowed queries, drawn to the mean of all classes where there is little evidence.  Classes
    without a weight begin at 1; those without queries in the round count as late as the mean.
    """
    allowed = sum(one.allowed for one in round_.values())
    mean = FLOOR + (sum(one.late for one in round_.values()) / allowed if allowed > 0 else 0.0)
    raised, step = {}, max(LEAST_STEP, number**-0.5)
    for name in {**weights, **round_}:
        one = round_.get(name, Lateness(late=0, allowed=0.0))
        lateness = (one.late + FLOOR * one.allowed + EVIDENCE * mean) / (one.allowed + EVIDENCE)
        raised[name] = weights.get(name, 1.0) * lateness**step
    top = max(raised.values(), default=1.0)
    return {name: max(LEAST, value / top) for name, value in raised.items()}


class Weights:
    """The weights of a provider's classes while its queries end."""

    def __init__(self, queries: int) -> None:
        """`queries`: of a round, in all classes together; 0: nothing is learned."""
        self.rounds, self._queries = 0, queries
        self._weights: dict[str, float] = {}
        self._ended, self._late = 0, Counter[str]()
        self._allowed: dict[str, float] = {}

    def begin(self, name: str, weight: float) -> None:
        """A class with its weight, above 0 and at most 1; of one that is known already the weight stays as learned."""
        self._weights.setdefault(name, weight)

    def forget(self, name: str) -> None:
        """No queries of this class come any more."""
        for known in (self._weights, self._late, self._allowed):
            known.pop(name, None)

    def of(self, name: str) -> float:
        """Of a class."""
        return self._weights.get(name, 1.0)

    def ended(self, name: str, *, missed: bool, percent: float) -> None:
        """A query is over; `missed`: later than its objective, which `percent` of the class's queries are to keep."""
        if not self._queries or name not in self._weights:
            return
        self._ended += 1
        self._late[name] += missed
        self._allowed[name] = self._allowed.get(name, 0.0) + 1 - percent / 100
        if self._ended < self._queries:
            return
        self.rounds += 1
        round_ = {one: Lateness(late=self._late[one], allowed=self._allowed[one]) for one in self._allowed}
        self._weights = learned(self._weights, round_, number=self.rounds)
        self._ended, self._late, self._allowed = 0, Counter(), {}
