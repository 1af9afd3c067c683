"""A real local cluster, topologies on it, and the service under the test's control."""

from __future__ import annotations

import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from leeward.adapters.nimbus import NimbusClient
from leeward.adapters.redis import RedisSnapshots
from leeward.adapters.wiring import Addresses, open_ports
from leeward.adapters.zookeeper import ZooClusterStore, connect
from leeward.control.guard import changes_nothing
from leeward.control.service import Service
from leeward.control.snapshot import ClusterSnapshot, read_snapshot
from leeward.core.control import ControlRecord, Paths
from leeward.core.journal import Journal
from leeward.core.model import ClusterView
from leeward.core.plan import Plan
from leeward.core.settings import Settings
from leeward.local import ClusterSpec, LocalCluster, build_jar, processes, submit_topology
from leeward.local.places import checkout
from tests.cluster.builders import Builder
from tests.cluster.tally import KEYS, Stream

ROOT = "/leeward"
COUNTING = Path(__file__).parent / "counting"
#: Tests wait for conditions; this only bounds how long, on a machine that does other work as well. Seconds.
LONG_S = 150.0
#: A command that was interrupted ends its cluster within this, s.
ENDING_S = 60.0


def await_(done: Callable[[], Any], what: str, timeout_s: float = LONG_S) -> Any:
    """The first true value of `done()`; AssertionError after `timeout_s`."""
    until = time.monotonic() + timeout_s
    while not (value := done()):
        assert time.monotonic() < until, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.05)
    return value


