"""Start, watch and end a whole Storm cluster on this machine.

    with LocalCluster(ClusterSpec(dir=Path("out/cluster"), supervisors=3)) as cluster:
        cluster.nimbus, cluster.zookeeper, cluster.nodes, cluster.open_redis()

Everything of a cluster lives in its run folder; `cluster.json` there is what other programs read. Each
daemon has a process group of its own, so that no Ctrl-C reaches it, and an environment entry that workers, log
writers and Python children inherit: by it `end_cluster` finds them all, after any crash.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from leeward.core.secrets import Secrets
from leeward.local import archive, loopback, processes, render
from leeward.local.errors import StartError
from leeward.local.install import Install, find_install
from leeward.local.layout import LOOPBACK, RELAY, ClusterSpec, Layout, Node, layout_of
from leeward.local.network import namespaces
from leeward.local.network.emulation import Emulation
from leeward.local.nimbus import Summary, fetch_summary
from leeward.local.places import run_folder
from leeward.local.preflight import check_free, check_host_name, claim_folder, empty_folder
from leeward.local.processes import Process
from leeward.local.record import Record, read_record, record_path, write_record
from leeward.wire.secrets import read_secrets, write_secrets

if TYPE_CHECKING:
    import redis

#: environment entry of every process of a cluster; its value is the run folder
MARK = "LEEWARD_CLUSTER_DIR"
WORKER_MAIN = "org.apache.storm.daemon.worker.Worker"
LOG_WRITER_MAIN = "org.apache.storm.LogWriter"
START_S = 120.0
GRACE_S = 5.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonChild:
    """A Python process of a topology."""

    pid: int
    #: node and slot port of its worker
    node: str
    port: int
    #: class it runs, as in the topology ("bolts.count.Count")
    target: str


class LocalCluster:
    """One cluster. As a context manager it is up inside the block and gone after it."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.layout: Layout = layout_of(spec)
        self.redis_url: str = render.redis_url(self.layout)
        self.secrets_file: Path = render.secrets_path(spec.dir)
        #: None: all nodes are on loopback addresses
        self.network: Emulation | None = Emulation(spec) if spec.emulated else None
        self.daemons: dict[str, Process] = {}
        self._install: Install | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def attach(cls, folder: Path | None = None) -> LocalCluster:
        """The cluster that another program started in this run folder; None: where `leeward cluster up` starts it.

        Raises FolderError without one.
        """
        record = read_record(Path(folder or run_folder(Path.cwd())))
        cluster = cls(record.spec)
        cluster.redis_url, cluster.secrets_file = record.redis_url, record.secrets
        cluster.daemons = dict(record.daemons)
        return cluster

    def __enter__(self) -> LocalCluster:
        return self.up()

    def __exit__(self, *_: object) -> None:
        self.down()

    # -- where things are

    @property
    def dir(self) -> Path:
        """Run folder."""
        return self.spec.dir

    @property
    def nimbus(self) -> str:
        """host:port of Nimbus, as config.json and STREAMPARSE_NIMBUS take it."""
        return f"{self.layout.host}:{self.layout.nimbus}"

    @property
    def zookeeper(self) -> str:
        """host:port of ZooKeeper, as kazoo takes it."""
        return f"{self.layout.host}:{self.layout.zookeeper}"

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The supervisors."""
        return self.layout.nodes

    def secrets(self) -> Secrets:
        """Redis' password and ZooKeeper's secret."""
        return read_secrets(self.secrets_file)

    def open_redis(self, **options: Any) -> redis.Redis:
        """A client of Redis; `options` as Redis.from_url takes them."""
        import redis

        return redis.Redis.from_url(self.redis_url, **self.secrets().redis_login(), **options)

    # -- the whole cluster

    def up(self, report: Report = lambda line: None, *, deadline_s: float = START_S) -> LocalCluster:
        """Start everything and wait until Nimbus leads and knows every supervisor.

        Raises NotInstalledError, FolderError, PortsTakenError before anything runs; StartError, with the tail
        of the log of what failed, after it ended again all that ran.
        """
        self._install = find_install(storm_home=self.spec.storm_home, plugin=self.spec.plugin)
        self._check_before(self._install.kept)
        claim_folder(self.dir)
        end_cluster(self.dir)  # processes that a crash left behind here
        if not self.network:
            check_free(self.layout.purposes(), remedy="End them, or give another --base-port.")
        self._write_files(report)
        try:
            until = time.monotonic() + deadline_s
            if self.network:
                self.network.create()
            for wave in self.layout.waves:
                for name in wave:
                    self._launch(name)
                for name in wave:
                    self._await_port(name, until)
                    report(self._told(name))
            self._await_members(until, report)
            self._check_addresses()
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> int:
        """End every process of this cluster; how many there were. Idempotent."""
        ended = end_cluster(self.dir)
        for child in self._children.values():
            child.poll()
        self.daemons = {}
        return ended

    def summary(self) -> Summary | None:
        """Nimbus' view now; None when it does not answer."""
        return fetch_summary(self.layout.host, self.layout.nimbus)

    # -- one daemon: for tests of faults

    def start_daemon(self, name: str, *, deadline_s: float = START_S) -> None:
        """Start a daemon that was stopped or killed, with its data; wait until it listens (Redis: until it serves)."""
        port = self.layout.port_of(name)
        if name in self.daemons and processes.is_alive(self.daemons[name]):
            raise StartError(f"{name}: runs already (pid {self.daemons[name].pid}).", remedy="Stop it first.")
        if not self.network:
            check_free({port: name})
        self._launch(name)
        self._await_port(name, time.monotonic() + deadline_s)

    def stop_daemon(self, name: str) -> None:
        """End a daemon in an orderly way. Workers of a supervisor go on."""
        self._end_daemon(name, grace_s=GRACE_S)

    def kill_daemon(self, name: str) -> None:
        """SIGKILL a daemon. Workers of a supervisor go on."""
        self._end_daemon(name, grace_s=-1.0)

    def _end_daemon(self, name: str, *, grace_s: float) -> None:
        self.layout.port_of(name)
        if process := self.daemons.get(name):
            processes.end_all(lambda: {process} if processes.is_alive(process) else set(), grace_s=grace_s)
        if child := self._children.pop(name, None):
            child.poll()

    # -- processes of topologies

    def worker_pids(self) -> dict[tuple[str, int], int]:
        """pid of the worker in each used slot (node, port)."""
        found = {}
        for process in processes.marked(MARK, str(self.dir)):
            arguments = processes.command_line(process.pid)
            # ... Worker <topology id> <supervisor id> <supervisor port> <port> <worker id>; the log writer
            # that started it has the same words behind its own main class
            if WORKER_MAIN in arguments and LOG_WRITER_MAIN not in arguments:
                port = int(arguments[-2])
                found[self.layout.node_of_port(port) or "?", port] = process.pid
        return found

    def python_pids(self) -> dict[int, PythonChild]:
        """The Python processes of all topologies, by pid."""
        slots = {pid: slot for slot, pid in self.worker_pids().items()}
        found = {}
        for process in processes.marked(MARK, str(self.dir)):
            if (slot := slots.get(processes.parent_of(process.pid) or 0)) is not None:
                arguments = processes.command_line(process.pid)
                target = arguments[-1].rpartition(" ")[2] if arguments else ""
                found[process.pid] = PythonChild(pid=process.pid, node=slot[0], port=slot[1], target=target)
        return found

    # -- inside

    def _check_before(self, kept: Path) -> None:
        """Check all that has to be there before anything is changed."""
        if self.network:
            self.network.check(kept)
            return
        if self.spec.loopback:
            loopback.library(kept)
        check_host_name()

    def _told(self, name: str) -> str:
        port = self.layout.port_of(name)
        return f"{name} listens on port {port}" if port else f"{name} joins the nodes"

    def _write_files(self, report: Report) -> None:
        """Empty the run folder and write every configuration file and the first cluster.json."""
        install = self._installed()
        empty_folder(self.dir)
        conf = self.dir / "conf"
        for folder in (conf, self.dir / "logs", self.dir / "zookeeper", self.dir / "redis"):
            folder.mkdir()
        names = ("redis_password", "zookeeper_secret", "agent_secret", "service_token")
        words = {name: secrets.token_urlsafe(24) for name in names}
        own = Secrets(**words)
        write_secrets(self.secrets_file, own)
        shipped = yaml.safe_load((install.storm_conf / "storm.yaml").read_text())
        if self.spec.class_archive:
            for name, option in archive.options(install, report).items():
                shipped[name] += f" {option}"
        settings = render.storm_settings(shipped, self.spec, self.layout)
        (conf / "storm.yaml").write_text(yaml.safe_dump(settings, sort_keys=True, width=10_000))
        (conf / "zoo.cfg").write_text(render.zoo_cfg(self.spec, self.layout))
        (conf / "redis.conf").write_text(render.redis_conf(self.spec, self.layout, own.redis_password))
        (conf / "redis.conf").chmod(0o600)
        shutil.copytree(install.storm_conf / "log4j2", conf / "log4j2")
        self._record()

    def _record(self) -> None:
        install = self._installed()
        record = Record(
            spec=self.spec,
            layout=self.layout,
            redis_url=self.redis_url,
            secrets=self.secrets_file,
            storm_home=install.storm_home,
            storm_version=install.storm_version,
            daemons=self.daemons,
        )
        write_record(record)

    def _installed(self) -> Install:
        if self._install is None:
            self._install = find_install(storm_home=self.spec.storm_home, plugin=self.spec.plugin)
        return self._install

    def _launch(self, name: str) -> None:
        install = self._installed()
        environment = render.environment_of(os.environ, self.spec, install, MARK)
        command = [] if name == RELAY else render.command_of(name, self.spec, self.layout, install)
        if self.network:
            command = self.network.command_of(name, install.kept, command)
        elif self.spec.loopback:
            preload = loopback.library(install.kept)
            environment |= loopback.environment(preload, self.layout.host_of(name), environment)
        with (self.dir / "logs" / f"{name}.out").open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.dir,
                env=environment,
                process_group=0,  # not a session: Linux shares processors between sessions first (ADR 16)
            )
        self._children[name] = child
        if (process := processes.process_of(child.pid)) is not None:
            self.daemons[name] = process
        self._record()

    def _await_port(self, name: str, until: float) -> None:
        while not self._answers(name):
            self._check_alive(name)
            if time.monotonic() > until:
                raise self._failed(name, "does not listen in time")
            time.sleep(0.05)
        self._check_alive(name)

    def _answers(self, name: str) -> bool:
        """Redis answers when it serves: while it reads its file it listens, and refuses every command."""
        if name == RELAY:
            return self.network is not None and self.network.relay_ready
        host = self.layout.host_of(name) if self.network or self.spec.loopback else LOOPBACK
        if not listens(self.layout.port_of(name), host):
            return False
        if name != "redis":
            return True
        import redis

        with self.open_redis(socket_timeout=1.0) as client:
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError is a ConnectionError
                return False

    def _check_addresses(self) -> None:
        """The library that keeps servers to loopback addresses may have been ignored by the dynamic linker."""
        if self.network or not self.spec.loopback:
            return
        for name, process in self.daemons.items():
            for address, port in processes.listening(process.pid):
                if not address.is_loopback:
                    raise StartError(
                        f"{name}: listens on {address}, port {port}, in spite of {loopback.ADDRESS_VARIABLE}.",
                        remedy=f"See {self.dir / 'logs' / name}.out. {loopback.ANYWAY}",
                    )

    def _await_members(self, until: float, report: Report) -> None:
        wanted = {node.name for node in self.nodes}
        seen: set[str] = set()
        while True:
            summary = self.summary()
            present = summary.supervisors & wanted if summary else frozenset()
            for name in sorted(present - seen):
                report(f"{name} is registered with Nimbus")
            seen |= present
            if summary and summary.leader and seen == wanted:
                return
            for name in self.layout.daemons:
                self._check_alive(name)
            if time.monotonic() > until:
                missing = [node.daemon for node in self.nodes if node.name not in seen]
                name = missing[0] if summary and missing else "nimbus"
                raise self._failed(name, f"not ready in time (unregistered: {', '.join(missing) or 'none'})")
            time.sleep(0.2)

    def _check_alive(self, name: str) -> None:
        process = self.daemons.get(name)
        if process is None or not processes.is_alive(process):
            raise self._failed(name, "ended while starting")

    def _failed(self, name: str, what: str) -> StartError:
        remedy = f"The whole log: {self.dir / 'logs'}/{name}.log and .out."
        return StartError(f"{name}: {what}.\n{self._tail(name)}\n", remedy=remedy)

    def _tail(self, name: str, lines: int = 15) -> str:
        for suffix in ("log", "out"):
            path = self.dir / "logs" / f"{name}.{suffix}"
            if path.exists() and path.stat().st_size:
                return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
        return "(no log)"


def end_cluster(folder: Path, *, grace_s: float = GRACE_S) -> int:
    """End every process that belongs to this run folder, remove its namespaces, and forget cluster.json; how many
    processes there were.

    Found by the mark in their environment and by the record, so it works after a crash of anything, and ends
    nobody else's process. Raises StopError when one cannot be ended.
    """
    folder = Path(folder).resolve()
    known = dict(read_record(folder).daemons) if record_path(folder).exists() else {}
    recorded = set(known.values())
    # Nimbus and supervisors close their sessions with ZooKeeper, workers may write to Redis: those end
    # last, and the processes that join them
    last = {process for name, process in known.items() if name in ("zookeeper", "redis", RELAY)}

    def alive() -> set[Process]:
        return processes.marked(MARK, str(folder)) | {p for p in recorded if processes.is_alive(p)}

    ended = processes.end_all(lambda: alive() - last, grace_s=grace_s)
    ended += processes.end_all(alive, grace_s=grace_s)
    namespaces.remove(folder)
    record_path(folder).unlink(missing_ok=True)
    return ended


def listens(port: int, host: str = LOOPBACK) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex((host, port)) == 0
