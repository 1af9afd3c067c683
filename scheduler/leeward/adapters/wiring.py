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

    from leeward.control.ports import Structure
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


@contextmanager
def open_ports(
    topology: str, addresses: Addresses, *, events: Path | None = None, quiet: bool = False, session_s: float = 15.0
) -> Iterator[Ports]:
    """The service's ports on real servers. Raises ConfigError and ClusterRefusedError."""
    from leeward.adapters.clock import SystemClock
    from leeward.adapters.events import Fan, JsonLines, Log
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

        sinks = [*([] if quiet else [Log()]), *([JsonLines(events, clock)] if events else [])]
        yield Ports(
            nimbus=nimbus, snapshots=snapshots, cluster=ZooClusterStore(client, root), clock=clock, sink=Fan(*sinks),
            open_topology=open_topology,
        )  # fmt: skip
