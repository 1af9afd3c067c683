"""Planners: the path of each packet over a network, from the feedback of those before it.

Readable and slow; `kernel_plan.py` has the same for the simulation, and a test compares them choice by choice.  The
path is planned for the packet's first slot: on a one-way network no node of it learns anything new of the links ahead
before it gets the packet, so that each would choose the same if it were asked then, but for its later tau.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.paths.choices import epsilon_greedy, stride
from leeward.policies.agiledart.paths.estimates import Cost, KlCost, Record, ThompsonCost, checked_fade, mean_cost
from leeward.policies.agiledart.paths.network import Network


class Planner(Protocol):
    """Chooses paths, and learns from the attempts that each of their links took."""

    def path(self, tau: int, rng: Random) -> tuple[int, ...]:
        """Positions of the links from source to sink for a packet that leaves at slot `tau` (1, 2, ...)."""

    def learn(self, path: Sequence[int], attempts: Sequence[int]) -> None:
        """The packet is over.  Raises ProtocolError for an unknown link or attempts below 1."""


class Recorded:
    """A planner that keeps a record of each link.

    `fade`: a link's earlier packets count as much at each packet that takes it; `age`: all links' at each slot.
    """

    def __init__(self, network: Network, *, fade: float = 1.0, age: float = 1.0) -> None:
        self.network = network
        self.records = [Record() for _ in network.links]
        self._fade, self._age = checked_fade(fade), checked_fade(age, "age")

    def learn(self, path: Sequence[int], attempts: Sequence[int]) -> None:
        """See Planner."""
        for link, count in zip(path, attempts, strict=True):
            if not 0 <= link < len(self.records):
                raise ProtocolError(f"The network has no link {link}.", remedy=f"It has {len(self.records)}.")
            self.records[link].learn(count, self._fade)
        if self._age < 1.0:
            aged = self._age ** sum(attempts)
            for record in self.records:
                record.forget(aged)


class ByCost(Recorded):
    """Algorithm 1: each node takes the link of least C = cost + J, J over all hops to the sink or the next few."""

    def __init__(
        self, network: Network, cost: Cost, *, hops: int | None = None, fade: float = 1.0, age: float = 1.0
    ) -> None:
        super().__init__(network, fade=fade, age=age)
        self._cost, self._hops = cost, hops

    def path(self, tau: int, rng: Random) -> tuple[int, ...]:
        """See Planner."""
        costs = [self._cost(record, tau, rng) for record in self.records]
        network = self.network
        ahead = network.to_sink(costs) if self._hops is None else network.over_hops(costs, self._hops)
        return along(network, costs, ahead)


class Kl(ByCost):
    """The paper's: costs by KL bounds; `hops`: how far J looks beyond the next node (None: to the sink)."""

    def __init__(self, network: Network, *, c: float = 0.3, hops: int | None = None) -> None:
        super().__init__(network, KlCost(c), hops=hops)


class Thompson(ByCost):
    """Ours: costs drawn, once for each packet, from the posterior of each link; fades forget where links drift."""

    def __init__(self, network: Network, *, fade: float = 1.0, age: float = 1.0, doubt: float = 0.0) -> None:
        super().__init__(network, ThompsonCost(doubt), fade=fade, age=age)


class Optimal:
    """The path of least mean delay, by one that knows every theta."""

    def __init__(self, network: Network, thetas: Sequence[float]) -> None:
        if len(thetas) != len(network.links) or not all(0 < theta <= 1 for theta in thetas):
            raise ConfigError("Not every link has a probability.", remedy="Give one in (0, 1] for each.")
        costs = [1.0 / theta for theta in thetas]
        ahead = network.to_sink(costs)
        self.delay, self._path = ahead[0], along(network, costs, ahead)  #: slots

    def path(self, tau: int, rng: Random) -> tuple[int, ...]:
        """See Planner."""
        return self._path

    def learn(self, path: Sequence[int], attempts: Sequence[int]) -> None:
        """It has nothing to learn."""


class NextHop(Recorded):
    """Algorithm 3 (appendix E.2): each node takes the link of least mean delay, or any with probability 1 / N(v)."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._visits = [0] * network.nodes

    def path(self, tau: int, rng: Random) -> tuple[int, ...]:
        """See Planner."""
        node, path = 0, []
        while node != self.network.sink:
            self._visits[node] += 1
            link = epsilon_greedy(self.network.out[node], self._visits[node], self._mean, rng)
            path.append(link)
            node = self.network.links[link][1]
        return tuple(path)

    def _mean(self, link: int) -> float:
        return mean_cost(self.records[link])


@dataclass(slots=True)
class _Tried:
    delay: float = 0.0
    visits: int = 0


class EndToEnd(Recorded):
    """Algorithm 2 (appendix E.1): the path of least confidence bound; those not tried come first, shorter ones before.

    The paper leaves its constant L and the order of the first trials open; delays count in slots.
    """

    def __init__(self, network: Network, *, constant: float = 1.0) -> None:
        super().__init__(network)
        self._paths = network.paths()
        self._first = trial_order([len(path) for path in self._paths])
        self._tried = {path: _Tried() for path in self._paths}
        self._scale = constant + 1.0
        self._sent = 0

    def path(self, tau: int, rng: Random) -> tuple[int, ...]:
        """See Planner."""
        if self._sent < len(self._paths):
            return self._paths[self._first[self._sent]]
        return min(self._paths, key=lambda path: self._bound(path, tau))

    def _bound(self, path: tuple[int, ...], tau: int) -> float:
        tried, visits = self._tried[path], sum(self.records[link].delivered for link in path)
        return tried.delay / tried.visits - math.sqrt(self._scale * math.log(tau) / visits)

    def learn(self, path: Sequence[int], attempts: Sequence[int]) -> None:
        """See Planner."""
        super().learn(path, attempts)
        self._sent += 1
        tried = self._tried[tuple(path)]
        tried.delay, tried.visits = tried.delay + sum(attempts), tried.visits + 1


def along(network: Network, costs: Sequence[float], ahead: Sequence[float]) -> tuple[int, ...]:
    """The links from the source on, each of least cost and J; ties go to the first."""
    node, path = 0, []
    while node != network.sink:
        link = min(network.out[node], key=lambda link: costs[link] + ahead[network.links[link][1]])
        path.append(link)
        node = network.links[link][1]
    return tuple(path)


def trial_order(lengths: Sequence[int]) -> list[int]:
    """Positions of paths, sorted by their lengths, as end-to-end tries them: those as long in steps of a stride."""
    order: list[int] = []
    for length in sorted(set(lengths)):
        before, size = len(order), lengths.count(length)
        order += [before + n * stride(size) % size for n in range(size)]
    return order
