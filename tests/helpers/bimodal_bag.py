"""Agents of bi-modal links in one process, and the messages between them in any order."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

from leeward.core.peers import Send
from leeward.policies.bimodal.mapping.agent import Agent, Times
from leeward.policies.bimodal.mapping.flows import amounts, flows_of
from leeward.policies.bimodal.mapping.messages import Message
from leeward.policies.bimodal.mapping.play import agents_of
from leeward.policies.bimodal.mapping.rules import Method
from leeward.policies.bimodal.model.resources import Resource, uses
from leeward.policies.bimodal.model.values import Network

TIMES = Times(mapping=10.0, probe=5.0, lease=30.0, renewal=10.0)
MOVING = replace(TIMES, reallocation=7.0, silence=30.0)
#: Rounds of a renewal's time in which every deadline and lease is over.
ROUNDS = 16
#: Tasks are small, so that a machine that delivers the oldest message each time ends.
ENOUGH = 20_000


class Bag:
    """Agents, and the messages between them, in any order. A dead server receives nothing."""

    def __init__(self, network: Network, method: Method, seed: int, times: Times = TIMES) -> None:
        self.network = network
        self.agents: dict[int, Agent] = agents_of(network, method, times)
        self.messages: list[tuple[int, int, Message]] = []
        self.dead: set[int] = set()
        self.now, self.rng = 0.0, random.Random(seed)

    def send(self, sender: int, sends: list[Send]) -> None:
        self.messages += [(sender, to, message) for to, message in sends]

    def deliver(self, position: int) -> None:
        sender, to, message = self.messages.pop(position)
        if to not in self.dead:
            self.send(to, self.agents[to].receive(sender, message, self.now, self.rng))

    def deliver_all(self) -> None:
        for _ in range(ENOUGH):
            if not self.messages:
                return
            self.deliver(self.rng.randrange(len(self.messages)))
        raise AssertionError("messages go on for ever")

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for server, agent in self.agents.items():
            if server not in self.dead:
                self.send(server, agent.tick(self.now, self.rng))

    def gossip(self) -> None:
        for server, agent in self.alive().items():
            self.send(server, agent.gossip(sorted(self.alive()), self.now, self.rng))

    def wanted(self, server: int) -> dict[Resource, float]:
        """A server is to have reserved so much: the maps of running tasks, their hops by their present ways."""
        found: dict[Resource, float] = defaultdict(float)
        for agent in self.alive().values():
            for name, portal in agent.portals.items():
                if portal.status != "running" or portal.walk is None:
                    continue
                for at, resource, amount in uses(portal.walk, portal.spec, self.network):
                    if concerns(self.network, resource, at, server):
                        found[resource] += amount
                for sender in self.alive().values():
                    for sent in sender.flows:
                        if (sent.flow.task, sent.way.attempt) == (name, portal.attempt) and sent.way.number:
                            mapped = next(f for f in flows_of(portal.walk, portal.spec) if f.hop == sent.flow.hop)
                            for flow, sign in ((mapped, -1), (sent.flow, 1)):
                                for resource, amount in amounts(flow, self.network).items():
                                    if concerns(self.network, resource, flow.sender, server):
                                        found[resource] += sign * amount
        return {resource: amount for resource, amount in found.items() if abs(amount) > 1e-9}

    def alive(self) -> dict[int, Agent]:
        return {server: agent for server, agent in self.agents.items() if server not in self.dead}


def concerns(network: Network, resource: Resource, at: int, server: int) -> bool:
    """A link is in the accounts of both of its ends, anything else in that of the server where it is."""
    if resource.kind == "link":
        return server in (network.links[resource.number].a, network.links[resource.number].b)
    return at == server
