"""Which daemon of a local cluster listens where. Pure: a spec in, ports and names out.

Every port follows from the base port B (default 6600), so two clusters collide only if their blocks overlap:

    B + 21             ZooKeeper
    B + 22             Redis
    B + 27             Nimbus (6627, Storm's own default, for the default base)
    B + 30 + i         Thrift of supervisor i = 1, 2, ...
    B + 100 ...        worker slots, supervisor after supervisor

So do the addresses of an emulated network: one of the 512 subnets of 198.18.0.0/15, which is reserved for tests of
networks and leads nowhere. In it .1 is the node of Nimbus, ZooKeeper and Redis, .11 ... are the workers, and .254 is
the machine itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward.core.errors import ConfigError
from leeward.core.network import Network

SUPERVISORS_MAX = 60
LOOPBACK = "127.0.0.1"
RELAY = "relay"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The shape of a local cluster. Raises ConfigError for numbers that make no cluster."""

    #: run folder: configuration, data, logs and cluster.json; taken as absolute
    dir: Path
    #: first port of the cluster's block
    base_port: int = 6600
    #: number of supervisors, each a node of its own name (127.0.0.11, 127.0.0.12, ...); with a network, its workers'
    supervisors: int = 5
    #: worker slots of each supervisor
    slots: int = 2
    #: Leeward's scheduler plugin in Nimbus; without it Storm's default scheduler places everything
    plugin: bool = True
    #: memory that Redis may use, in MB; beyond it it refuses writes
    redis_mb: int = 1024
    #: Storm install to use; None means the one that set-up made
    storm_home: Path | None = None
    #: ZooKeeper answers when its disk has what was written, as a real one does, and not before
    zookeeper_sync: bool = False
    #: workers start from a class-data archive, or list their classes for one (`leeward.local.archive`)
    class_archive: bool = True
    #: Storm's servers, which have no setting for it, listen on loopback addresses alone (`leeward.local.loopback`)
    loopback: bool = True
    #: settings over those of storm_conf/storm.yaml
    settings: Mapping[str, object] = field(default_factory=dict)
    #: nodes and what is between them; None: all nodes on loopback addresses
    network: Network | None = None
    #: the network is emulated: each node in a namespace of its own. Else its nodes are on loopback addresses
    emulated: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "dir", Path(self.dir).resolve())
        if self.network is None:
            object.__setattr__(self, "emulated", False)
        else:
            object.__setattr__(self, "supervisors", len(self.network.workers))
        require("supervisors", self.supervisors, 1, SUPERVISORS_MAX)
        require("slots", self.slots, 1, 100)
        require("redis_mb", self.redis_mb, 1, 1 << 20)
        last = 100 + self.supervisors * self.slots
        require("base_port", self.base_port, 1024, 65536 - last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One supervisor."""

    #: node id: the supervisor's host name as Storm knows it
    name: str
    #: where its servers listen
    address: str
    #: name of its daemon: supervisor-1, supervisor-2, ...
    daemon: str
    #: port of the supervisor's own Thrift service
    thrift_port: int
    #: ports of its worker slots
    ports: tuple[int, ...]
    #: facts of the node, as policies read them (`supervisor.scheduler.meta`)
    meta: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names and ports of everything in one cluster."""

    zookeeper: int
    redis: int
    nimbus: int
    nodes: tuple[Node, ...]
    #: address of ZooKeeper, Redis and Nimbus
    host: str = LOOPBACK
    #: whether a relay joins the nodes
    emulated: bool = False

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Names of all daemons: one wave is started when those before it are up."""
        relay = (RELAY,) if self.emulated else ()
        return relay, ("zookeeper", "redis"), ("nimbus", *(node.daemon for node in self.nodes))

    @property
    def daemons(self) -> tuple[str, ...]:
        """Names of all daemons, in the order of their start."""
        return tuple(name for wave in self.waves for name in wave)

    def port_of(self, daemon: str) -> int:
        """The port that shows that a daemon is up; 0 for the relay, which has none. Raises ConfigError for others."""
        ports = {RELAY: 0} if self.emulated else {}
        ports |= {"zookeeper": self.zookeeper, "redis": self.redis, "nimbus": self.nimbus}
        ports.update((node.daemon, node.thrift_port) for node in self.nodes)
        if daemon not in ports:
            raise ConfigError(
                f"daemon: {daemon!r} is not a daemon of this cluster.", remedy=f"One of {', '.join(ports)}."
            )
        return ports[daemon]

    def host_of(self, daemon: str) -> str:
        """The address of a daemon; its workers listen on the same."""
        return next((node.address for node in self.nodes if node.daemon == daemon), self.host)

    def purposes(self) -> dict[int, str]:
        """Every port of the cluster with what it is for."""
        named = {self.port_of(daemon): daemon for daemon in self.daemons if daemon != RELAY}
        return named | {port: f"slot of {node.name}" for node in self.nodes for port in node.ports}

    def node_of_port(self, port: int) -> str | None:
        """The node that a slot's port belongs to."""
        return next((node.name for node in self.nodes if port in node.ports), None)


def layout_of(spec: ClusterSpec) -> Layout:
    """Derive every port, address and name from the spec."""
    base, slots = spec.base_port, spec.slots
    network = spec.network if spec.emulated else None
    near = f"{subnet_of(base)}." if network else "127.0.0."
    names = [node.id for node in network.workers] if network else []
    facts = [node.meta for node in spec.network.workers] if spec.network else [{}] * spec.supervisors
    nodes = tuple(
        Node(
            name=names[i - 1] if names else f"{near}{10 + i}",
            address=f"{near}{10 + i}",
            daemon=f"supervisor-{i}",
            thrift_port=base + 30 + i,
            ports=tuple(range(base + 100 + (i - 1) * slots, base + 100 + i * slots)),
            meta=facts[i - 1],
        )
        for i in range(1, spec.supervisors + 1)
    )
    return Layout(
        zookeeper=base + 21,
        redis=base + 22,
        nimbus=base + 27,
        nodes=nodes,
        host=f"{near}1",
        emulated=network is not None,
    )


def subnet_of(base_port: int) -> str:
    """First three bytes of the addresses of an emulated network ("198.18.51" for the default base port)."""
    index = base_port // 128  # 512 of them; no block of ports is smaller than a hundred
    return f"198.{18 + index // 256}.{index % 256}"


def require(name: str, value: int, low: int, high: int) -> None:
    """Raise ConfigError unless low <= value <= high."""
    if not low <= value <= high:
        raise ConfigError(f"{name}: {value} is out of range.", remedy=f"Give a number from {low} to {high}.")
