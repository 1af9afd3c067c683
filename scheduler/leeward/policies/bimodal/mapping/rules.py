"""Which walks a server passes on, and which of the feasible maps is tried first."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leeward.policies.bimodal.model.resources import Account
from leeward.policies.bimodal.model.values import Network
from leeward.policies.bimodal.model.walk import Walk, dedicated_hops, load_factor, servers_of

#: Orders walks; a smaller key is better.
Key = Callable[[Walk], Any]
#: Services done -> the least key that this server has seen of the task.
Table = dict[int, Any]


def by_cost(walk: Walk) -> float:
    """The cost of its links."""
    return walk.cost


def by_public_hops(walk: Walk) -> tuple[float, float, float]:
    """Fewest hops over the public network first, each by its weight, then the cost of the links, then the load factor.

    The paper prints no order for pruning; with this one its acceptance is met (`docs/bimodal.md`).
    """
    return walk.strain, walk.cost, load_factor(walk)


class Rule(Protocol):
    """Prunes what a server passes on."""

    def passes(self, walk: Walk, table: Table, rng: random.Random) -> bool:
        """Whether to pass it on; notes it in the table of the server's task."""


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Everything is passed on: exact, and only possible in tiny networks."""

    def passes(self, walk: Walk, table: Table, rng: random.Random) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class LeastCost:
    """LeastCostMap (4.1.1): only what is better than every map of as many services that was seen here."""

    key: Key = by_cost

    def passes(self, walk: Walk, table: Table, rng: random.Random) -> bool:
        key = self.key(walk)
        if walk.done in table and not key < table[walk.done]:
            return False
        table[walk.done] = key
        return True


@dataclass(frozen=True, slots=True)
class Annealed:
    """AnnealedLeastCostMap (4.1.2): another one also passes with a probability that decays with the services done."""

    key: Key = by_cost
    #: Of a map with no service; each further service multiplies it by `decay`.  The paper prints neither; with these it
    #: takes some three times the messages of LeastCostMap among 20 servers.
    chance: float = 1.0
    decay: float = 0.7

    def passes(self, walk: Walk, table: Table, rng: random.Random) -> bool:
        return LeastCost(self.key).passes(walk, table, rng) or rng.random() < self.chance * self.decay**walk.done


#: Orders feasible maps: the first is tried first.
Choice = Callable[[Sequence[Walk]], list[Walk]]
#: Load factors that differ by less are about the same (4.3).
BAND = 0.1


def printed_choice(walks: Sequence[Walk]) -> list[Walk]:
    """As printed (4.3): least load factor; within 0.1, more dedicated hops; then fewer public ones."""
    least = min(map(load_factor, walks), default=0.0)

    def key(walk: Walk) -> tuple[Any, ...]:
        load = load_factor(walk)
        return math.floor((load - least) / BAND), -dedicated_hops(walk), walk.public, load, _tie(walk)

    return sorted(walks, key=key)


def public_hops_choice(walks: Sequence[Walk]) -> list[Walk]:
    """Fewest hops over the public network, then the cost of the links, then the load factor."""
    return sorted(walks, key=lambda walk: (by_public_hops(walk), _tie(walk)))


def cost_choice(walks: Sequence[Walk]) -> list[Walk]:
    """Least cost."""
    return sorted(walks, key=lambda walk: (walk.cost, _tie(walk)))


def _tie(walk: Walk) -> tuple[Any, ...]:
    return servers_of(walk), tuple((visit.at, visit.link) for visit in walk.visits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A rule, a choice, and whether the public network is used, the dedicated links, or both."""

    rule: Rule = field(default_factory=LeastCost)
    #: RandomNeighbor(k) (4.1.3): dedicated neighbours, drawn at random, to which a walk is passed on; None: all.
    neighbours: int | None = None
    choice: Choice = cost_choice
    dedicated: bool = True
    public: bool = False
    #: A map's own uses of a link count together; the paper's check, printed for each hop alone, lets a map pass that
    #: cannot be reserved.
    aggregated: bool = True
    #: Ours: the delivery server first searches the network as gossip has told it, before the diffusing computation.
    surveys: bool = False
    #: Ours: a public path weighs by the quantile of it that was learned, in maps and in re-allocation.
    learned: bool = False
    #: Of a survey: the cost of a hop over a link (None: the link's own), and of one over the public network (None: not
    #: used).
    price: Callable[[Network, Account, int], float] | None = None
    public_cost: float | None = None
    limit: int = 50_000  #: walks that one search looks at


#: A hop over the public network costs a survey as much as so many over dedicated links.
PUBLIC_COST = 30.0
#: Of agents, by name.
METHODS: Mapping[str, Method] = {
    "survey": Method(
        rule=LeastCost(by_public_hops),
        choice=public_hops_choice,
        public=True,
        surveys=True,
        learned=True,
        public_cost=PUBLIC_COST,
    ),
    "least-cost": Method(rule=LeastCost(by_public_hops), choice=public_hops_choice, public=True),
    "annealed": Method(rule=Annealed(by_public_hops), choice=public_hops_choice, public=True),
    "random": Method(rule=LeastCost(by_public_hops), neighbours=1, choice=public_hops_choice, public=True),
}
