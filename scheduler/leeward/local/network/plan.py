"""Which namespace, device and address each node has, and what relay and daemons are told. Pure: a spec in, text out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.core.network import NOTHING, Link, Network, Pair
from leeward.local.layout import ClusterSpec, layout_of, subnet_of

#: Names of all namespaces, and of the machine's own device, begin with it.
PREFIX = "lw-"
#: The device in each namespace.
DEVICE = "lw0"
#: The machine's own end: drivers, services and clients are there. Its links delay nothing.
OUTSIDE = "outside"
NAMESPACES = Path("/run/netns")
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A place that the relay reads packets from and writes packets to."""

    node: str  #: its id; OUTSIDE: the machine itself
    site: str  #: "" outside
    namespace: str | None  #: its name; None outside
    device: str
    address: str

    @property
    def path(self) -> Path | None:
        """The file that stands for the namespace."""
        return None if self.namespace is None else NAMESPACES / self.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """A stretch of a way that has delay, rate, queue and loss of its own."""

    link: Link
    sigma: float = 0.0  #: standard deviation of log2(rate / that of the link)
    every_ms: float = 0.0  #: the rate is drawn anew so often, if sigma is not 0

    def rate_mbps(self, seed: int, number: int, interval: int) -> float:
        """Mbit/s in an interval since the relay began, as pipes.c draws it for the pipe of this number."""
        rate = math.inf if self.link.rate_mbps is None else self.link.rate_mbps
        return rate * 2.0 ** (self.sigma * _normal(seed, number, interval)) if self.sigma else rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipes:
    """The relay's pipes by their numbers, and which of them packets go through, one after the other."""

    pipes: tuple[Pipe, ...]
    #: (from node, to node) -> unless a route says otherwise; on the public network the sender's uplink, then the path
    ways: Mapping[Pair, tuple[int, ...]]
    dedicated: Mapping[Pair, int]  #: (from node, to node) -> the pipe of the dedicated link between their sites

    @property
    def lines(self) -> list[str]:
        """As the relay is told them."""
        return [_line(pipe) for pipe in self.pipes]

    def over(self, nodes: Sequence[str]) -> tuple[int, ...]:
        """The way over dedicated links from the first of the nodes by way of the others to the last.

        Raises ConfigError for two in a row that no dedicated link joins.
        """
        for hop in pairwise(nodes):
            if hop not in self.dedicated:
                raise ConfigError(
                    f"way: no dedicated link leads from {hop[0]!r} to {hop[1]!r}.",
                    remedy="Add a [[link]] between their sites, or choose another way.",
                )
        return tuple(self.dedicated[hop] for hop in pairwise(nodes))


def prefix_of(folder: Path) -> str:
    """How the names of all that belongs to a run folder begin; also the name of the machine's own device."""
    return PREFIX + hashlib.sha256(str(Path(folder).resolve()).encode()).hexdigest()[:8]


def ends_of(spec: ClusterSpec) -> tuple[End, ...]:
    """The node of Nimbus, the workers, and last the machine itself. The spec has an emulated network."""
    network, layout, prefix = _network(spec), layout_of(spec), prefix_of(spec.dir)
    addresses = {network.nimbus.id: layout.host} | {node.name: node.address for node in layout.nodes}
    inside = tuple(
        End(
            node=node.id,
            site=node.site,
            namespace=f"{prefix}-{node.id}",
            device=DEVICE,
            address=addresses[node.id],
        )
        for node in (network.nimbus, *network.workers)
    )
    address = f"{subnet_of(spec.base_port)}.254"
    return (*inside, End(node=OUTSIDE, site="", namespace=None, device=prefix, address=address))


def end_of(spec: ClusterSpec, daemon: str) -> End:
    """Where a daemon runs."""
    address = layout_of(spec).host_of(daemon)
    return next(end for end in ends_of(spec) if end.address == address)


def pipes_of(network: Network, ends: Sequence[End]) -> Pipes:
    """All pipes of a network. Nodes of two sites whose link is shared go through one."""
    numbered = _Numbered()
    ways = {(a.node, b.node): numbered.way(network, a, b) for a, b in permutations(ends, 2)}
    dedicated = {}
    for a, b in permutations(ends, 2):
        link = None if OUTSIDE in (a.node, b.node) else network.dedicated(a.node, b.node)
        if link is not None:
            dedicated[a.node, b.node] = numbered.link("dedicated", link, a, b)
    return Pipes(pipes=tuple(numbered.pipes), ways=ways, dedicated=dedicated)


