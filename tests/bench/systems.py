"""What benchmarks on a cluster share, and two systems: the counting topology on Leeward and on plain streamparse."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import stolen_s
from rich.console import Console
from sink_log import Row, Window, arrival_times, largest_gap, parse

from leeward.adapters.wiring import Addresses, open_ports
from leeward.control.observe import status_of
from leeward.control.service import Service
from leeward.control.snapshot import read_snapshot
from leeward.core.errors import NotReadyError
from leeward.core.plan import Slot
from leeward.core.settings import settings_from
from leeward.local import LocalCluster, build_jar, submit_topology
from leeward.local.nimbus import nimbus_client
from leeward.local.places import checkout

ROOT = Path(__file__).resolve().parents[2]
RATE, KEYS, WORKERS = 200, 50, 4
STEADY_S = 5.0  # without a gap, at the full rate, before and after each event
GAP_S = 1.0
SETTLE_S = 15.0  # Storm's vacated supervisors look for changes every 10 s: old workers may run on so long
PATIENCE_S = 180.0
UNDER_WAY_S = 3.0  # a number that has not arrived after this time is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was done to a topology."""

    case: str
    how: str  #: command or call, as it was made
    window: Window
    quiet_gap_s: float  #: largest gap in the steady time before it
    load: float  #: processes that wanted the processor, mean of the minute before
    moved: Mapping[str, int]  #: component -> tasks whose slot changed
    count_nodes: tuple[tuple[str, ...], tuple[str, ...]]  #: where the count's tasks that own keys are, before and after
    details: Mapping[str, object] = field(default_factory=dict)


class Sink:
    """The file that the counting sink appends to, one row a line."""

    def __init__(self, path: Path, rate: int) -> None:
        self.path, self._rate = path, rate
        self._read = 0  # bytes of whole lines
        self._newest: list[float] = []  # arrivals

    def rows(self) -> list[Row]:
        """All rows."""
        with self.path.open("rb") as file:
            return parse(line for line in file if line.endswith(b"\n"))

    def await_steady(self, seconds: float = STEADY_S) -> float:
        """Wait until the stream has flowed for so long; the largest gap in that time."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            now = time.time()
            window = Window(began_s=now - seconds, ended_s=now)
            self._look(window.began_s - seconds)
            gap = largest_gap(self._newest, window)
            flowed = sum(at >= window.began_s for at in self._newest)
            if gap < GAP_S and flowed > 0.8 * seconds * self._rate:
                return gap
            time.sleep(0.25)
        raise SystemExit(f"the stream into {self.path} is not steady after {PATIENCE_S:g} s")

    def _look(self, since_s: float) -> None:
        """Only what is new is read: who measures should not be in the way."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
            self._read += len(whole) + bool(whole)
            self._newest += arrival_times(whole.splitlines())
        self._newest = [at for at in self._newest if at >= since_s]


