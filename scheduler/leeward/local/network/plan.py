"""Which namespace, device and address each node has, and what relay and daemons are told. Pure: a spec in, text out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.core.network import NOTHING, Link, Network
from leeward.local.layout import ClusterSpec, layout_of, subnet_of

#: Names of all namespaces, and of the machine's own device, begin with it.
PREFIX = "lw-"
#: The device in each namespace.
DEVICE = "lw0"
#: The machine's own end: drivers, services and clients are there. Its links delay nothing.
OUTSIDE = "outside"
NAMESPACES = Path("/run/netns")


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


def relay_config(network: Network, ends: Sequence[End]) -> str:
    """Input of `relay.c`. Nodes of two sites whose link is shared go through one pipe."""
    subnet = ends[0].address.rpartition(".")[0]
    lines = [f"net {subnet} {network.seed} {network.mtu}"]
    lines += [f"end {end.path or '-'} {end.device} {end.address.rpartition('.')[2]}" for end in ends]
    pipes: dict[tuple[str, ...], int] = {}
    for a, here in enumerate(ends):
        for b, there in enumerate(ends):
            if a == b:
                continue
            link = NOTHING if OUTSIDE in (here.node, there.node) else network.pair(here.node, there.node)
            key = ("sites", here.site, there.site) if link.shared else ("nodes", here.node, there.node)
            if key not in pipes:
                lines.append(_pipe(link))
            lines.append(f"pair {a} {b} {pipes.setdefault(key, len(pipes))}")
    return "\n".join(lines) + "\n"


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


def _pipe(link: Link) -> str:
    rate = 0 if link.rate_mbps is None else link.rate_mbps * 1e6 / 8
    queue_ns = "-" if link.queue_ms is None else round(link.queue_ms * 1e6)
    queue_packets = "-" if link.queue_packets is None else link.queue_packets
    return f"pipe {round(link.delay_ms * 1e6)} {rate!r} {link.loss!r} {queue_ns} {queue_packets}"


def _network(spec: ClusterSpec) -> Network:
    assert spec.network is not None and spec.emulated, "this cluster has no emulated network"
    return spec.network
