"""A cluster with dedicated links and a public network, and streams for it, small enough for one machine. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from leeward.core import network as sites
from leeward.core.fields import FieldError, check_number, mapping, number, whole
from leeward.policies.bimodal.model.agents_file import Address, Agents
from leeward.policies.bimodal.model.stream_file import Stream
from leeward.policies.bimodal.model.values import Link, Network, Server

NIMBUS = "nimbus"
#: CPU for so many of each service that a server hosts, as on the paper's platform; a service of a stream needs 1.
INSTANCES = 2.0
MS = 1e-3
#: Packets of 9000 bytes would take most of a second on a slow path, and leave no room for the agents' messages.
MTU = 1500
#: A public uplink queues for long rather than drop, as those of the Internet do.
QUEUE_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """See `storm_conf/scenarios/bimodal.toml`."""

    seed: int
    nodes: int
    links: int
    link_mbps: float
    link_ms: float
    uplink_mbps: float
    public_ms: float
    sigma: float
    uneven: float
    every_ms: float
    services: int
    streams: int
    chain: int
    mbps: float
    rate: float
    window_s: float
    lease_s: float
    reallocate_s: float


#: Fields that may be 0.
_ZERO = ("seed", "links", "sigma", "uneven")


def scenario_of(document: object) -> Scenario:
    """The scenario of a parsed file; raises `FieldError` naming the first wrong field."""
    names = tuple(entry.name for entry in fields(Scenario))
    top = mapping("scenario", document, frozenset(names), required=names)
    values: dict[str, Any] = {
        entry.name: (whole if entry.type == "int" else number)(entry.name, top[entry.name])
        for entry in fields(Scenario)
    }
    found = Scenario(**values)
    for name in names:
        check_number(name, getattr(found, name), positive=name not in _ZERO)
    if not 2 <= found.nodes <= 20:
        raise FieldError("nodes", found.nodes, "is not from 2 to 20", remedy="give so many")
    most = found.nodes * (found.nodes - 1) // 2
    if found.links > most:
        raise FieldError("links", found.links, f"{found.nodes} servers have {most} pairs", remedy="give no more")
    return found


def servers_of(scenario: Scenario, rng: random.Random) -> Network:
    """Servers, and links grown by preferential attachment; each service is hosted by some server."""
    degree, pairs = [0] * scenario.nodes, list[tuple[int, int]]()
    while len(pairs) < scenario.links:
        grown = len(pairs) + 1
        a = grown if grown < scenario.nodes else rng.randrange(scenario.nodes)
        known = range(grown) if grown < scenario.nodes else range(scenario.nodes)
        b = rng.choices(known, weights=[1 + degree[v] for v in known])[0]
        pair = (min(a, b), max(a, b))
        if a != b and pair not in pairs:
            pairs.append(pair)
            degree[a] += 1
            degree[b] += 1
    servers = [_server(scenario, v, degree[v], rng) for v in range(scenario.nodes)]
    links = [Link(a=a, b=b, bandwidth=scenario.link_mbps, delay=scenario.link_ms * MS) for a, b in pairs]
    return Network(servers, links, direction="each")


def _server(scenario: Scenario, v: int, degree: int, rng: random.Random) -> Server:
    """It hosts 1 + d services: one by its number, so that none is missing, the others drawn."""
    hosted = min(scenario.services, 1 + degree)
    first = v % scenario.services
    others = rng.sample([service for service in range(scenario.services) if service != first], hosted - 1)
    return Server(
        id=v, cpu=INSTANCES * hosted, services=frozenset((first, *others)), uplink=scenario.uplink_mbps
    )  # fmt: skip


def name_of(server: int) -> str:
    """The node of a server."""
    return f"v{server + 1}"


def network_of(scenario: Scenario, servers: Network) -> sites.Network:
    """The network to emulate: each server a site of its own."""
    names = [name_of(v) for v in sorted(servers.servers)]
    links: dict[tuple[str, str], sites.Link] = {}
    for one in servers.links.values():
        link = sites.Link(delay_ms=scenario.link_ms, rate_mbps=one.bandwidth)
        links |= {(name_of(one.a), name_of(one.b)): link, (name_of(one.b), name_of(one.a)): link}
    return sites.Network(
        sites=tuple(sites.Site(id=name) for name in (*names, NIMBUS)),
        nodes=(
            *(sites.NetworkNode(id=name, site=name) for name in names),
            sites.NetworkNode(id=NIMBUS, site=NIMBUS, role=sites.NIMBUS),
        ),
        links=links,
        seed=scenario.seed,
        mtu=MTU,
        public=sites.Public(
            uplink_mbps=scenario.uplink_mbps, delay_ms=scenario.public_ms, sigma=scenario.sigma,
            uneven=scenario.uneven, every_ms=scenario.every_ms, queue_ms=QUEUE_MS,
        ),
    )  # fmt: skip


def agents_of(servers: Network, addresses: Mapping[int, Address]) -> Agents:
    """The agents' file."""
    return Agents(network=servers, addresses=addresses, nodes={v: name_of(v) for v in servers.servers})


def stream_of(name: str, scenario: Scenario, rng: random.Random) -> Stream:
    """Between two servers, with services of different kinds as long as there are some."""
    source, delivery = rng.sample(range(scenario.nodes), 2)
    kinds: list[int] = []
    while len(kinds) < scenario.chain:
        kinds += rng.sample(range(scenario.services), scenario.services)
    return Stream(
        name=name, source=name_of(source), delivery=name_of(delivery), services=tuple(kinds[: scenario.chain]),
        cpu=(1.0,) * scenario.chain, mbps=(scenario.mbps,) * (scenario.chain + 1), rate=scenario.rate,
    )  # fmt: skip