class System:
    """One topology on the cluster. Subclasses say how it is scaled and moved."""

    name = ""
    rate, keys, workers = RATE, KEYS, WORKERS
    more: tuple[str, ...] = ()  #: options of the topology

    def __init__(self, cluster: LocalCluster, project: Path, folder: Path) -> None:
        self.cluster, self.project, self.folder = cluster, project, folder
        self.sink = Sink(folder / f"{self.name}.out", self.rate)
        self.events: list[Event] = []

    @contextmanager
    def running(self) -> Iterator[Any]:
        """Submitted and flowing inside the block; killed after it."""
        jar = self.folder / f"{self.name}.jar"
        build_jar(jar, src=self.project / "src", worker_jar=checkout() / "build/jars/leeward-worker.jar")
        options = [f"topology.workers={self.workers}"]
        options += [f"counting.rate={self.rate}", f"counting.keys={self.keys}", f"counting.out={self.sink.path}"]
        options += self.more
        submit_topology(self.name, nimbus=self.cluster.nimbus, jar=jar, project=self.project, options=options)
        with open_ports_of(self) as ports:
            self.ports = ports
            self.topology_id = ports.nimbus.topologies()[self.name]
            self.sink.await_steady()
            try:
                yield self
                time.sleep(UNDER_WAY_S)
            finally:
                self._kill()

    def slots(self) -> dict[int, Slot]:
        """Task -> slot now."""
        return dict(self._snapshot().assigned.slots)

    def tasks(self, component: str) -> list[int]:
        """Tasks of a component."""
        return sorted(task for task, name in self._snapshot().tasks.items() if name == component)

    def count_nodes(self) -> tuple[str, ...]:
        """Nodes of the tasks of the count that own keys."""
        raise NotImplementedError

    def event(self, case: str, how: str, deed: Callable[[], Mapping[str, object]]) -> None:
        """Do it in a steady stream, and wait until it is steady again."""
        quiet = self.sink.await_steady()
        load, before, nodes, tasks = _load(), self.slots(), self.count_nodes(), self._snapshot().tasks
        began, stolen = time.time(), stolen_s()
        details = deed()
        done = time.time()
        time.sleep(max(0.0, SETTLE_S - STEADY_S))
        self.sink.await_steady()
        after = self.slots()
        moved: dict[str, int] = {}
        for task, slot in after.items():
            if before.get(task) != slot:
                moved[tasks[task]] = moved.get(tasks[task], 0) + 1
        self.events.append(
            Event(
                case=case, how=how, window=Window(began_s=began, ended_s=time.time()), quiet_gap_s=round(quiet, 3),
                load=load, moved=moved, count_nodes=(nodes, self.count_nodes()),
                details={**details, "call_s": round(done - began, 3), "stolen_s": round(stolen_s() - stolen, 2)},
            )
        )  # fmt: skip

    def _snapshot(self):
        until = time.monotonic() + 30
        while True:
            try:
                return read_snapshot(self.ports.cluster.snapshot(lambda: None), self.topology_id)
            except NotReadyError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def _kill(self) -> None:
        kill(self.cluster, self.name)


class Ours(System):
    """The counting topology; the scheduler service runs here, without a policy: only what is asked for happens."""

    name = "counting"

    @contextmanager
    def serving(self, mode: str = "restart", *more: str) -> Iterator[None]:
        """`leeward serve counting -o policy=none -o mode=...`, on a thread of this process."""
        settings = settings_from({}, ["policy=none", f"mode={mode}", *more]).service
        events = self.folder / "events.jsonl"
        stop = threading.Event()
        with open_ports(self.name, _addresses(self.cluster), events=events, quiet=True) as ports:
            service = Service(topology=self.name, ports=ports, settings=settings, policy=None)
            thread = threading.Thread(target=service.run, args=(stop,), name="service")
            thread.start()
            try:
                # by the ports of this thread: two threads must not share a Thrift client
                self.requests = self.ports.open_topology(self.ports.nimbus.structure(self.name)).requests
                yield
            finally:
                stop.set()
                thread.join()

    def count_nodes(self) -> tuple[str, ...]:
        return tuple(sorted(status_of(self.name, self.ports)["deployment"]["count"]))

    def ask(self, nodes: Sequence[str]) -> str:
        """One replica of the count on each of these nodes; the answer."""
        name = self.requests.ask({"replicas": {"count": dict.fromkeys(nodes, 1)}})
        until, answered = time.monotonic() + PATIENCE_S, threading.Event()
        # told, not looking often, which would take a share of the processors that are measured
        while (answer := self.requests.answer_to(name, answered.set)) is None:
            if time.monotonic() > until:
                raise SystemExit(f"no answer after {PATIENCE_S:g} s: one replica of the count on each of {nodes}")
            answered.wait(5.0)
        return str(answer)

    def reconfigure(self, case: str, nodes: tuple[str, ...]) -> None:
        """One replica of the count on each of these nodes."""
        how = f"leeward reconfigure {self.name} --replicas count={','.join(f'{node}:1' for node in nodes)}"

        def deed() -> Mapping[str, object]:
            answer = self.ask(nodes)
            ended = self.told("reconfiguration_ended")[-1]
            return {"answer": answer, **{name: ended[name] for name in ("pause_s", "phases", "bytes_exported")}}

        self.event(case, how, deed)
        if self.count_nodes() != tuple(sorted(nodes)):
            raise SystemExit(f"{how}: {self.events[-1].details}; the count is on {self.count_nodes()}")

    def told(self, action: str) -> list[dict[str, Any]]:
        """The service's events of this kind."""
        events = [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]
        return [event for event in events if event["action"] == action]

    def free_node(self) -> str:
        """A node without any task of the count: whatever goes there really moves."""
        slots = self.slots()
        used = {slots[task].node for task in self.tasks("count")}
        return next(node.name for node in self.cluster.nodes if node.name not in used)

    def repetition(self) -> None:
        """Every case once."""
        (home,) = self.count_nodes()
        other = self.free_node()
        self.reconfigure("scale-out", (home, other))
        self.reconfigure("scale-in, tables only", (home,))
        self.reconfigure("scale-out, tables only", (home, other))
        self.reconfigure("scale-in, tables only", (home,))
        self.reconfigure("move", (self.free_node(),))


