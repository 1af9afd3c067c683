"""Puts the real adapters together for one topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.core.control import Paths
from leeward.core.errors import ConfigError
from leeward.core.secrets import FILE_KEY, Secrets, without_password
from leeward.core.topology_conf import REDIS_URL, ZOOKEEPER_ROOT
from leeward.wire.secrets import read_secrets, secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leeward.control.ports import Clock, EventSink, Ports, Structure

DEFAULT_ROOT = "/leeward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the servers are; None: as in the topology's configuration."""

    nimbus: Sequence[str]
    zookeeper: str | None = None
    redis_url: str | None = None
    secrets: Path | None = None  #: the secrets file on this machine


def root_of(conf: Mapping[str, object]) -> str:
    """The znode under which everything of Leeward lives."""
    return str(conf.get(ZOOKEEPER_ROOT.name) or DEFAULT_ROOT)


def zookeeper_of(conf: Mapping[str, object]) -> str:
    """Hosts of Storm's ZooKeeper."""
    servers, port = conf.get("storm.zookeeper.servers"), conf.get("storm.zookeeper.port", 2181)
    if not isinstance(servers, list) or not servers:
        raise ConfigError(
            f"storm.zookeeper.servers is {servers!r} in Storm's configuration.",
            remedy="Give --zookeeper host:port.",
        )
    return ",".join(f"{server}:{port}" for server in servers)


def storm_root_of(conf: Mapping[str, object]) -> str:
    """The znode under which Storm keeps its own."""
    return str(conf.get("storm.zookeeper.root") or "/storm").rstrip("/")


def known_secrets(conf: Mapping[str, object], addresses: Addresses) -> Secrets:
    """Of the file that is named on this machine, else of the one that the configuration names."""
    return secrets_of(conf) if addresses.secrets is None else read_secrets(addresses.secrets)


def secrets_for(conf: Mapping[str, object], addresses: Addresses) -> Secrets:
    """The secrets that the service may use.

    ZooKeeper's secret counts only if the configuration names a file: else the tasks do not know it, and the service
    would lock them out.
    """
    secrets = known_secrets(conf, addresses)
    return secrets if conf.get(FILE_KEY) else replace(secrets, zookeeper_secret="")


def sink_of(events: Path | None, clock: Clock, *, quiet: bool = False) -> EventSink:
    """The log, unless `quiet`, and the file of events, if there is one."""
    from leeward.adapters.events import Fan, JsonLines, Log

    return Fan(*([] if quiet else [Log()]), *([JsonLines(events, clock)] if events else []))


@contextmanager
def open_ports(
    topology: str, addresses: Addresses, *, events: Path | None = None, quiet: bool = False, session_s: float = 15.0,
    sink: EventSink | None = None, network: str = "", clock: Clock | None = None,
) -> Iterator[Ports]:  # fmt: skip
    """The service's ports on real servers. `sink` replaces the one that `events` and `quiet` describe; `network`: a
    network file, or none. `clock`: one that other topologies have, too; else it is a new one.

    Raises ConfigError if the topology does not run or the file is wrong, ClusterRefusedError if a server does not
    answer.
    """
    from leeward.adapters.clock import SystemClock
    from leeward.adapters.leftovers import ServerLeftovers
    from leeward.adapters.network_file import network_named
    from leeward.adapters.nimbus import NimbusClient
    from leeward.adapters.redis import RedisSnapshots
    from leeward.adapters.zookeeper import (
        ZooBarriers,
        ZooClusterStore,
        ZooControlStore,
        ZooHistory,
        ZooLock,
        ZooRequests,
        close_root,
        close_topology,
        connect,
        tell_outages,
    )
    from leeward.control.ports import Ports, TopologyPorts

    nodes = network_named(network)
    with ExitStack() as stack:
        nimbus = NimbusClient(addresses.nimbus)
        stack.callback(nimbus.close)
        conf = nimbus.structure(topology).conf
        root = root_of(conf)
        url = addresses.redis_url or conf.get(REDIS_URL.name)
        if not isinstance(url, str):
            raise ConfigError(
                f"topology {topology!r} has no leeward.redis.url.",
                remedy="Set it in its configuration, or give --redis.",
            )
        secrets = secrets_for(conf, addresses)
        client = connect(addresses.zookeeper or zookeeper_of(conf), secrets=secrets, session_s=session_s)
        stack.callback(client.close)
        stack.callback(client.stop)
        close_root(client, root)
        snapshots = RedisSnapshots(url, secrets=secrets)
        stack.callback(snapshots.close)
        clock = clock or SystemClock()

        def open_topology(structure: Structure) -> TopologyPorts:
            paths = Paths(root, structure.id)
            close_topology(client, paths)
            return TopologyPorts(
                control=ZooControlStore(client, paths, structure.name), barriers=ZooBarriers(client, paths),
                requests=ZooRequests(client, paths), lock=ZooLock(client, paths),
                history=ZooHistory(client, paths),
            )  # fmt: skip

        sink = sink or sink_of(events, clock, quiet=quiet)
        tell_outages(client, topology, sink)
        for weakness in _weaknesses(conf, root, secrets):
            sink.emit("unprotected", {"why": weakness})
        yield Ports(
            nimbus=nimbus, snapshots=snapshots, cluster=ZooClusterStore(client, root), clock=clock, sink=sink,
            open_topology=open_topology,
            leftovers=ServerLeftovers(client, root, snapshots, storm_root=storm_root_of(conf)), network=nodes,
        )  # fmt: skip


def _weaknesses(conf: Mapping[str, object], root: str, secrets: Secrets) -> Iterator[str]:
    """Sentences for the service's log."""
    if not secrets.zookeeper_secret:
        yield f"ZooKeeper: every client can write to {root}, as {FILE_KEY} names no zookeeper_secret"
    url = str(conf.get(REDIS_URL.name))
    if without_password(url) != url:
        yield f"leeward.redis.url holds a password, which Nimbus gives away: move it to the file of {FILE_KEY}"
