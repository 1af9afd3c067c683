"""Agents in one process: messages are delivered in the order in which they were sent. For experiments and tests."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.core.errors import LeewardError
from leeward.core.peers import Letter, Send
from leeward.policies.bimodal.mapping.agent import Agent, Portal, Times
from leeward.policies.bimodal.mapping.rules import Method
from leeward.policies.bimodal.model.resources import Account
from leeward.policies.bimodal.model.values import Network, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """The end of one task's mapping, and the messages that it took by kind."""

    portal: Portal
    messages: Counter[str]


def agents_of(
    network: Network, method: Method, times: Times | None = None, account: Account | None = None
) -> dict[int, Agent]:
    """One for each server; all know which services are hosted where. `account`: of all together, else each has one."""

    def hosts(service: int) -> tuple[int, ...]:
        return network.hosts.get(service, ())

    return {
        v: Agent(v, network.around(v), method=method, hosts=hosts, times=times, account=account)
        for v in sorted(network.servers)
    }


def gossip_round(agents: Mapping[int, Agent], *, now: float, rng: random.Random) -> int:
    """Every server tells its neighbours what is new, once; the messages that took."""
    peers = sorted(agents)
    sends = [(v, send) for v, agent in agents.items() for send in agent.gossip(peers, now, rng)]
    return deliver(agents, sends, now=now, rng=rng).total()


class TooManyError(LeewardError):
    """A computation sends more messages than it may."""


def deliver(
    agents: Mapping[int, Agent], sends: Iterable[tuple[int, Send]], *, now: float, rng: random.Random,
    most: int = 10_000_000,
) -> Counter[str]:  # fmt: skip
    """Deliver messages, (sender, what it sends), and what follows from them, until there is none; how many by kind.

    Those to a server that is not there are lost. Raises TooManyError after `most`.
    """
    queue, counts, total = deque(sends), Counter[str](), 0
    while queue:
        sender, (to, message) = queue.popleft()
        if to not in agents:
            continue
        counts[type(message).__name__] += 1
        total += 1
        if total > most:
            raise TooManyError(f"more than {most} messages for one task.", remedy="Choose a rule that prunes.")
        queue.extend((to, send) for send in agents[to].receive(sender, message, now, rng))
    return counts


class PlayedPost:
    """A policy's letters to agents in one process (`control.ports.Post`). `now`: the agents' time, which tests set."""

    CLIENT = -1

    def __init__(self, agents: Mapping[int, Agent], rng: random.Random) -> None:
        self.agents, self.now, self._rng = agents, 0.0, rng

    def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
        """Deliver them and all that follows; (server, answer) of each answer. An agent that is not there gives none."""
        found: list[tuple[int, Any]] = []
        for letter in letters:
            if letter.to not in self.agents:
                continue
            sends = self.agents[letter.to].receive(self.CLIENT, letter.message, self.now, self._rng)
            found += [(letter.to, send.message) for send in sends if send.to == self.CLIENT]
            onward = [(letter.to, send) for send in sends if send.to != self.CLIENT]
            deliver(self.agents, onward, now=self.now, rng=self._rng)
        return found


def map_task(
    agents: Mapping[int, Agent], task: Task, *, now: float, rng: random.Random, most: int = 10_000_000
) -> Mapped:
    """Map one task to the end: it runs, or it is refused. Raises TooManyError after `most` messages."""
    root = agents[task.delivery]
    counts = deliver(agents, [(root.me, send) for send in root.submit(task, now)], now=now, rng=rng, most=most)
    return Mapped(portal=root.portals[task.name], messages=counts)