class Plain(System):
    """Its twin, placed by Storm's default scheduler."""

    name = "stock"

    def count_nodes(self) -> tuple[str, ...]:
        slots = self.slots()
        return tuple(sorted({slots[task].node for task in self.tasks("count")}))

    def rebalance(self, case: str, *, wait_secs: int | None = None, **what: Any) -> None:
        """`rebalance` through Thrift; `wait_secs` None: unset, so Storm takes its default."""
        from streamparse.thrift import storm_thrift

        shown = {"wait_secs": "default" if wait_secs is None else wait_secs, **what}
        how = f"rebalance({self.name}, {', '.join(f'{name}={value}' for name, value in shown.items())})"

        def deed() -> Mapping[str, object]:
            options = storm_thrift.RebalanceOptions(wait_secs=wait_secs, **what)
            with nimbus_client(*_address(self.cluster)) as client:
                client.rebalance(self.name, options)
            until = time.monotonic() + PATIENCE_S
            while self._status() == "REBALANCING":
                if time.monotonic() > until:
                    raise SystemExit(f"{how} has not ended after {PATIENCE_S:g} s")
                time.sleep(0.1)
            return {"answer": self._status()}

        self.event(case, how, deed)

    def _status(self) -> str:
        summary = self.cluster.summary()
        return next((t[1] for t in summary.topologies if t[0] == self.name), "?") if summary else "?"

    def repetition(self) -> None:
        """Every case once; the ways back without Storm's wait."""
        self.rebalance("scale-out", num_executors={"count": 2})
        self.rebalance("scale-in, wait 0", num_executors={"count": 1}, wait_secs=0)
        self.rebalance("move", num_workers=self.workers - 1)
        self.rebalance("move, wait 0", num_workers=self.workers, wait_secs=0)


def begin_run(folder: Path) -> tuple[Path, Console]:
    """A benchmark's folder, emptied, and where it prints. From here on it ends in good order, in the background too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder, Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 132)


def write_result(out: Path, result: Mapping[str, Any], console: Console) -> None:
    """What it measured, as JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"written: {out}")


def stage(source: Path, folder: Path, *, with_leeward: bool) -> Path:
    """A copy of a small project; with the package that its jar needs."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    if with_leeward:
        (folder / "src" / "leeward").symlink_to(ROOT / "scheduler" / "leeward")
    return folder


def kill(cluster: LocalCluster, name: str) -> None:
    """Kill a topology, the only one; returns when its workers are gone."""
    from streamparse.thrift import storm_thrift

    with nimbus_client(*_address(cluster)) as client:
        client.killTopologyWithOpts(name, storm_thrift.KillOptions(wait_secs=0))
    until = time.monotonic() + 60
    while cluster.worker_pids() and time.monotonic() < until:
        time.sleep(0.5)


@contextmanager
def open_ports_of(system: System) -> Iterator[Any]:
    """Ports to look with."""
    with open_ports(system.name, _addresses(system.cluster), quiet=True) as ports:
        yield ports


def _addresses(cluster: LocalCluster) -> Addresses:
    return Addresses(
        nimbus=[cluster.nimbus],
        zookeeper=cluster.zookeeper,
        redis_url=cluster.redis_url,
        secrets=cluster.secrets_file,
    )


def _address(cluster: LocalCluster) -> tuple[str, int]:
    host, _, port = cluster.nimbus.rpartition(":")
    return host, int(port)


def _load() -> float:
    return float(Path("/proc/loadavg").read_text().split()[0])
