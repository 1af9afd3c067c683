"""Tiny networks and tasks of bi-modal links from a seed, and the cheapest map by trying everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import inf

from leeward.policies.bimodal.model.values import Direction, Link, Network, Server, Task

SERVICES = 3


def tiny(rng: random.Random, *, direction: Direction = "shared", uplinks: bool = False) -> tuple[Network, Task]:
    """Three to six servers; bounds so tight that some tasks have no map."""
    count = rng.randint(3, 6)
    servers = [
        Server(
            id=v, cpu=rng.randint(1, 8), uplink=rng.randint(0, 6) if uplinks else 0.0,
            services=frozenset(rng.sample(range(SERVICES), rng.randint(1, SERVICES))),
        )
        for v in range(count)
    ]  # fmt: skip
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.55]
    links = [Link(a=a, b=b, bandwidth=rng.randint(1, 10), cost=rng.randint(1, 8)) for a, b in pairs]
    chain = rng.randint(1, 3)
    task = Task(
        name="t", source=rng.randrange(count), delivery=rng.randrange(count),
        services=tuple(rng.randrange(SERVICES) for _ in range(chain)),
        cpu=tuple(rng.randint(1, 4) for _ in range(chain)),
        bandwidth=tuple(rng.randint(1, 6) for _ in range(chain + 1)), max_null=rng.randint(0, 2),
    )  # fmt: skip
    return Network(servers, links, direction=direction), task


def limited(network: Network, task: Task, rng: random.Random) -> Task:
    """With pins, a barred server and places that are to be apart."""
    servers, chain = sorted(network.servers), len(task.services)
    pins = tuple(
        tuple(sorted(rng.sample(servers, rng.randint(1, 3)))) if rng.random() < 0.3 else () for _ in range(chain)
    )
    pairs = [(a, b) for a in range(chain + 2) for b in range(a + 1, chain + 2) if rng.random() < 0.3]
    barred = (rng.choice(servers),) if rng.random() < 0.3 else ()
    return replace(task, pins=pins if any(pins) else (), barred=barred, apart=tuple(pairs))


def best_by_trying(
    network: Network, task: Task, *, aggregated: bool, public: float | None = None,
    weight: Callable[[int, int], float] = lambda a, b: 1.0,
) -> float:  # fmt: skip
    """The least cost of all maps, by walking every one of them; inf if there is none.

    Written from the model alone: nothing of the searches or of the walks is used.
    """
    trying = _Trying(network, task, aggregated, public)
    trying.weight = weight
    trying.visit(task.source, 0, 0, "start", 0.0)
    return trying.best


class _Trying:
    def __init__(self, network: Network, task: Task, aggregated: bool, public: float | None) -> None:
        self.network, self.task, self.aggregated, self.public = network, task, aggregated, public
        self.cpu = {v: server.cpu for v, server in network.servers.items()}
        self.uplink = {v: server.uplink for v, server in network.servers.items()}
        each = network.direction == "each"
        self.key = {(n, v): (n, v if each else None) for n, one in network.links.items() for v in (one.a, one.b)}
        self.free = {key: network.links[key[0]].bandwidth for key in self.key.values()}
        self.best = inf
        self.weight: Callable[[int, int], float] = lambda a, b: 1.0
        self.at = {0: task.source, len(task.services) + 1: task.delivery}  # place in the chain -> server

    def visit(self, v: int, done: int, nulls: int, came: str, cost: float) -> None:
        """`came`: "start", "link" or "public"; "ran" once a service of this visit has run."""
        if cost >= self.best:
            return
        if done == len(self.task.services) and v == self.task.delivery:
            self.best = cost
            return
        self.run(v, done, cost)
        if came != "public" and (came != "link" or nulls < self.task.max_null):
            self.forward(v, done, nulls + (came == "link"), cost)
        if self.public is not None and came not in ("link", "public"):
            self.over_public(v, done, cost, self.public)

    def run(self, v: int, done: int, cost: float) -> None:
        task = self.task
        if done == len(task.services) or task.services[done] not in self.network.servers[v].services:
            return
        if self.cpu[v] >= task.cpu[done] and self.may(v, done):
            self.cpu[v] -= task.cpu[done]
            self.at[done + 1] = v
            self.visit(v, done + 1, 0, "ran", cost)
            del self.at[done + 1]
            self.cpu[v] += task.cpu[done]

    def may(self, v: int, done: int) -> bool:
        task, here = self.task, {*self.at.items(), (done + 1, v)}
        if v in task.barred or (task.pins and task.pins[done] and v not in task.pins[done]):
            return False
        return not any((a, u) in here and (b, u) in here for a, b in task.apart for u in self.network.servers)

    def forward(self, v: int, done: int, nulls: int, cost: float) -> None:
        need = self.task.bandwidth[done]
        for u, number in self.network.neighbours[v]:
            key = self.key[number, v]
            if self.free[key] >= need:
                self.free[key] -= need * self.aggregated
                self.visit(u, done, nulls, "link", cost + self.network.links[number].cost)
                self.free[key] += need * self.aggregated

    def over_public(self, v: int, done: int, cost: float, price: float) -> None:
        need, task = self.task.bandwidth[done], self.task
        if self.uplink[v] < need:
            return
        servers = self.network.servers.items()
        whole = done == len(task.services)
        ends = [task.delivery] if whole else [u for u, server in servers if task.services[done] in server.services]
        self.uplink[v] -= need * self.aggregated
        for u in ends:
            if u != v:
                self.visit(u, done, 0, "public", cost + price * self.weight(v, u))
        self.uplink[v] += need * self.aggregated
