"""Accounts of what is free on servers and links: of a whole network, or of one server and its links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import PUBLIC, Walk


class Resource(NamedTuple):
    """A server's CPU or uplink, or a link's capacity (`to_a`: of its direction towards `a`, if each has its own)."""

    kind: Literal["cpu", "uplink", "link"]
    number: int
    to_a: bool = False


def uses(walk: Walk, task: Task, network: Network) -> Iterator[tuple[int, Resource, float]]:
    """(server that visits, resource, amount) of each visit and of each hop, from the source on."""
    for visit in walk.visits:
        before = visit.before
        if before is not None:
            amount = task.bandwidth[before.done]
            yield before.at, hop_resource(network, before.at, visit.link), amount
        if visit.ran:
            yield visit.at, Resource("cpu", visit.at), sum(task.cpu[visit.done - visit.ran : visit.done])


def hop_resource(network: Network, sender: int, link: int) -> Resource:
    """The resource that a hop uses: the sender's uplink, or the link's capacity."""
    if link == PUBLIC:
        return Resource("uplink", sender)
    return Resource("link", *network.channel(link, sender))


def total(walk: Walk, task: Task, network: Network) -> dict[Resource, float]:
    """Resource -> amount that the walk uses of it in all."""
    found: dict[Resource, float] = defaultdict(float)
    for _, resource, amount in uses(walk, task, network):
        found[resource] += amount
    return dict(found)


class Account:
    """Used amounts beside capacities. Amounts are added and subtracted by walk, so a used-up one comes back to 0."""

    #: Sums of decimal fractions differ from what they should be by less than this part.
    SLACK = 1e-9

    def __init__(self, network: Network) -> None:
        self._network = network
        self.used: dict[Resource, float] = defaultdict(float)

    def capacity(self, resource: Resource) -> float:
        """Of a server or link."""
        if resource.kind == "link":
            return self._network.links[resource.number].bandwidth
        server = self._network.servers[resource.number]
        return server.cpu if resource.kind == "cpu" else server.uplink

    def free(self, resource: Resource) -> float:
        """The amount that is left of it."""
        return self.capacity(resource) - self.used.get(resource, 0.0)

    def load(self, server: int, more: float = 0.0) -> float:
        """Used to total CPU of a server, if `more` is used; 0 of a server without any."""
        total = self._network.servers[server].cpu
        return (self.used.get(Resource("cpu", server), 0.0) + more) / total if total else 0.0

    def has(self, resource: Resource, amount: float) -> bool:
        """There is room for so much of one resource."""
        return amount <= self.free(resource) + self.SLACK * self.capacity(resource)

    def fits(self, amounts: Mapping[Resource, float]) -> bool:
        """There is room for all of it."""
        return all(self.has(resource, amount) for resource, amount in amounts.items())

    def take(self, amounts: Mapping[Resource, float]) -> None:
        """Reserve it."""
        for resource, amount in amounts.items():
            self.used[resource] += amount

    def give_back(self, amounts: Mapping[Resource, float]) -> None:
        """Release it."""
        for resource, amount in amounts.items():
            self.used[resource] -= amount
            if abs(self.used[resource]) <= self.SLACK * self.capacity(resource):
                del self.used[resource]