def leeward(*arguments: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """A `leeward` command to its end. After `timeout_s` it is interrupted, so that it ends what it has started, and
    AssertionError has its output."""
    command = [str(Path(sys.executable).with_name("leeward")), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
            raise AssertionError(f"{' '.join(arguments)}: not over after {timeout_s:g} s\n{out}\n{err}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class Stage:
    """One cluster for all tests; each topology has a name of its own."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        secrets = cluster.secrets()
        self.zookeeper: KazooClient = connect(cluster.zookeeper, secrets=secrets, session_s=30, timeout_s=30)
        self.nimbus = NimbusClient([cluster.nimbus])
        self.snapshots = RedisSnapshots(cluster.redis_url, secrets=secrets)
        self.addresses = Addresses(
            nimbus=[cluster.nimbus],
            zookeeper=cluster.zookeeper,
            redis_url=cluster.redis_url,
            secrets=cluster.secrets_file,
        )

    def close(self) -> None:
        """Hang up."""
        self.zookeeper.stop()
        self.zookeeper.close()
        self.nimbus.close()
        self.snapshots.close()

    @contextmanager
    def counting(
        self, name: str, *, rate: int = 200, workers: int = 3, options: Sequence[str] = (), begun: bool = True
    ) -> Iterator[Running]:
        """The counting topology, with numbers flowing, or as soon as Nimbus knows it; killed at the end."""
        out = self.folder / f"{name}.out"
        options = [f"counting.rate={rate}", f"counting.keys={KEYS}", f"counting.out={out}", *options]
        jar = self.project_jar(COUNTING)
        with self.submitted("counting", name, jar, COUNTING, options, workers, begun=begun) as running:
            running.stream = Stream(out)
            if begun:
                running.stream.flow(100, timeout_s=LONG_S)
            yield running

    @contextmanager
    def submitted(
        self, topology: str, name: str, jar: Path, project: Path, options: list[str], workers: int,
        *, begun: bool = True,
    ) -> Iterator[Running]:  # fmt: skip
        """Any topology, with all its tasks running, or as soon as Nimbus knows it; killed at the end."""
        options = [f"topology.workers={workers}", *options]
        submit_topology(topology, name=name, nimbus=self.cluster.nimbus, jar=jar, project=project, options=options)
        try:
            running = Running(self, name, self.nimbus.topologies()[name])
            if begun:
                await_(running.all_run, f"all tasks of {name} to run")
            yield running
        finally:
            self._kill(name)

    def query1_jar(self) -> Path:
        """Of this checkout's src/."""
        return self._jar("query1", checkout() / "src")

    def project_jar(self, project: Path) -> Path:
        """Of a project's src/ and this checkout's package."""
        src = self.folder / f"{project.name}-src"
        if not src.exists():
            src.mkdir()
            (src / "leeward").symlink_to(checkout() / "scheduler" / "leeward")
            for file in (project / "src").glob("*.py"):
                shutil.copy(file, src)
        return self._jar(project.name, src)

    def _jar(self, name: str, src: Path) -> Path:
        jar = self.folder / f"{name}.jar"
        if not jar.exists():
            build_jar(jar, src=src, worker_jar=checkout() / "build" / "jars" / "leeward-worker.jar")
        return jar

    def _kill(self, name: str) -> None:
        identity = self.nimbus.topologies()[name]
        self.nimbus.kill(name)

        def ended() -> bool:
            return not any(identity in processes.command_line(pid) for pid in self.cluster.worker_pids().values())

        await_(ended, f"the workers of {name} to end", 60)


class Running:
    """A topology on the stage."""

    stream: Stream

    def __init__(self, stage: Stage, name: str, topology_id: str) -> None:
        self.stage, self.cluster, self.name, self.id = stage, stage.cluster, name, topology_id
        self.paths = Paths(ROOT, topology_id)
        self._store = ZooClusterStore(stage.zookeeper, ROOT)

    def snapshot(self) -> ClusterSnapshot:
        """What the plugin published last."""
        return read_snapshot(self._store.snapshot(lambda: None), self.id)

    def tasks(self, component: str) -> list[int]:
        """Task ids, ascending."""
        return sorted(task for task, name in self.snapshot().tasks.items() if name == component)

    def record(self) -> ControlRecord:
        """The control record in force; the first one follows the first line of the journal."""
        return ControlRecord.from_json(
            await_(lambda: self.stage.zookeeper.get(self.paths.control)[0], "the first control record")
        )

    def journal(self) -> Journal:
        """The coordinator's journal; a coordinator makes its znode empty, and writes the first line later."""
        return Journal.from_json(
            await_(lambda: self.stage.zookeeper.get(self.paths.journal)[0], "the journal's first line")
        )

    def owner(self, component: str) -> int:
        """The first task that owns key groups: a lost warm task restores nobody."""
        return min(self.record().tables[component])

    def owner_pid(self, component: str) -> int:
        """Its Python process."""
        import json

        def found() -> int | None:
            pid = json.loads(self.stage.snapshots.metrics(self.id)[self.owner(component)])["pid"]
            return pid if pid in self.cluster.python_pids() else None

        return await_(found, f"the owner of {component} to say its pid", 20)

    def owner_worker(self, component: str) -> int:
        """The worker of that task."""
        slot = self.snapshot().assigned.slots[self.owner(component)]
        return self.cluster.worker_pids()[slot.node, slot.port]

    def all_run(self) -> bool:
        """Every task has published that it runs."""
        import json

        modes = [json.loads(line)["mode"] for line in self.stage.snapshots.metrics(self.id).values()]
        try:
            mine = [task for task, name in self.snapshot().tasks.items() if not name.startswith("__")]
        except Exception:
            return False
        return bool(mine) and len(modes) == len(mine) and set(modes) == {"running"}

    def pilot(self, **options: Any) -> Pilot:
        """The service; see Pilot."""
        return Pilot(self, **options)

    def asked(self, *replicas: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """`leeward reconfigure` with these --replicas."""
        command = ["reconfigure", self.name, "--cluster", str(self.cluster.dir)]
        for item in replicas:
            command += ["--replicas", item]
        for option in options:
            command += ["-o", option]
        return leeward(*command)


class Killed(BaseException):
    """Ends the service as a crash would: nothing that it had in mind happens any more."""


@dataclass
class At:
    """Fault hook: does `deed` once, the first time that the coordinator has taken step `step` while armed."""

    step: str
    deed: Callable[[], object]
    armed: bool = True
    done: bool = False

    def __call__(self, step: str) -> None:
        if step == self.step and self.armed:
            self.armed, self.done = False, True
            self.deed()


def die() -> None:
    """A deed for At."""
    raise Killed


class Script:
    """Policy: carries out the builders given to it, one after the other; else wants what there is."""

    at_once = True  #: it needs no rates

    def __init__(self) -> None:
        self.wanted: queue.Queue[Builder] = queue.Queue()

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        try:
            builder = self.wanted.get_nowait()
        except queue.Empty:
            return Plan(tables=view.tables, placement=view.assignment)
        plan = builder(view)
        assert not changes_nothing(plan, view), f"{plan.reason}: that is what there is"
        return plan


class Events:
    """EventSink in memory."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        if action not in ("measured", "plan_made"):
            self.all.append({"t": round(time.time(), 3), "action": action, **fields})

    def named(self, *actions: str, since: int = 0) -> list[dict[str, Any]]:
        return [event for event in self.all[since:] if event["action"] in actions]


class Pilot:
    """The real service over one topology, in a thread, with a scripted policy. A context manager."""

    def __init__(
        self,
        running: Running,
        *,
        fault: Callable[[str], None] | None = None,
        checkpoint_every_s: float = 3.0,
        mode: str = "restart",
        handover_s: float = 60.0,
        ahead_bytes: int = 4096,
        spares: bool = False,
    ) -> None:
        self.running, self._fault = running, fault
        self._settings = Settings(
            policy="none",
            period_s=0.2,
            cool_down_s=0.0,
            scale_down_s=0.0,
            no_return_s=0.0,
            window_s=1.0,
            checkpoint_every_s=checkpoint_every_s,
            mode=mode,
            spares=spares,
            handover_s=handover_s,
            ahead_bytes=ahead_bytes,
            pause_s=60.0,
            checkpoint_s=30.0,
            restore_s=120.0,
        )
        self.script, self.events = Script(), Events()
        self.service: Service | None = None
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pilot", daemon=True)

    def __enter__(self) -> Pilot:
        self._thread.start()
        await_(lambda: self.idle or not self._thread.is_alive(), "the service to lead")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the service does not stop"

    @property
    def killed(self) -> bool:
        """It died of Killed."""
        return isinstance(self.error, Killed)

    @property
    def idle(self) -> bool:
        """It leads and would take a plan."""
        term = self.service.term if self.service else None
        coordinator = term.coordinator if term else None
        return coordinator is not None and coordinator.idle

    def ask(self, builder: Builder) -> None:
        """Want a plan; returns at once."""
        self.script.wanted.put(builder)

    def reconfigure(self, builder: Builder, timeout_s: float = LONG_S) -> dict[str, Any]:
        """Want a plan; the event of its end."""
        mark = len(self.events.all)
        self.ask(builder)

        def over() -> dict[str, Any] | None:
            self.check()
            refused = self.events.named("plan_refused", since=mark)
            assert not refused, refused
            ended = [
                event for event in self.events.named("reconfiguration_ended", since=mark) if event["kind"] != "reset"
            ]
            return ended[0] if ended and self.idle else None

        try:
            return await_(over, "the reconfiguration to end", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; events: {self.events.all[mark:]}") from None

    def checkpoint(self, more: int = 1) -> None:
        """Wait for checkpoints that begin from now on."""
        mark = len(self.events.all)
        await_(
            lambda: self.check() and len(self.events.named("checkpoint_committed", since=mark)) > more,
            f"{more} checkpoints",
        )

    def await_event(self, action: str, *, since: int = 0, timeout_s: float = LONG_S) -> dict[str, Any]:
        """The first event of this name."""
        return await_(lambda: self.check() and self.events.named(action, since=since), f"event {action}", timeout_s)[0]

    def await_death(self) -> None:
        """Of the fault."""
        self._thread.join(LONG_S)
        assert self.killed, f"not killed: {self.error!r}; {self.events.all}"

    def check(self) -> bool:
        """Raise what ended the service, if it ended."""
        if self.error is not None:
            raise AssertionError(f"the service ended: {self.error!r}; events: {self.events.all}") from self.error
        return True

    def _run(self) -> None:
        try:
            with open_ports(self.running.name, self.running.stage.addresses, quiet=True) as ports:
                self.service = Service(
                    topology=self.running.name,
                    ports=replace(ports, sink=self.events),
                    settings=self._settings,
                    policy=self.script,
                    fault=self._fault,
                )
                self.service.run(self._stop)
        except BaseException as error:
            self.error = error


def revive(cluster: LocalCluster) -> list[str]:
    """Start the daemons that have ended, as a service manager would; their names."""
    ended = [name for name in cluster.layout.daemons if not processes.is_alive(cluster.daemons[name])]
    for name in ended:
        cluster.start_daemon(name)
    return ended


@contextmanager
def stage(folder: Path, base_port: int, *, supervisors: int = 3) -> Iterator[Stage]:
    """Nodes of two slots each."""
    spec = ClusterSpec(dir=folder / "cluster", base_port=base_port, supervisors=supervisors, slots=2)
    with LocalCluster(spec) as cluster:
        stage = Stage(cluster, folder)
        try:
            yield stage
        finally:
            stage.close()
