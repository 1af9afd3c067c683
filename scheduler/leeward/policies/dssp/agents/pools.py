"""The domains that keep the terms of a service, and those of them that a query concerns."""

from __future__ import annotations

from dataclasses import dataclass, field

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.agents.messages import Offer
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.budgets import check_percent, task_percent

#: Areas of queries whose domains are remembered.
REMEMBERED = 64


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

    def __post_init__(self) -> None:
        check_percent("percent", self.percent)
        check_number("rate", self.rate)
        check_number("objective_s", self.objective_s, positive=True)
        if not self.areas:
            raise FieldError("areas", [], "names no area", remedy="give one or more")


@dataclass(slots=True)
class Membership:
    """A domain in a pool."""

    areas: tuple[Area, ...]
    offer: Offer | None = None  #: the newest; None while it is asked
    provisioned: bool = False
    asked: float = 0.0  #: when it was sent terms
    misses: int = 0


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
        return tuple(sorted(name for name, member in self.members.items() if member.provisioned))
