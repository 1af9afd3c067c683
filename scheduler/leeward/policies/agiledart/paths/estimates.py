"""The record that a node keeps of its links, and the costs that follow.  Standard library only, as bolts import it.

A link delivers a packet at each attempt with an unknown probability theta; an attempt takes one slot.  So the delay of
a packet is geometric, 1 / theta slots in the mean (paper, section V-A).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from leeward.core.errors import ConfigError, ProtocolError

#: Settings for links that drift, ours: the fade of a link's record at each packet that takes it, that of all records at
#: each slot, and the doubt of `ThompsonCost`.
DRIFT_FADE, DRIFT_AGE, DRIFT_DOUBT = 0.98, 0.9999, 1.0
#: Halvings of an interval of at most 1: as near as a float tells.
HALVINGS = 60


@dataclass(slots=True)
class Record:
    """The feedback of one link."""

    delivered: float = 0.0  #: s, packets
    attempts: float = 0.0  #: t', attempts, at least as many

    def learn(self, attempts: float, fade: float = 1.0) -> None:
        """A packet took so many attempts, 1 or more; earlier ones count `fade` as much.  Raises ProtocolError."""
        if not (math.isfinite(attempts) and attempts >= 1):
            raise ProtocolError(f"A packet took {attempts} attempts.", remedy="Count the one that delivered it, too.")
        self.forget(fade)
        self.delivered += 1.0
        self.attempts += attempts

    def forget(self, fade: float) -> None:
        """All feedback so far counts `fade` as much."""
        self.delivered *= fade
        self.attempts *= fade


#: The expected attempts of a link, from its record, at slot tau (1, 2, ...).
Cost = Callable[[Record, float, Random], float]


@dataclass(frozen=True, slots=True)
class KlCost:
    """omega of the paper's section V-B: the least cost that the record does not rule out; an untried link has 1."""

    c: float = 0.3  #: exploration, in (0, 1]

    def __post_init__(self) -> None:
        if not 0 < self.c <= 1:
            raise ConfigError(f"The exploration c is {self.c}.", remedy="Give one in (0, 1], 0.3 for instance.")

    def __call__(self, record: Record, tau: float, rng: Random) -> float:
        """In slots."""
        if not record.attempts:
            return 1.0
        bound = self.c * math.log(tau) / record.attempts
        return 1.0 / largest_within(record.delivered / record.attempts, bound)


@dataclass(frozen=True, slots=True)
class ThompsonCost:
    """1 / theta, theta drawn from what the record leaves likely: Beta(1 + 2 s, 1 + 2 (t' - s + doubt)), ours.

    Each observation counts twice, which explores less than the posterior of a uniform prior does.  `doubt` is a number
    of failed attempts that each link counts in addition, and that no fade forgets: a link that was forgotten is tried
    again, but not as if it were likely to be better than the others.
    """

    doubt: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.doubt) and self.doubt >= 0):
            raise ConfigError(f"The doubt is {self.doubt}.", remedy="Give a number of attempts, 0 or more.")

    def __call__(self, record: Record, tau: float, rng: Random) -> float:
        """In slots; infinite if the draw is 0."""
        theta = rng.betavariate(*self.beta(record))
        return 1.0 / theta if theta > 0 else math.inf

    def beta(self, record: Record) -> tuple[float, float]:
        """The two parameters of the Beta distribution that theta is drawn from."""
        failed = record.attempts - record.delivered + self.doubt
        return 1.0 + 2.0 * record.delivered, 1.0 + 2.0 * failed


def mean_cost(record: Record) -> float:
    """The mean delay so far, slots (paper, appendix E.2); an untried link has 0."""
    return record.attempts / record.delivered if record.delivered else 0.0


def divergence(p: float, u: float) -> float:
    """KL(p, u) of Bernoullis (paper, section V-B), nats; infinite if u excludes what p has."""
    total = 0.0
    for mine, other in ((p, u), (1.0 - p, 1.0 - u)):
        if mine > 0:
            if other <= 0:
                return math.inf
            total += mine * math.log(mine / other)
    return total


def largest_within(p: float, bound: float) -> float:
    """The largest u in [p, 1] with KL(p, u) <= bound, by bisection, as KL grows with u there.

    Raises ProtocolError if p is not in (0, 1].
    """
    if not 0 < p <= 1:
        raise ProtocolError(f"{p} is no rate of success.", remedy="Give one in (0, 1]: packets over attempts.")
    low, high = p, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if divergence(p, middle) <= bound else (low, middle)
    return low


def checked_fade(fade: float, name: str = "fade") -> float:
    """The same; raises ConfigError unless it is in (0, 1]."""
    if not 0 < fade <= 1:
        raise ConfigError(f"The {name} is {fade}.", remedy="Give one in (0, 1]; 1 forgets nothing.")
    return fade