def relay_config(network: Network, ends: Sequence[End]) -> str:
    """Input of `relay.c`."""
    pipes, numbers = pipes_of(network, ends), numbers_of(ends)
    lines = [f"net {ends[0].address.rpartition('.')[0]} {network.seed} {network.mtu}"]
    lines += [f"end {end.path or '-'} {end.device} {end.address.rpartition('.')[2]}" for end in ends]
    lines += pipes.lines
    lines += [f"pair {numbers[a]} {numbers[b]} {words(way)}" for (a, b), way in pipes.ways.items()]
    return "\n".join(lines) + "\n"


def numbers_of(ends: Sequence[End]) -> dict[str, int]:
    """Node -> the relay's number of its end."""
    return {end.node: number for number, end in enumerate(ends)}


def words(way: Iterable[int]) -> str:
    """A way as the relay reads it."""
    return " ".join(map(str, way))


def hosts(ends: Iterable[End]) -> str:
    """/etc/hosts of every namespace: each node by its id. Nimbus looks its own name up, and others their peers'."""
    lines = ["127.0.0.1 localhost", *(f"{end.address} {end.node}" for end in ends)]
    return "\n".join(lines) + "\n"


def set_up(end: End, mtu: int, *, ipv6: bool) -> str:
    """Lines for `ip -batch`, in the end's namespace. The device stays when no relay reads it.

    `ipv6`: this kernel has IPv6, which then is told to look for no neighbours.
    """
    device = end.device
    loopback = ["link set lo up"] if end.namespace else []
    silent = [f"link set {device} addrgenmode none"] if ipv6 else []
    return "\n".join(
        [
            *loopback,
            f"tuntap add dev {device} mode tun",
            f"link set {device} mtu {mtu} txqueuelen 10000",
            *silent,
            f"addr add {end.address}/24 dev {device}",
            f"link set {device} up",
            "",
        ]
    )


def inside(end: End, hosts_file: Path, command: Sequence[str]) -> list[str]:
    """The command line that runs a command in a node's namespace, under the node's host name, as the same process."""
    if end.path is None:
        return list(command)
    script = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'
    enter = ["nsenter", f"--net={end.path}", "unshare", "--mount", "--uts"]
    return [*enter, "sh", "-c", script, str(hosts_file), end.node, *command]


class _Numbered:
    """Numbers pipes in the order in which they are asked for; the same thing is asked for under the same key."""

    def __init__(self) -> None:
        self.pipes: list[Pipe] = []
        self._numbers: dict[Hashable, int] = {}

    def way(self, network: Network, a: End, b: End) -> tuple[int, ...]:
        """From one end to another, unless a route says otherwise."""
        if OUTSIDE in (a.node, b.node):
            return (self.link("link", NOTHING, a, b),)
        link, public = network.pair(a.node, b.node), network.public
        if public is None or not network.is_public(a.node, b.node):
            return (self.link("link", link, a, b),)
        uplink = Link(rate_mbps=network.uplink_mbps(a.node), queue_ms=public.queue_ms)
        return (
            self._number(("uplink", a.node), Pipe(link=uplink)),
            self._number(("path", a.node, b.node), Pipe(link=link, sigma=public.sigma, every_ms=public.every_ms)),
        )

    def link(self, kind: str, link: Link, a: End, b: End) -> int:
        """One for all nodes of the two sites if it is shared, else one for each pair of nodes."""
        key = (kind, "sites", a.site, b.site) if link.shared else (kind, "nodes", a.node, b.node)
        return self._number(key, Pipe(link=link))

    def _number(self, key: Hashable, pipe: Pipe) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.pipes)
            self.pipes.append(pipe)
        return self._numbers[key]


def _line(pipe: Pipe) -> str:
    link = pipe.link
    rate = 0 if link.rate_mbps is None else link.rate_mbps * 1e6 / 8
    queue_ns = "-" if link.queue_ms is None else round(link.queue_ms * 1e6)
    queue_packets = "-" if link.queue_packets is None else link.queue_packets
    varies = f"{pipe.sigma!r} {round(pipe.every_ms * 1e6)}"
    return f"pipe {round(link.delay_ms * 1e6)} {rate!r} {link.loss!r} {queue_ns} {queue_packets} {varies}"


def _normal(seed: int, number: int, interval: int) -> float:
    """`normal` of pipes.c."""
    state = _mixed(_mixed(seed + _GOLDEN * (number + 1)) + interval)
    one, two = ((_mixed(state + step * _GOLDEN) >> 11) / 2**53 for step in (1, 2))
    return math.sqrt(-2 * math.log1p(-one)) * math.cos(2 * math.pi * two)


def _mixed(value: int) -> int:
    """`mixed` of pipes.c."""
    value %= 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def _network(spec: ClusterSpec) -> Network:
    assert spec.network is not None and spec.emulated, "this cluster has no emulated network"
    return spec.network
