"""Query 1 on a local cluster of its own, fed by the replay and planned by `leeward serve`.

`leeward demo` shows one such run, and `leeward experiment edrp-table5` compares eight.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from leeward.cli._background import background, leeward_command
from leeward.core.errors import ConfigError, LeewardError
from leeward.local.processes import process_of
from leeward.replay.inputs import find_inputs

if TYPE_CHECKING:
    from leeward.adapters.results import Results
    from leeward.dashboard.verdict import Verdict
    from leeward.dashboard.watch import EventFile, Watch
    from leeward.local import LocalCluster

TOPOLOGY = "query1"
#: Files that a run writes into its folder. The folder of slices is not among them: `leeward replay` makes it anew if
#: it has nothing of others.
WRITTEN = (
    "rows.csv.gz",
    "prepare.log",
    "topology.jar",
    "events.jsonl",
    "serve.log",
    "replay.log",
    "drain.log",
)
SLICES = "slices"
#: In the order of the data, as the live view lists them.
OPERATORS = [
    "data_source",
    "parser",
    "filter_by_coordinates",
    "compute_route_id",
    "metronome",
    "count_by_window",
    "partial_rank",
    "global_rank",
]
#: Workers at the start, one a node: the other slot of each node is free, so that what moves finds a fresh worker there.
WORKERS = 5
_START_S = 90.0  # for all tasks to run
_FINISH_S = 180.0  # from the end of the replay to the last result


class ReplayedError(LeewardError):
    """A step of the run did not come about."""


class Expected(Protocol):
    """One result of the reference."""

    @property
    def number(self) -> int:
        """Under which the sink writes it."""

    @property
    def row(self) -> str:
        """Its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows that are ready to be replayed, and what must come out of them."""

    data: str  #: where they come from, in words
    slices: Path  #: folder
    last: int  #: number of the last entry, which ends the stream
    reference: Sequence[Expected]


def prepared_rows(csv: Sequence[Path], folder: Path) -> Rows:
    """Of CSV files; folders stand for the CSV files in them, by name. Raises LeewardError."""
    files = find_inputs(csv)
    remove_earlier(folder, files)
    return _rows(["prepare", *map(str, csv)], ", ".join(map(str, csv)), files, folder, sort=True)


def generated_rows(options: Sequence[str], data: str, folder: Path) -> Rows:
    """Of `leeward replay generate` with these options; `data` says in words which they are. Raises LeewardError."""
    remove_earlier(folder)
    rows = folder / "rows.csv.gz"
    return _rows(["generate", *options, "--csv", str(rows)], data, [rows], folder, sort=False)


def remove_earlier(folder: Path, inputs: Sequence[Path] = ()) -> None:
    """Removes what an earlier run wrote into its folder, and nothing else. Raises ConfigError for an input among it."""
    made = [(folder / name).resolve() for name in (*WRITTEN, SLICES)]
    for path in inputs:
        if any(path.resolve().is_relative_to(one) for one in made):
            raise ConfigError(
                f"csv: {path} is where this run writes its own rows.",
                remedy=f"Copy it to another folder than {folder}, or give another --out.",
            )
    for name in WRITTEN:
        if (folder / name).is_file():
            (folder / name).unlink()


def _rows(command: Sequence[str], data: str, files: Sequence[Path], folder: Path, *, sort: bool) -> Rows:
    slices = folder / SLICES
    folder.mkdir(parents=True, exist_ok=True)
    with step(f"Spark prepares the data: {data}"):
        run_leeward(["replay", *command, "--out", str(slices)], folder / "prepare.log")
    with step("reference: one plain process computes what must come out"):
        from leeward.cli.reference import bolts_importable

        bolts_importable()
        from bolts.query1.reference import reference_rows

        reference = list(reference_rows(files, per="pulse", sort=sort))
    if not reference:
        raise ReplayedError(
            f"rows of {data}: none lies in the grid of {TOPOLOGY}, so no result would come.",
            remedy="Give taxi rows of New York, or more hours of generated ones.",
        )
    manifest = json.loads((slices / "manifest.json").read_text())
    return Rows(data=data, slices=slices, last=manifest["rows"] + 1, reference=reference)


def refuse_elsewhere(command: str) -> None:
    """Raises ConfigError outside a checkout, where the topology is not."""
    if not Path("topologies", f"{TOPOLOGY}.py").exists():
        raise ConfigError(
            f"{command}: no topologies/{TOPOLOGY}.py here.",
            remedy="Run it in a checkout of Leeward; elsewhere begin with `leeward quickstart`.",
        )


class Replayed:
    """The steps, in order; `stack` ends what they start.

    `folder` is the cluster's, `options` are "key=value" of the service, `speed` is times real time. `http`: HOST:PORT
    at which the service has its page, "" for none.
    """

    def __init__(
        self, rows: Rows, *, out: Path, folder: Path, speed: float, service_times: str, options: Sequence[str],
        base_port: int, stack: ExitStack, keep: bool = False, title: str = "", http: str = "",
    ) -> None:  # fmt: skip
        self.rows, self.out, self.folder = rows, out, folder
        self.speed, self.service_times, self.base_port = speed, service_times, base_port
        self.options, self.stack, self.keep, self.http = options, stack, keep, http
        self.title = title or f"Leeward: {TOPOLOGY} on Storm, {speed:g} times real time"
        self.cluster: LocalCluster
        self.events: EventFile
        self.started = self.finished = 0.0

    def start(self) -> None:
        """Cluster, topology, scheduler service."""
        from leeward.dashboard.watch import EventFile
        from leeward.local import ClusterSpec, LocalCluster, build_jar, submit_topology
        from leeward.local.install import shipped_jar

        with step("local cluster: ZooKeeper, Nimbus with the plugin, 5 supervisors of 2 slots, Redis"):
            spec = ClusterSpec(dir=self.folder, base_port=self.base_port)
            self.cluster = LocalCluster(spec).up()
            summary = self.cluster.summary()
            self.storm_version = summary.version if summary else ""
        if not self.keep:
            self.stack.callback(self._end_cluster)
        with step(f"sparse submit -n {TOPOLOGY} -e local"):
            jar = self.out / "topology.jar"
            build_jar(jar, src=Path("src"), worker_jar=shipped_jar("worker"))
            options = [f"topology.workers={WORKERS}"]
            options.append(f"leeward.service_times={self.service_times}")
            submit_topology(TOPOLOGY, nimbus=self.cluster.nimbus, jar=jar, project=Path.cwd(), options=options)
        self._connect()
        with step("workers and Python tasks start") as tell:
            self._await_tasks(tell)
        self.events = EventFile(self.out / "events.jsonl")
        serve = ["serve", TOPOLOGY, "--cluster", str(self.folder), "--events", str(self.out / "events.jsonl")]
        for option in self.options:
            serve += ["-o", option]
        if self.http:
            serve += ["--http", self.http]
        with step("scheduler service: plans with S-EDRP"):
            self.stack.enter_context(background(leeward_command(serve), self.out / "serve.log"))
            self._await(
                lambda: self.events.read() and self.events.named("leading"), 30, "the service to lead", "serve.log"
            )
        if self.http:  # it listens before it leads
            page = f"{self.events.named('http_listens')[0]['url']}#/t/{TOPOLOGY}"
            self.title += f", {page}"
            typer.echo(f"page: {page}")

    def _connect(self) -> None:
        from leeward.adapters.nimbus import NimbusClient
        from leeward.adapters.redis import RedisSnapshots
        from leeward.adapters.results import Results
        from leeward.adapters.zookeeper import ZooClusterStore, connect

        secrets = self.cluster.secrets()
        client = connect(self.cluster.zookeeper, secrets=secrets)
        self.stack.callback(client.stop)
        nimbus = NimbusClient([self.cluster.nimbus])
        self.stack.callback(nimbus.close)
        self.topology_id = nimbus.topologies()[TOPOLOGY]
        self.zookeeper = client
        self.cluster_store = ZooClusterStore(client, "/leeward")
        self.snapshots = RedisSnapshots(self.cluster.redis_url, secrets=secrets)
        self.results: Results = Results(self.cluster.redis_url, secrets=secrets, source="taxi:in", results="query1:out")

    def _await_tasks(self, tell: Callable[[str], None]) -> None:
        from leeward.control.snapshot import read_snapshot
        from leeward.core.errors import NotReadyError

        self.tasks: dict[int, str] = {}
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            try:
                known = read_snapshot(self.cluster_store.snapshot(lambda: None), self.topology_id).tasks
                self.tasks = {task: name for task, name in known.items() if not name.startswith("__")}
            except NotReadyError:
                pass
            lines = [json.loads(line) for line in self.snapshots.metrics(self.topology_id).values()]
            running = sum(line["mode"] == "running" for line in lines)
            tell(f"{running} of {len(self.tasks) or '?'}")
            if self.tasks and running == len(self.tasks):
                return
            time.sleep(0.5)
        raise ReplayedError(
            f"after {_START_S:g} s {running} of {len(self.tasks)} tasks run.",
            remedy=f"Look into {self.folder}/workers and {self.folder}/logs.",
        )

    def _end_cluster(self) -> None:
        with step("everything is ended"):
            self.cluster.down()

    def play(self, each_second: Callable[[Watch], None] = lambda watch: None) -> None:
        """Replay and watch, until the last result is there and nothing is being reconfigured."""
        from rich.console import Console
        from rich.live import Live

        from leeward.dashboard.live import render

        console = Console()
        watch = self._watch()
        command = ["replay", "run", str(self.rows.slices), "--redis", self.cluster.redis_url]
        command += ["--secrets", str(self.cluster.secrets_file), "--speed", str(self.speed), "--quiet"]
        replay = self.stack.enter_context(background(leeward_command(command), self.out / "replay.log"))
        self._await(lambda: self._sent(replay) > 0, 60, "the replay's first row", "replay.log")
        self.started, ended = time.time(), 0.0
        with Live(console=console, refresh_per_second=2, transient=False) as live:
            while True:
                screen = watch.screen(time.time(), self.started)
                if console.is_terminal:
                    live.update(render(screen))
                elif int(screen.elapsed_s) % 10 == 0:
                    typer.echo(line_of(screen))
                each_second(watch)
                ended = ended or (time.time() if self.results.ended() else 0.0)
                if not ended:
                    self._sent(replay)
                if ended and self._complete():
                    break
                if ended and time.time() > ended + _FINISH_S:
                    console.print(f"no more results after {_FINISH_S:g} s; the verdict will say what is missing")
                    break
                time.sleep(1.0)
        self.finished = time.time()
        self._await(self._quiet, 60, "the last reconfiguration to end", "serve.log")

    def _sent(self, replay: int) -> int:
        """Number of the newest entry. Raises ReplayedError if the replay, by its id, ended before the last one."""
        gone = process_of(replay) is None  # asked first: an entry may be the last act of the replay
        sent = self.results.sent()
        if gone and sent < self.rows.last:
            log = self.out / "replay.log"
            raise ReplayedError(
                f"the replay ended behind row {sent} of {self.rows.last - 1}.\n{_tail(log)}\n",
                remedy=f"Look into {log}.",
            )
        return sent

    def _watch(self) -> Watch:
        from leeward.adapters.zookeeper import ZooControlStore
        from leeward.control.snapshot import read_snapshot
        from leeward.core.control import Paths
        from leeward.dashboard.watch import Watch

        store = ZooControlStore(self.zookeeper, Paths("/leeward", self.topology_id), TOPOLOGY)
        return Watch(
            title=self.title,
            topology_id=self.topology_id,
            snapshots=self.snapshots,
            results=self.results,
            events=self.events,
            record=store.read_record,
            slots=lambda: read_snapshot(self.cluster_store.snapshot(lambda: None), self.topology_id).assigned.slots,
            tasks=self.tasks,
            order=OPERATORS,
        )

    def _complete(self) -> bool:
        newest = self.results.newest(1)
        return bool(newest) and newest[-1].number >= self.rows.reference[-1].number

    def _quiet(self) -> bool:
        self.events.read()
        return len(self.events.named("reconfiguration_started")) <= len(
            [e for e in self.events.named("reconfiguration_ended") if e.get("kind") != "reset"]
        )

    def _await(self, done: Callable[[], Any], seconds: float, what: str, log: str) -> None:
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() > until:
                raise ReplayedError(
                    f"waited {seconds:g} s for {what}.\n{_tail(self.out / log)}\n",
                    remedy=f"Look into {self.out / log}.",
                )
            time.sleep(0.3)

    def verdict(self) -> Verdict:
        """The results beside those of the reference."""
        from leeward.dashboard.verdict import compare

        rows = self.results.all()
        reference = [expected.row for expected in self.rows.reference]
        return compare([row.number for row in rows], [row.text for row in rows], reference)


def line_of(screen: Any) -> str:
    """The live view where there is no terminal: one line."""
    replicas = " ".join(
        f"{operator.name}:{operator.replicas}" for operator in screen.operators if operator.replicas > 1
    )
    response = f"{screen.responses_ms[-1]:.0f} ms" if screen.responses_ms else "-"
    return (
        f"{screen.elapsed_s:4.0f} s  {screen.clock}  {screen.rates[-1]:4.0f} tuples/s  response {response:>7}  "
        f"backlog {screen.backlog:5}  {replicas or 'one replica each'}  {screen.migration}"
    )


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """A line for each step, with its seconds; a spinner where there is a terminal."""
    from rich.console import Console

    console = Console()
    start = time.monotonic()
    with console.status(name) as status:
        yield lambda text: status.update(f"{name}: {text}")
    console.print(f"[green]ok[/] {name} ({time.monotonic() - start:.0f} s)", highlight=False, soft_wrap=True)


def run_leeward(arguments: list[str], log: Path) -> None:
    """A `leeward` command to its end. Raises ReplayedError with the end of what it printed."""
    with log.open("w") as file:
        code = subprocess.run(leeward_command(arguments), stdout=file, stderr=subprocess.STDOUT).returncode
    if code:
        raise ReplayedError(
            f"leeward {' '.join(arguments)}: exit code {code}.\n{_tail(log)}\n", remedy=f"Look into {log}."
        )


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-12:])
