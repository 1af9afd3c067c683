"""One look at a local cluster: daemons, nodes, topologies, memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from leeward.local import processes
from leeward.local.cluster import MARK, LocalCluster

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStatus:
    """One daemon."""

    name: str
    port: int
    pid: int | None
    up: bool
    memory_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One supervisor's host as Nimbus and the process table see it."""

    name: str
    registered: bool
    #: ports of its slots, and those among them where a worker runs
    ports: tuple[int, ...]
    used: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole cluster at one moment."""

    daemons: tuple[DaemonStatus, ...]
    nodes: tuple[NodeStatus, ...]
    #: (name, status, workers, executors, tasks)
    topologies: tuple[tuple[str, str, int, int, int], ...]
    workers: int
    python_tasks: int
    #: all processes of the cluster and their proportional set size
    processes: int
    memory_mb: float
    #: "none", "emulated", or "not emulated": there is a network file, but all nodes are on loopback without delay
    network: str

    @property
    def healthy(self) -> bool:
        """Every daemon runs and every node is registered."""
        return all(daemon.up for daemon in self.daemons) and all(node.registered for node in self.nodes)

    def as_values(self) -> dict[str, object]:
        """Plain values for JSON."""
        return asdict(self) | {"healthy": self.healthy}


def observe(cluster: LocalCluster) -> Status:
    """Read /proc and ask Nimbus."""
    summary = cluster.summary()
    registered = summary.supervisors if summary else frozenset()
    workers, children = cluster.worker_pids(), cluster.python_pids()
    own = processes.marked(MARK, str(cluster.dir)) | {
        process for process in cluster.daemons.values() if processes.is_alive(process)
    }
    return Status(
        daemons=tuple(daemon_status(cluster, name) for name in cluster.layout.daemons),
        nodes=tuple(
            NodeStatus(
                name=node.name,
                registered=node.name in registered,
                ports=node.ports,
                used=tuple(port for port in node.ports if (node.name, port) in workers),
            )
            for node in cluster.nodes
        ),
        topologies=summary.topologies if summary else (),
        workers=len(workers),
        python_tasks=len(children),
        processes=len(own),
        memory_mb=sum(processes.memory_bytes(process.pid) for process in own) / MB,
        network="none" if cluster.spec.network is None else "emulated" if cluster.network else "not emulated",
    )


def daemon_status(cluster: LocalCluster, name: str) -> DaemonStatus:
    """One daemon, as the process table shows it."""
    process = cluster.daemons.get(name)
    up = process is not None and processes.is_alive(process)
    return DaemonStatus(
        name=name,
        port=cluster.layout.port_of(name),
        pid=process.pid if process and up else None,
        up=up,
        memory_mb=processes.memory_bytes(process.pid) / MB if process and up else 0.0,
    )
