"""Which daemon of a local cluster listens where. Pure: a spec in, ports and names out.

Every port follows from the base port B (default 6600), so two clusters collide only if their blocks overlap:

    B + 21             ZooKeeper
    B + 22             Redis
    B + 27             Nimbus (6627, Storm's own default, for the default base)
    B + 30 + i         Thrift of supervisor i = 1, 2, ...
    B + 100 ...        worker slots, supervisor after supervisor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leeward.core.errors import ConfigError

SUPERVISORS_MAX = 60
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What a local cluster shall be. Raises ConfigError for numbers that make no cluster."""

    #: run folder: configuration, data, logs and cluster.json; taken as absolute
    dir: Path
    #: first port of the cluster's block
    base_port: int = 6600
    #: number of supervisors, each a node of its own name (127.0.0.11, 127.0.0.12, ...)
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "dir", Path(self.dir).resolve())
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
    #: name of its daemon: supervisor-1, supervisor-2, ...
    daemon: str
    #: port of the supervisor's own Thrift service
    thrift_port: int
    #: ports of its worker slots
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Names and ports of everything in one cluster."""

    zookeeper: int
    redis: int
    nimbus: int
    nodes: tuple[Node, ...]

    @property
    def daemons(self) -> tuple[str, ...]:
        """Names of all daemons, in the order of their start."""
        return ("zookeeper", "redis", "nimbus", *(node.daemon for node in self.nodes))

    def port_of(self, daemon: str) -> int:
        """The port that shows that a daemon is up. Raises ConfigError for an unknown name."""
        ports = {"zookeeper": self.zookeeper, "redis": self.redis, "nimbus": self.nimbus}
        ports.update((node.daemon, node.thrift_port) for node in self.nodes)
        if daemon not in ports:
            raise ConfigError(
                f"daemon: {daemon!r} is not a daemon of this cluster.", remedy=f"One of {', '.join(ports)}."
            )
        return ports[daemon]

    def host_of(self, daemon: str) -> str:
        """The loopback address of a daemon; its workers listen on the same."""
        return next((node.name for node in self.nodes if node.daemon == daemon), LOOPBACK)

    def purposes(self) -> dict[int, str]:
        """Every port of the cluster with what it is for."""
        named = {self.port_of(daemon): daemon for daemon in self.daemons}
        return named | {port: f"slot of {node.name}" for node in self.nodes for port in node.ports}

    def node_of_port(self, port: int) -> str | None:
        """The node that a slot's port belongs to."""
        return next((node.name for node in self.nodes if port in node.ports), None)


def layout_of(spec: ClusterSpec) -> Layout:
    """Derive every port and name from the spec."""
    base, slots = spec.base_port, spec.slots
    nodes = tuple(
        Node(
            name=f"127.0.0.{10 + i}",
            daemon=f"supervisor-{i}",
            thrift_port=base + 30 + i,
            ports=tuple(range(base + 100 + (i - 1) * slots, base + 100 + i * slots)),
        )
        for i in range(1, spec.supervisors + 1)
    )
    return Layout(zookeeper=base + 21, redis=base + 22, nimbus=base + 27, nodes=nodes)


def require(name: str, value: int, low: int, high: int) -> None:
    """Raise ConfigError unless low <= value <= high."""
    if not low <= value <= high:
        raise ConfigError(f"{name}: {value} is out of range.", remedy=f"Give a number from {low} to {high}.")
