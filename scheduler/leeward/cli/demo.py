"""`leeward demo`: a stateful topology is scaled and moved on a real Storm while taxi data flow; then the verdict."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._background import background, leeward_command
from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR, EXIT_INTERRUPTED
from leeward.cli.cluster import BasePort
from leeward.core.errors import ConfigError, LeewardError
from leeward.local.places import written

if TYPE_CHECKING:
    from leeward.adapters.results import Results
    from leeward.dashboard.watch import EventFile, Watch
    from leeward.local import LocalCluster

TOPOLOGY = "query1"
OUT = written("demo", here=Path.cwd())
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
#: The demo drains a node when this share of the rows has been sent: its replicas have to move.
DRAIN_AT = 0.45
#: Workers at the start, one a node: the other slot of each node is free, so that what moves finds a fresh worker there.
WORKERS = 5
_START_S = 90.0  # for all tasks to run
_FINISH_S = 180.0  # from the end of the replay to the last result


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    csv: Annotated[
        list[Path] | None, typer.Option(envvar="CSV", help="Own sorted_data.csv files instead of generated rows.")
    ] = None,
    hours: Annotated[float, typer.Option(help="Length of the generated data.")] = 3.0,
    speed: Annotated[float, typer.Option(help="Times real time.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the generated data.")] = 1,
    service_times: Annotated[str, typer.Option(help="emulated (rates of the topology), or none.")] = "emulated",
    mode: Annotated[
        str, typer.Option(envvar="MODE", help="live: tables change without a stop; restart: the papers' way.")
    ] = "live",
    option: Annotated[
        list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="A setting of the service; repeat for more.")
    ] = None,
    drain: Annotated[bool, typer.Option(help="Empty a node while data flow.")] = True,
    keep: Annotated[bool, typer.Option(envvar="KEEP", help="Leave the cluster up.")] = False,
    out: Annotated[Path, typer.Option(envvar="LEEWARD_OUT", help="Folder for everything; verdict in OUT.json.")] = OUT,
    cluster: Annotated[Path, typer.Option(envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")] = DEFAULT_DIR,
    base_port: BasePort = 6600,
) -> None:
    """Real Storm, ZooKeeper, Redis and Spark; about five minutes.

    Exit code 0 only if nothing was lost, doubled or out of order. Example: leeward demo --hours 0.5
    """
    if not Path("topologies", f"{TOPOLOGY}.py").exists():
        raise ConfigError(
            f"demo: no topologies/{TOPOLOGY}.py here.",
            remedy="Run it in a checkout of Leeward; elsewhere begin with `leeward quickstart`.",
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends everything, as Ctrl-C does
    with ExitStack() as stack:
        try:
            run = Demo(
                out=out,
                folder=cluster,
                speed=speed,
                service_times=service_times,
                options=[f"mode={mode}", *(option or [])],
                drain=drain,
                base_port=base_port,
                stack=stack,
                keep=keep,
            )
            run.prepare(csv, hours, seed)
            run.start()
            run.play()
            good = run.judge()
        except KeyboardInterrupt:
            typer.echo("stopped; everything is being ended.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except LeewardError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
    raise typer.Exit(0 if good else 1)


class DemoError(LeewardError):
    """A step of the demo did not come about."""


class Demo:
    """The steps, in order; `stack` ends what they start."""

    def __init__(
        self, *, out: Path, folder: Path, speed: float, service_times: str, options: list[str], drain: bool,
        base_port: int, stack: ExitStack, keep: bool,
    ) -> None:  # fmt: skip
        self.out, self.folder = out, folder
        self.speed, self.service_times, self.base_port = speed, service_times, base_port
        self.options, self.drain = options, drain
        self.stack, self.keep = stack, keep
        self.rows: list[Path] = []  #: CSV files that the reference reads
        self.data = ""
        self.reference: list[Any] = []
        self.cluster: LocalCluster
        self.events: EventFile
        self.started = 0.0

    # --- before

    def prepare(self, csv: list[Path] | None, hours: float, seed: int) -> None:
        """Rows into slices, and the reference's answer on the same rows."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        slices = self.out / "slices"
        if csv:
            self.rows, self.data = _files(csv), ", ".join(map(str, csv))
            command = ["replay", "prepare", *map(str, csv), "--out", str(slices)]
        else:
            self.rows = [self.out / "rows.csv.gz"]
            self.data = f"{hours:g} h generated with seed {seed}, a day's curve of 2013 compressed"
            command = ["replay", "generate", "--hours", str(hours), "--seed", str(seed)]
            command += ["--out", str(slices), "--csv", str(self.rows[0])]
        with step(f"Spark prepares the data: {self.data}"):
            run_leeward(command, self.out / "prepare.log")
        with step("reference: one plain process computes what must come out"):
            from leeward.cli.reference import bolts_importable

            bolts_importable()
            from bolts.query1.reference import reference_rows

            self.reference = list(reference_rows(self.rows, per="pulse", sort=bool(csv)))

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
        with step("scheduler service: plans with S-EDRP"):
            self.stack.enter_context(background(leeward_command(serve), self.out / "serve.log"))
            self._await(
                lambda: self.events.read() and self.events.named("leading"), 30, "the service to lead", "serve.log"
            )

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
        raise DemoError(
            f"after {_START_S:g} s {running} of {len(self.tasks)} tasks run.",
            remedy=f"Look into {self.folder}/workers and {self.folder}/logs.",
        )

    def _end_cluster(self) -> None:
        with step("everything is ended"):
            self.cluster.down()

    # --- the run

    def play(self) -> None:
        """Replay, watch, drain a node on the way, until the last result is there."""
        from rich.console import Console
        from rich.live import Live

        from leeward.dashboard.live import render

        console = Console()
        watch = self._watch()
        command = ["replay", "run", str(self.out / "slices"), "--redis", self.cluster.redis_url]
        command += ["--secrets", str(self.cluster.secrets_file), "--speed", str(self.speed), "--quiet"]
        self.stack.enter_context(background(leeward_command(command), self.out / "replay.log"))
        self._await(lambda: self.results.sent() > 0, 60, "the replay's first row", "replay.log")
        self.started = time.time()
        drained, ended = "", 0.0
        with Live(console=console, refresh_per_second=2, transient=False) as live:
            while True:
                screen = watch.screen(time.time(), self.started)
                if console.is_terminal:
                    live.update(render(screen))
                elif int(screen.elapsed_s) % 10 == 0:
                    typer.echo(line_of(screen))
                if self.drain and not drained and self.results.sent() > DRAIN_AT * self._last_seq:
                    drained = self._drain(watch)
                ended = ended or (time.time() if self.results.ended() else 0.0)
                if ended and self._complete():
                    break
                if ended and time.time() > ended + _FINISH_S:
                    console.print(f"no more results after {_FINISH_S:g} s; the verdict will say what is missing")
                    break
                time.sleep(1.0)
        self.finished = time.time()
        self._await(self._quiet, 60, "the last reconfiguration to end", "serve.log")

    def _watch(self) -> Watch:
        from leeward.adapters.zookeeper import ZooControlStore
        from leeward.control.snapshot import read_snapshot
        from leeward.core.control import Paths
        from leeward.dashboard.watch import Watch

        manifest = json.loads((self.out / "slices/manifest.json").read_text())
        self._last_seq = manifest["rows"] + 1
        store = ZooControlStore(self.zookeeper, Paths("/leeward", self.topology_id), TOPOLOGY)
        return Watch(
            title=f"Leeward: {TOPOLOGY} on Storm, {self.speed:g} times real time",
            topology_id=self.topology_id,
            snapshots=self.snapshots,
            results=self.results,
            events=self.events,
            record=store.read_record,
            slots=lambda: read_snapshot(self.cluster_store.snapshot(lambda: None), self.topology_id).assigned.slots,
            tasks=self.tasks,
            order=OPERATORS,
        )

    def _drain(self, watch: Watch) -> str:
        """Empty the node with most replicas that does not have the source: a spout has no warm task to hand over to."""
        operators = watch.screen(time.time(), self.started).operators
        replicas: Counter[str] = Counter()
        for operator in operators:
            replicas.update(operator.places)
        source = next(operator for operator in operators if operator.name == OPERATORS[0])
        node = min(replicas, key=lambda node: (node in source.places, -replicas[node], node))
        run_leeward(["drain", node, "--cluster", str(self.folder)], self.out / "drain.log")
        return node

    def _complete(self) -> bool:
        newest = self.results.newest(1)
        return bool(newest) and newest[-1].number >= self.reference[-1].number

    def _quiet(self) -> bool:
        self.events.read()
        return len(self.events.named("reconfiguration_started")) <= len(
            [e for e in self.events.named("reconfiguration_ended") if e.get("kind") != "reset"]
        )

    def _await(self, done: Callable[[], Any], seconds: float, what: str, log: str) -> None:
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() > until:
                tail = "\n".join((self.out / log).read_text().splitlines()[-12:])
                raise DemoError(f"waited {seconds:g} s for {what}.\n{tail}\n", remedy=f"Look into {self.out / log}.")
            time.sleep(0.3)

    # --- after

    def judge(self) -> bool:
        """Compare with the reference, print, write OUT.json."""
        from leeward.dashboard.report import build_report, print_report
        from leeward.dashboard.verdict import compare

        rows = self.results.all()
        verdict = compare([r.number for r in rows], [r.text for r in rows], [r.row for r in self.reference])
        report = build_report(
            verdict,
            self.events.all,
            tuples_in=self._last_seq - 1,
            seconds=self.finished - self.started,
            responses_s=[row.age_s for row in rows],
            storm_version=self.storm_version,
            data=self.data,
            emulations={"service_times": self.service_times, "network": "none: loopback, no delay"},
        )
        target = self.out.with_suffix(".json")
        target.write_text(json.dumps(report, indent=1) + "\n")
        print_report(report, target)
        return verdict.good


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


def _files(csv: list[Path]) -> list[Path]:
    """Folders stand for the CSV files in them, by name."""
    found: list[Path] = []
    for path in csv:
        inside = sorted(p for p in path.iterdir() if p.suffix in {".csv", ".gz"}) if path.is_dir() else [path]
        found += inside
    return found


def run_leeward(arguments: list[str], log: Path) -> None:
    """A `leeward` command to its end. Raises DemoError with the end of what it printed."""
    with log.open("w") as file:
        code = subprocess.run(leeward_command(arguments), stdout=file, stderr=subprocess.STDOUT).returncode
    if code:
        tail = "\n".join(log.read_text().splitlines()[-12:])
        raise DemoError(f"leeward {' '.join(arguments)}: exit code {code}.\n{tail}\n", remedy=f"Look into {log}.")
