"""Networks and tasks of the paper's platform (section 6.1), from a seed.  Bandwidths are in Mbit/s, times in s.

The paper does not say how growth by preferential attachment goes on beside N - 1 links, or stops below: a server joins
with one link, to a server drawn by its degree; further links join two servers drawn by their degree; with fewer links
the servers that come last have none.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate

from leeward.policies.bimodal.model.values import Direction, Link, Network, Server, Task

SERVICES = 25
CHAIN = 10  #: services of a task
INSTANCES = 2  #: k: CPU for so many of each service that a server hosts
RATE_MBPS = 1.0
DATA_MBIT = 800.0  #: 100 MB
UPLINK_MBPS, LINK_MBPS = (1.0, 2.0), (1.0, 10.0)
LINK_MS = (1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A point of the paper's figures."""

    servers: int = 100
    links: int = 99
    direction: Direction = "shared"
    tasks: int = 500
    per_hour: float = 60.0
    max_null: int = 1
    #: Ours: standard deviation of the log2 of a public path's rate over that of the paper's paths, which are alike.
    uneven: float = 0.0


def network(platform: Platform, rng: random.Random) -> Network:
    """Servers, and links grown by preferential attachment."""
    degree = [0] * platform.servers
    pairs: list[tuple[int, int]] = []
    joined = set[tuple[int, int]]()
    for number in range(platform.links):
        if number < platform.servers - 1:
            a, b = number + 1, _by_degree(degree[: number + 1], rng)
        else:
            a, b = _two(degree, joined, rng)
        degree[a] += 1
        degree[b] += 1
        pairs.append((a, b))
        joined.add((min(a, b), max(a, b)))
    servers = [
        Server(
            id=v, cpu=float(INSTANCES * _hosted(d)), uplink=rng.uniform(*UPLINK_MBPS),
            services=frozenset(rng.sample(range(SERVICES), _hosted(d))),
        )
        for v, d in enumerate(degree)
    ]  # fmt: skip
    links = [Link(a=a, b=b, bandwidth=rng.uniform(*LINK_MBPS), delay=rng.uniform(*LINK_MS)) for a, b in pairs]
    return Network(servers, links, direction=platform.direction)


def _hosted(degree: int) -> int:
    """Services of a server: 1 + d, of those that there are."""
    return min(SERVICES, 1 + degree)


def _by_degree(degree: list[int], rng: random.Random) -> int:
    """A server drawn in proportion to its degree; while none has a link, any."""
    total = list(accumulate(degree))
    if not total[-1]:
        return rng.randrange(len(degree))
    return rng.choices(range(len(degree)), cum_weights=total)[0]


def _two(degree: list[int], joined: set[tuple[int, int]], rng: random.Random) -> tuple[int, int]:
    """Two servers without a link between them."""
    while True:
        a, b = rng.randrange(len(degree)), _by_degree(degree, rng)
        if a != b and (min(a, b), max(a, b)) not in joined:
            return a, b


def arrivals(platform: Platform, rng: random.Random) -> list[tuple[float, Task, float]]:
    """(when, task, Mbit to process), by time: Poisson arrivals, ends and services drawn evenly."""
    found, now = [], 0.0
    for number in range(platform.tasks):
        now += rng.expovariate(platform.per_hour / 3600)
        task = Task(
            name=f"t{number:03}", source=rng.randrange(platform.servers), delivery=rng.randrange(platform.servers),
            services=tuple(rng.randrange(SERVICES) for _ in range(CHAIN)), cpu=(1.0,) * CHAIN,
            bandwidth=(RATE_MBPS,) * (CHAIN + 1), max_null=platform.max_null,
        )  # fmt: skip
        found.append((now, task, DATA_MBIT))
    return found
