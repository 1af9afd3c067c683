"""The network between nodes: sites, the nodes in them, and the links that join the sites. Values only.

The local cluster emulates such a network, and a simulator may compute with the same one. The way between two
nodes is the `Link` that `Network.pair` gives, one direction at a time:

- both in one site: the site's `inside`;
- in two sites that a link joins: this link;
- else the links on the way with the least delay: delays add up, the smallest rate counts, losses are independent.

With a public network (`Public`) two workers in different sites reach each other over it, also where a link joins their
sites: links are then dedicated, and carry only traffic that is told to take them (`Network.dedicated`). The node of
Nimbus is not part of such a network: nothing delays its traffic, so that of Storm itself, ZooKeeper and Redis does not
compete with the stream.

`leeward.core.network_document` reads and writes a network as a document (a parsed TOML file).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from leeward.core.errors import ConfigError

WORKER, NIMBUS = "worker", "nimbus"
ROLES = (WORKER, NIMBUS)
QUEUE_MS = 200.0

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The way of one node's packets to another node."""

    delay_ms: float = 0.0  #: one way, beside the time that the rate takes
    rate_mbps: float | None = None  #: Mbit/s of IP packets; None: as fast as the machine
    loss: float = 0.0  #: probability that a packet is lost, each on its own
    queue_ms: float | None = QUEUE_MS  #: a packet that would wait longer for the rate is dropped
    queue_packets: int | None = None  #: in place of queue_ms: packets that may wait
    shared: bool = False  #: all nodes of the two sites share rate and queue; else each pair has its own

    def then(self, other: Link) -> Link:
        """One link for two in a row; the queue is that of the slower one."""
        narrow = self if _rate(self) <= _rate(other) else other
        return Link(
            delay_ms=self.delay_ms + other.delay_ms,
            rate_mbps=narrow.rate_mbps,
            loss=1 - (1 - self.loss) * (1 - other.loss),
            queue_ms=narrow.queue_ms,
            queue_packets=narrow.queue_packets,
            shared=narrow.shared,
        )


