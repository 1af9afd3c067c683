"""The messages between providers and domains (spec of DSSP, section 2). Values only.

Times in them are durations, as organisations share no clock.  No message of a domain shows its nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.budgets import check_percent

#: Areas of a service or a query at most.
MOST_AREAS = 256


def check_areas(areas: tuple[Area, ...]) -> None:
    """Raises FieldError for none, and for too many."""
    if not 0 < len(areas) <= MOST_AREAS:
        raise FieldError("areas", len(areas), f"is not between 1 and {MOST_AREAS}", remedy="give larger areas")


def check_weight(weight: float) -> None:
    """Raises FieldError. No provider's queries count more than another's dearest."""
    check_number("weight", weight, positive=True)
    if weight > 1:
        raise FieldError("weight", weight, "must be at most 1", remedy="give the service that counts most 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms of a service: tasks of one capability, at a rate, within a latency at a percentile."""

    service: str
    capability: str
    areas: tuple[Area, ...]
    rate: float  #: tasks/s that reach each node; one that is for one node of many counts in part
    percent: float  #: p_t
    objective_s: float  #: x
    rank: int = 0  #: of strict priority; the lower one goes first

    def __post_init__(self) -> None:
        """Raises FieldError: a peer may send anything."""
        check_areas(self.areas)
        check_number("rate", self.rate)
        check_percent("percent", self.percent)
        check_number("objective_s", self.objective_s, positive=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiate:
    """Provider to domain: would you keep these terms?"""

    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Domain to provider: yes; or why not, and the least objective that it can promise (None: not known)."""

    service: str
    accepted: bool
    provisioned: bool = False  #: it answers a `Provision`: the terms are kept from now on
    why: str = ""
    least_s: float | None = None
    extrapolated: bool = False  #: the bound rests on a tail without enough samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """Provider to domain: keep the terms of this service from now on; sent again before the domain forgets them."""

    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Provider to domain: the service is over."""

    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Provider to domain: a task of a query. The same query sent again is not executed again.

    All domains of a query get the same message; each takes off `objective_s` its time between the two (`Apart`).
    """

    query: str
    service: str
    areas: tuple[Area, ...]
    percent: float  #: p_t
    objective_s: float  #: the rest of x
    weight: float = 1.0  #: a late query of this service counts so much to its provider

    def __post_init__(self) -> None:
        """Raises FieldError: a peer may send anything."""
        check_areas(self.areas)
        check_percent("percent", self.percent)
        check_number("objective_s", abs(self.objective_s))
        check_weight(self.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Provider to domain: so long is a task of this provider between the two, on both ways together."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Readings of several nodes, or of several domains, so that their mean and extremes can be told."""

    count: int = 0
    total: float = 0.0
    least: float | None = None
    most: float | None = None

    @property
    def sane(self) -> bool:
        """Its numbers can be those of readings."""
        least, most = (0.0 if one is None else one for one in (self.least, self.most))
        some = self.least is not None and self.most is not None
        return (
            self.count >= 0
            and some is (self.count > 0)
            and least <= most
            and all(map(math.isfinite, (self.total, least, most)))
        )

    @property
    def mean(self) -> float | None:
        """Of the readings."""
        return self.total / self.count if self.count else None

    def __add__(self, other: Tally) -> Tally:
        least = [one for one in (self.least, other.least) if one is not None]
        most = [one for one in (self.most, other.most) if one is not None]
        return Tally(
            count=self.count + other.count, total=self.total + other.total, least=min(least, default=None),
            most=max(most, default=None),
        )  # fmt: skip


def reading(value: float) -> Tally:
    """Of one node."""
    return Tally(count=1, total=value, least=value, most=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Domain to provider: the readings of a task."""

    query: str
    tally: Tally
    inside_s: float  #: from its arrival until it left
    late: bool  #: a subtask started after its queueing deadline
    failed: int = 0  #: nodes that gave no reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Domain to provider: it does not work on this task."""

    query: str
    service: str
    why: str
    provisioned: bool  #: it knows the service


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """Domain to provider: it leaves the pool of this service."""

    service: str


KINDS: tuple[type, ...] = (Negotiate, Offer, Provision, Release, Ask, Answer, Refuse, Leaves, Apart)
