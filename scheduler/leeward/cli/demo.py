"""`leeward demo`: a stateful topology is scaled and moved on a real Storm while taxi data flow; then the verdict."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR, EXIT_INTERRUPTED, sigterm_interrupts
from leeward.cli._replayed import OPERATORS, Replayed, generated_rows, prepared_rows, refuse_elsewhere, run_leeward
from leeward.cli._service import settings_of
from leeward.cli.cluster import BasePort
from leeward.core.errors import LeewardError
from leeward.local.places import written
from leeward.local.preflight import refuse_running

if TYPE_CHECKING:
    from leeward.dashboard.watch import Watch

OUT = written("demo", here=Path.cwd())
#: The demo drains a node when this share of the rows has been sent: its replicas have to move.
DRAIN_AT = 0.45


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    csv: Annotated[
        list[Path] | None, typer.Option(envvar="CSV", help="Own sorted_data.csv files instead of generated rows.")
    ] = None,
    hours: Annotated[float, typer.Option(help="Length of the generated data.")] = 3.0,
    speed: Annotated[float, typer.Option(min=0.1, help="Times real time.")] = 60.0,
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
    http: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Of the page that shows the run; port 0: any that is free.")
    ] = "127.0.0.1:0",
    out: Annotated[Path, typer.Option(envvar="LEEWARD_OUT", help="Folder for everything; verdict in OUT.json.")] = OUT,
    cluster: Annotated[Path, typer.Option(envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")] = DEFAULT_DIR,
    base_port: BasePort = 6600,
) -> None:
    """Real Storm, ZooKeeper, Redis and Spark; about five minutes.

    Exit code 0 only if nothing was lost, doubled or out of order. Example: leeward demo --hours 0.5
    """
    refuse_elsewhere("demo")
    sigterm_interrupts()
    settings = [f"mode={mode}", *quickened(speed), *(option or [])]
    with ExitStack() as stack:
        try:
            settings_of(None, settings)  # before anything is started
            refuse_running(cluster)
            rows = prepared_rows(csv, out) if csv else generated_rows(*generating(hours, seed=seed), out)
            run = Replayed(
                rows, out=out, folder=cluster, speed=speed, service_times=service_times,
                options=settings, base_port=base_port, stack=stack, keep=keep, http=http,
            )  # fmt: skip
            run.start()
            run.play(Drain(run) if drain else lambda watch: None)
            good = judge(run)
        except KeyboardInterrupt:
            typer.echo("stopped; everything is being ended.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except LeewardError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
    raise typer.Exit(0 if good else 1)


def generating(hours: float, *, seed: int) -> tuple[list[str], str]:
    """Options of `leeward replay generate`, and the rows in words."""
    options = ["--hours", str(hours), "--seed", str(seed)]
    return options, f"{hours:g} h generated with seed {seed}, a day's curve of 2013 compressed"


def quickened(speed: float) -> list[str]:
    """The guards' delays, which pass as much faster than by default as the data do."""
    from leeward.core.settings import Settings

    usual = Settings()
    return [f"{name}={getattr(usual, name) / speed:g}" for name in ("scale_down_s", "no_return_s")]


class Drain:
    """Empties a node once, when a share of the rows has been sent."""

    def __init__(self, run: Replayed) -> None:
        self._run, self._done = run, False

    def __call__(self, watch: Watch) -> None:
        """Once a second. The node with most replicas that has not the source: a spout has no task to hand over to."""
        run = self._run
        if self._done or run.results.sent() <= DRAIN_AT * run.rows.last:
            return
        self._done = True
        operators = watch.screen(time.time(), run.started).operators
        replicas: Counter[str] = Counter()
        for operator in operators:
            replicas.update(operator.places)
        source = next(operator for operator in operators if operator.name == OPERATORS[0])
        node = min(replicas, key=lambda node: (node in source.places, -replicas[node], node))
        run_leeward(["drain", node, "--cluster", str(run.folder)], run.out / "drain.log")


def judge(run: Replayed) -> bool:
    """Compare with the reference, print, write OUT.json."""
    from leeward.dashboard.report import build_report, print_report

    verdict = run.verdict()
    report = build_report(
        verdict,
        run.events.all,
        tuples_in=run.rows.last - 1,
        seconds=run.finished - run.started,
        responses_s=[row.age_s for row in run.results.all()],
        storm_version=run.storm_version,
        data=run.rows.data,
        emulations={"service_times": run.service_times, "network": "none: loopback, no delay"},
    )
    target = run.out.with_suffix(".json")
    target.write_text(json.dumps(report, indent=1) + "\n")
    print_report(report, target)
    return verdict.good
