"""The domains that keep the terms of a service, and those of them that a query concerns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, auto

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.agents.messages import Offer, check_areas, check_weight
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.budgets import check_percent, task_percent

#: Areas of queries whose domains are remembered.
REMEMBERED = 64
#: Of one pool: so many parts of a percentile still differ from 100.
MOST_DOMAINS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Terms of all queries of a name. Raises FieldError for values that cannot be."""

    name: str
    capability: str
    areas: tuple[Area, ...]
    rate: float  #: queries/s that reach each node (messages.Terms)
    percent: float  #: p_q
    objective_s: float  #: x
    rank: int = 0
    weight: float = 1.0  #: a late query of it counts so much, until the provider has learned better

    def __post_init__(self) -> None:
        check_weight(self.weight)
        check_percent("percent", self.percent)
        check_number("rate", self.rate)
        check_number("objective_s", self.objective_s, positive=True)
        check_areas(self.areas)
        if not task_percent(self.percent, MOST_DOMAINS) < 100:
            raise FieldError("percent", self.percent, "is too near to 100", remedy="give 99.999999 at most")


class Standing(StrEnum):
    """Of a domain in a pool.

    | standing | waits for | a good offer leads to | a refusal leads to |
    | --- | --- | --- | --- |
    | asked | the answer to `Negotiate` | offered, and `Provision` is sent | refused |
    | offered | the answer to `Provision` | ready | refused |
    | ready | tasks; it is provisioned again now and then | ready | refused, and `Release` is sent |
    | refused | better times: it is asked again | offered, and `Provision` is sent | refused |

    A domain that does not answer, or does not know the service any more, is asked anew.
    """

    ASKED = auto()
    OFFERED = auto()
    READY = auto()
    REFUSED = auto()


@dataclass(slots=True)
class Membership:
    """A domain in a pool."""

    areas: tuple[Area, ...]
    standing: Standing = Standing.ASKED
    offer: Offer | None = None  #: the newest
    next_s: float = 0.0  #: when it is written to again about terms
    wait_s: float = 0.0  #: before that; longer with each try that is not answered
    misses: int = 0  #: queries in a row that it did not answer


@dataclass(slots=True)
class Asked:
    """The domains of a query, and the part of p_q that each has to keep."""

    names: tuple[str, ...]
    members: frozenset[str]
    percent: float


@dataclass(slots=True)
class Pool:
    """The domains of a service."""

    service: Service
    members: dict[str, Membership] = field(default_factory=dict)
    _asked: dict[tuple[Area, ...], Asked] = field(default_factory=dict)

    def asked(self, areas: tuple[Area, ...]) -> Asked | None:
        """Those that keep its terms in these areas; None if there are none."""
        if areas not in self._asked:
            names = tuple(
                name for name in self.ready
                if any(here.intersects(one) for here in self.members[name].areas for one in areas)
            )  # fmt: skip
            if not names:
                return None
            if len(self._asked) >= REMEMBERED:
                self._asked.pop(next(iter(self._asked)))
            self._asked[areas] = Asked(names, frozenset(names), task_percent(self.service.percent, len(names)))
        return self._asked[areas]

    def changed(self) -> None:
        """Another domain keeps its terms, or one less."""
        self._asked.clear()

    @property
    def ready(self) -> tuple[str, ...]:
        """Domains that keep its terms, by name."""
        return tuple(sorted(name for name, member in self.members.items() if member.standing is Standing.READY))