#: A node and itself.
NOTHING = Link()


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """The network between workers of different sites: a node's uplink, and behind it a path to each other node."""

    uplink_mbps: float  #: Mbit/s of IP packets, for all that a node sends over the public network
    delay_ms: float = 0.0  #: one way, beside the time that uplink and path take
    sigma: float = 0.0  #: standard deviation of log2(a path's rate / its median), normal; 0: the rate is constant
    every_ms: float = 1000.0  #: the rate of each path is drawn anew so often
    uneven: float = 0.0  #: standard deviation of log2(a path's median rate / the uplink), normal, drawn once
    queue_ms: float | None = QUEUE_MS  #: of uplink and path: a packet that would wait longer is dropped; None: no bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place whose nodes are near each other."""

    id: str
    inside: Link = NOTHING  #: between two nodes of this site


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNode:
    """A machine."""

    id: str  #: also its host name
    site: str
    role: str = WORKER  #: worker: has a supervisor; nimbus: has Nimbus, ZooKeeper and Redis
    #: facts of the machine, as policies read them: its supervisor's `supervisor.scheduler.meta`
    meta: Mapping[str, str] = field(default_factory=dict, hash=False)
    uplink_mbps: float | None = None  #: Mbit/s into the public network; None: as that says


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Sites, nodes and links. Construction checks that they fit; raises ConfigError."""

    sites: tuple[Site, ...]
    nodes: tuple[NetworkNode, ...]
    #: (from site, to site), one direction
    links: Mapping[Pair, Link] = field(default_factory=dict)
    seed: int = 0  #: of the losses, and of the rates of public paths
    mtu: int = 9000  #: largest IP packet, in bytes
    public: Public | None = None  #: None: links carry everything
    _sites: Mapping[str, Site] = field(init=False, repr=False, compare=False)
    _nodes: Mapping[str, NetworkNode] = field(init=False, repr=False, compare=False)
    _routes: Mapping[Pair, Link] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sites", _by_id("site", self.sites))
        object.__setattr__(self, "_nodes", _by_id("node", self.nodes))
        self._check()
        routes = {(a, b): link for a in self._sites for b, link in _routes_from(a, self.links).items()}
        object.__setattr__(self, "_routes", routes)
        if self.public is None:
            self._check_joined()

    @property
    def nimbus(self) -> NetworkNode:
        """The node of Nimbus, ZooKeeper and Redis."""
        return next(node for node in self.nodes if node.role == NIMBUS)

    @property
    def workers(self) -> tuple[NetworkNode, ...]:
        """The nodes that have a supervisor, in the order given."""
        return tuple(node for node in self.nodes if node.role == WORKER)

    def node(self, id: str) -> NetworkNode:
        """The node called `id`; raises KeyError."""
        return self._nodes[id]

    def pair(self, a: str, b: str) -> Link:
        """The way of packets from node `a` to node `b`; raises KeyError for an unknown node.

        Over the public network the rate is the median of the path; the uplink may be slower.
        """
        here, there = self._nodes[a], self._nodes[b]
        if a == b or (self.public is not None and not self._workers(a, b)):
            return NOTHING
        if self.public is not None and here.site != there.site:
            return _public_link(self.public, self.path_median_mbps(a, b))
        return self.between(here.site, there.site)

    def between(self, here: str, there: str) -> Link:
        """The way of packets from a node of one site to another node of another, or of the same; raises KeyError.

        Over the public network the rate is that of the uplink, as paths are of nodes.
        """
        if here == there:
            return self._sites[here].inside
        return self._routes[here, there] if self.public is None else _public_link(self.public, self.public.uplink_mbps)

    def is_public(self, a: str, b: str) -> bool:
        """Whether packets from node `a` to node `b` take the public network; raises KeyError for an unknown node."""
        return self.public is not None and self._workers(a, b) and self._nodes[a].site != self._nodes[b].site

    def dedicated(self, a: str, b: str) -> Link | None:
        """The link from the site of worker `a` to that of worker `b`, if links are dedicated and one joins them.

        Raises KeyError for an unknown node.
        """
        return self.links.get((self._nodes[a].site, self._nodes[b].site)) if self.is_public(a, b) else None

    def uplink_mbps(self, node: str) -> float:
        """Mbit/s of all that a node sends over the public network, which there has to be.

        Raises KeyError for an unknown node, and ConfigError without a public network.
        """
        own, public = self._nodes[node].uplink_mbps, self.public
        if public is None:
            raise ConfigError("network: it has no public network.", remedy="Add [public] uplink_mbps.")
        return public.uplink_mbps if own is None else own

    def path_median_mbps(self, a: str, b: str) -> float:
        """Mbit/s of the path from node `a` to node `b` in half of the time, from seed and ids alone.

        Raises as `uplink_mbps`.
        """
        uplink, public = self.uplink_mbps(a), self.public
        if public is None or public.uneven == 0:
            return uplink
        return float(uplink * 2 ** Random(f"{self.seed} {a} {b}").gauss(0.0, public.uneven))

    def round_trip_ms(self, a: str, b: str) -> float:
        """The delay there and back, without waiting and without the time that the rate takes."""
        return self.pair(a, b).delay_ms + self.pair(b, a).delay_ms

    def _check(self) -> None:
        hosts = [node.id for node in self.nodes if node.role == NIMBUS]
        if len(hosts) != 1:
            raise ConfigError(
                f"node: role {NIMBUS!r} is that of {', '.join(hosts) or 'no node'}.",
                remedy=f'Give one node `role = "{NIMBUS}"`, or call one "cloud": it has Nimbus, ZooKeeper and Redis.',
            )
        if not self.workers:
            raise ConfigError(
                f"node: none has the role {WORKER!r}.", remedy="Add a node without a role: it has a supervisor."
            )
        for node in self.nodes:
            self._check_site(f"node {node.id!r}: site", node.site)
            self._check_uplink(node)
        for a, b in self.links:
            for end in (a, b):
                self._check_site(f"link {a!r} to {b!r}", end)
            if a == b:
                raise ConfigError(
                    f"link {a!r} to {b!r}: joins a site with itself.", remedy="Say `inside` at the site instead."
                )

    def _check_site(self, where: str, id: str) -> None:
        if id not in self._sites:
            raise ConfigError(
                f"{where}: {id!r} is no site.", remedy=f"There are: {', '.join(self._sites)}. Or add [[site]] id."
            )

    def _check_uplink(self, node: NetworkNode) -> None:
        if node.uplink_mbps is not None and (self.public is None or node.role != WORKER):
            why = "there is no public network" if self.public is None else "the node is no worker"
            raise ConfigError(
                f"node {node.id!r}: uplink_mbps: {node.uplink_mbps:g} has no meaning: {why}.",
                remedy="Leave it out." if self.public else "Leave it out, or add [public] uplink_mbps.",
            )

    def _workers(self, *nodes: str) -> bool:
        return all(self._nodes[node].role == WORKER for node in nodes)

    def _check_joined(self) -> None:
        used = sorted({node.site for node in self.nodes})
        for a in used:
            for b in used:
                if a != b and (a, b) not in self._routes:
                    raise ConfigError(
                        f"link: no way leads from site {a!r} to site {b!r}.",
                        remedy=f'Add [[link]] between = ["{a}", "{b}"].',
                    )


def _by_id(kind: str, things: Iterable[Site] | Iterable[NetworkNode]) -> dict[str, Site | NetworkNode]:
    found: dict[str, Site | NetworkNode] = {}
    for thing in things:
        if thing.id in found:
            raise ConfigError(f"{kind}: {thing.id!r} is there twice.", remedy="Give each an id of its own.")
        found[thing.id] = thing
    return found


def _public_link(public: Public, rate_mbps: float) -> Link:
    return Link(delay_ms=public.delay_ms, rate_mbps=rate_mbps, queue_ms=public.queue_ms)


def _rate(link: Link) -> float:
    return math.inf if link.rate_mbps is None else link.rate_mbps


def _routes_from(start: str, links: Mapping[Pair, Link]) -> dict[str, Link]:
    """Site -> what leads there from `start`: its own link, else the way of least delay (ties: fewer links, ids)."""
    after: dict[str, list[tuple[str, Link]]] = {}
    for (a, b), link in links.items():
        after.setdefault(a, []).append((b, link))
    found: dict[str, Link] = {}
    heap: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 1, (start,))]
    best: dict[tuple[str, ...], Link] = {(start,): NOTHING}
    while heap:
        delay, length, way = heapq.heappop(heap)
        if way[-1] in found:
            continue
        found[way[-1]] = best.pop(way)
        for site, link in after.get(way[-1], ()):
            if site not in found:
                longer = (*way, site)
                best[longer] = link if length == 1 else found[way[-1]].then(link)
                heapq.heappush(heap, (delay + link.delay_ms, length + 1, longer))
    found |= dict(after.get(start, ()))
    del found[start]
    return found
