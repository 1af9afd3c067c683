"""Facts that servers tell each other of themselves, and the picture of the network that one server makes of them.

Each server numbers its own facts; a newer number replaces an older one.  A link is told by both of its ends.  Where
they disagree the smaller bandwidth counts, and the larger use: a server that boasts gains nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leeward.core.fields import FieldError, check_number
from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Direction, Link, Network, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFact:
    """A dedicated link as one of its ends tells it; `used`: of the capacity for what it sends."""

    number: int
    to: int
    bandwidth: float
    used: float
    cost: float
    delay: float

    def __post_init__(self) -> None:
        for name in ("bandwidth", "cost", "delay"):
            check_number(f"link {self.number}: {name}", getattr(self, name))
        check_number(f"link {self.number}: used", abs(self.used))  # sums of floats may end a little below 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A server as it tells it itself; the higher `version` is the newer one. Raises `FieldError` for what cannot be."""

    server: int
    version: int
    cpu: float
    cpu_used: float
    uplink: float
    uplink_used: float
    services: frozenset[int]
    links: tuple[LinkFact, ...]
    #: (server, learned quantile of the public path to it) (`paths.py`)
    paths: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("cpu", "uplink"):
            check_number(f"server {self.server}: {name}", getattr(self, name))
        for name in ("cpu_used", "uplink_used"):
            check_number(f"server {self.server}: {name}", abs(getattr(self, name)))
        for link in self.links:
            if link.to == self.server:
                raise FieldError(f"link {link.number}: to", link.to, "is its own server", remedy="name another")
        for to, quantile in self.paths:
            check_number(f"path to {to}", quantile)


def fact_of(me: int, network: Network, account: Account, version: int, paths: Mapping[int, float]) -> Fact:
    """The facts of a server, by its own account; `paths`: the quantiles that it has learned."""
    own = network.servers[me]
    links = [
        LinkFact(
            number=number, to=to, bandwidth=network.links[number].bandwidth,
            used=account.used.get(hop_resource(network, me, number), 0.0),
            cost=network.links[number].cost, delay=network.links[number].delay,
        )
        for to, number in network.neighbours[me]
    ]  # fmt: skip
    return Fact(
        server=me, version=version, cpu=own.cpu, cpu_used=account.used.get(Resource("cpu", me), 0.0),
        uplink=own.uplink, uplink_used=account.used.get(Resource("uplink", me), 0.0), services=own.services,
        links=tuple(links), paths=tuple(paths.items()),
    )  # fmt: skip


class Knowledge:
    """The newest facts that are known here, and which of them each neighbour has been sent."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction
        self._facts: dict[int, Fact] = {}
        self._heard: dict[int, float] = {}  # server -> when its newest facts came
        self._sent: dict[int, dict[int, int]] = {}  # neighbour -> server -> version
        self._forgotten: dict[int, int] = {}  # server -> version; a neighbour that has not forgotten it tells it again

    def take(self, facts: Iterable[Fact], now: float, sender: int | None = None) -> None:
        """Keep what is newer; its sender need not be sent it."""
        for fact in facts:
            known = self._facts.get(fact.server)
            newest = self._forgotten.get(fact.server, -1) if known is None else known.version
            if fact.version > newest:
                self._facts[fact.server] = fact
                self._heard[fact.server] = now
            if sender is not None:
                sent = self._sent.setdefault(sender, {})
                sent[fact.server] = max(fact.version, sent.get(fact.server, -1))

    def news(self, to: int) -> tuple[Fact, ...]:
        """Facts that a neighbour has not been sent yet, by server; they count as sent from here on."""
        sent = self._sent.setdefault(to, {})
        found = tuple(
            fact for server, fact in sorted(self._facts.items()) if server != to and fact.version > sent.get(server, -1)
        )
        sent |= {fact.server: fact.version for fact in found}
        return found

    def __len__(self) -> int:
        """Servers of which something is known."""
        return len(self._facts)

    def forget(self, before: float) -> None:
        """Servers of which nothing has been heard since are not there."""
        for server in [server for server, heard in self._heard.items() if heard < before]:
            self._forgotten[server] = self._facts.pop(server).version
            del self._heard[server]
            for sent in self._sent.values():
                sent.pop(server, None)

    def hosts(self, service: int) -> tuple[int, ...]:
        """Servers that host it, as far as is known, ascending."""
        return tuple(server for server, fact in sorted(self._facts.items()) if service in fact.services)

    def paths(self) -> Mapping[tuple[int, int], float]:
        """(from, to) -> the quantile of the public path, of those that are known."""
        return {(fact.server, to): quantile for fact in self._facts.values() for to, quantile in fact.paths}

    def picture(self) -> tuple[Network, Account]:
        """The network as it is known, and what is used of it."""
        links: dict[int, Link] = {}
        for fact in self._facts.values():
            for told in fact.links:
                if told.to in self._facts:
                    links[told.number] = _agreed(links.get(told.number), fact.server, told)
        servers = [
            Server(id=fact.server, cpu=fact.cpu, services=fact.services, uplink=fact.uplink)
            for _, fact in sorted(self._facts.items())
        ]
        network = Network(servers, dict(sorted(links.items())), direction=self._direction)
        account = Account(network)
        account.used |= self._used(network)
        return network, account

    def _used(self, network: Network) -> Mapping[Resource, float]:
        found: dict[Resource, float] = {}
        for fact in self._facts.values():
            found[Resource("cpu", fact.server)] = fact.cpu_used
            found[Resource("uplink", fact.server)] = fact.uplink_used
            for told in fact.links:
                if told.number in network.links:
                    resource = hop_resource(network, fact.server, told.number)
                    found[resource] = max(found.get(resource, 0.0), told.used)
        return found


def _agreed(known: Link | None, teller: int, told: LinkFact) -> Link:
    bandwidth = told.bandwidth if known is None else min(told.bandwidth, known.bandwidth)
    cost = told.cost if known is None else max(told.cost, known.cost)
    a, b = min(teller, told.to), max(teller, told.to)
    return Link(a=a, b=b, bandwidth=bandwidth, cost=cost, delay=told.delay)
