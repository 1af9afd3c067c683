"""Puts the real adapters together for one topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.core.control import Paths
from leeward.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leeward.control.ports import Clock, EventSink, Structure
    from leeward.control.service import Ports

DEFAULT_ROOT = "/leeward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the servers are; None: as the topology's configuration says."""

    nimbus: Sequence[str]
    zookeeper: str | None = None
    redis_url: str | None = None


def root_of(conf: Mapping[str, object]) -> str:
    """The znode under which everything of Leeward lives."""
    return str(conf.get("leeward.zookeeper.root") or DEFAULT_ROOT)


def zookeeper_of(conf: Mapping[str, object]) -> str:
    """Hosts of Storm's ZooKeeper."""
    servers, port = conf.get("storm.zookeeper.servers"), conf.get("storm.zookeeper.port", 2181)
    if not isinstance(servers, list) or not servers:
        raise ConfigError(
            f"storm.zookeeper.servers is {servers!r} in the topology's configuration.",
            remedy="Give --zookeeper host:port.",
        )
    return ",".join(f"{server}:{port}" for server in servers)


def storm_root_of(conf: Mapping[str, object]) -> str:
    """The znode under which Storm keeps its own."""
    return str(conf.get("storm.zookeeper.root") or "/storm").rstrip("/")


def sink_of(events: Path | None, clock: Clock, *, quiet: bool = False) -> EventSink:
    """The log, unless `quiet`, and the file of events, if there is one."""
    from leeward.adapters.events import Fan, JsonLines, Log

    return Fan(*([] if quiet else [Log()]), *([JsonLines(events, clock)] if events else []))


@contextmanager
def open_ports(
    topology: str, addresses: Addresses, *, events: Path | None = None, quiet: bool = False, session_s: float = 15.0,
    sink: EventSink | None = None,
) -> Iterator[Ports]:  # fmt: skip
    """The service's ports on real servers. `sink` replaces the one that `events` and `quiet` describe.

    Raises ConfigError if the topology does not run, ClusterRefusedError if a server does not answer.
    """
    from leeward.adapters.clock import SystemClock
    from leeward.adapters.leftovers import ServerLeftovers
    from leeward.adapters.nimbus import NimbusClient
    from leeward.adapters.redis import RedisSnapshots
    from leeward.adapters.zookeeper import (
        ZooBarriers,
        ZooClusterStore,
        ZooControlStore,
        ZooLock,
        ZooRequests,
        connect,
    )
    from leeward.control.service import Ports, TopologyPorts

    with ExitStack() as stack:
        nimbus = NimbusClient(addresses.nimbus)
        stack.callback(nimbus.close)
        conf = nimbus.structure(topology).conf
        root = root_of(conf)
        url = addresses.redis_url or conf.get("leeward.redis.url")
        if not isinstance(url, str):
            raise ConfigError(
                f"topology {topology!r} has no leeward.redis.url.",
                remedy="Set it in its configuration, or give --redis.",
            )
        client = connect(addresses.zookeeper or zookeeper_of(conf), session_s=session_s)
        stack.callback(client.close)
        stack.callback(client.stop)
        snapshots = RedisSnapshots(url)
        stack.callback(snapshots.close)
        clock = SystemClock()

        def open_topology(structure: Structure) -> TopologyPorts:
            paths = Paths(root, structure.id)
            return TopologyPorts(
                control=ZooControlStore(client, paths, structure.name), barriers=ZooBarriers(client, paths),
                requests=ZooRequests(client, paths), lock=ZooLock(client, paths),
            )  # fmt: skip

        yield Ports(
            nimbus=nimbus, snapshots=snapshots, cluster=ZooClusterStore(client, root), clock=clock,
            sink=sink or sink_of(events, clock, quiet=quiet), open_topology=open_topology,
            leftovers=ServerLeftovers(client, root, snapshots, storm_root=storm_root_of(conf)),
        )  # fmt: skip
