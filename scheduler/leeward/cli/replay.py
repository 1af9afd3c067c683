"""`leeward replay generate | prepare | run | derive`: taxi data as a stream."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.cluster import SecretsOption
from leeward.core.errors import LeewardError
from leeward.replay.profile import Profile

if TYPE_CHECKING:
    from leeward.replay.manifest import Manifest
    from leeward.replay.sender import Progress

_LINE_EVERY_S = 1.0  # structured lines, unless the state changes
_Quiet = Annotated[bool, typer.Option("--quiet", help="Structured lines (JSON) instead of a progress bar.")]
_SliceMinutes = Annotated[int, typer.Option(min=1, help="Data time in one slice, minutes.")]
_MemoryMb = Annotated[int, typer.Option(min=400, help="Heap of Spark's one Java process, MB.")]
_Cores = Annotated[int, typer.Option(min=1, help="Processor cores for Spark.")]


def register(app: typer.Typer) -> None:
    """Adds `replay` and its sub-commands to the command line."""
    replay = typer.Typer(help="Taxi data as a paced, resumable stream (Spark).", no_args_is_help=True)
    replay.command("generate")(generate)
    replay.command("prepare")(prepare)
    replay.command("run")(run)
    replay.command("derive")(derive)
    app.add_typer(replay, name="replay")


def generate(
    out: Annotated[Path | None, typer.Option(help="Folder for Parquet slices, ready for `run`.")] = None,
    csv: Annotated[Path | None, typer.Option(help="File for all rows as CSV; gzip if it ends in .gz.")] = None,
    hours: Annotated[float, typer.Option(help="Length of the data.")] = 3.0,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal rows.")] = 1,
    profile: Annotated[
        Profile,
        typer.Option(
            help="day: the curve of a whole real day, 4:00 to 4:00, compressed into --hours and scaled to "
            "--trough-rate .. --peak-rate; real: every hour as in the real week; flat: --peak-rate always."
        ),
    ] = Profile.DAY,
    start: Annotated[
        str, typer.Option(help="First minute of the data; its weekday chooses the curve.")
    ] = "2013-01-16 04:00:00",
    peak_rate: Annotated[
        float | None,
        typer.Option(
            help="Rows per minute of data at the peak: at 60 times real time, tuples per second. "
            "Default 215; for `real` the real rate."
        ),
    ] = None,
    trough_rate: Annotated[float, typer.Option(help="Rows per minute of data at the trough (profile day).")] = 60.0,
    slice_minutes: _SliceMinutes = 5,
    memory_mb: _MemoryMb = 640,
    cores: _Cores = 2,
    quiet: _Quiet = False,
) -> None:
    """Make taxi rows whose rate and geography follow the real first half of 2013.

    By default the curve of a whole day is compressed into three hours of data, so that a replay at 60 times
    real time takes 180 s and climbs from about 60 tuples/s to 215 and back. About 2 % of the rows have zero
    coordinates, as in the real data.

    Example: leeward replay generate --hours 3 --out out/slices
    """
    from leeward.replay.generate import Settings
    from leeward.replay.generate import generate as make

    settings = Settings(
        hours=hours,
        seed=seed,
        profile=profile,
        start=start,
        peak_rate=peak_rate,
        trough_rate=trough_rate,
        slice_minutes=slice_minutes,
    )
    with _clean_ending(), _telling(quiet) as tell:
        manifest = make(settings, out=out, csv=csv, memory_mb=memory_mb, cores=cores, tell=tell)
    _summarise(manifest, out or csv, quiet)


def prepare(
    csv: Annotated[list[Path], typer.Argument(help="CSV files of 17 columns, plain or gzip, or folders.")],
    out: Annotated[Path, typer.Option(help="Folder for the slices and manifest.json.")],
    slice_minutes: _SliceMinutes = 5,
    memory_mb: _MemoryMb = 640,
    cores: _Cores = 2,
    quiet: _Quiet = False,
) -> None:
    """Sort any amount of taxi CSV by dropoff, number the rows, and write Parquet slices of data time.

    Rows that cannot be replayed are counted by reason in manifest.json. Ties keep the order of files and
    lines.

    Example: leeward replay prepare path/to/sorted_data.csv --out out/slices
    """
    from leeward.replay.prepare import prepare as make

    with _clean_ending(), _telling(quiet) as tell:
        manifest = make(csv, out, slice_minutes=slice_minutes, memory_mb=memory_mb, cores=cores, tell=tell)
    _summarise(manifest, out, quiet)


def run(
    folder: Annotated[Path, typer.Argument(help="Folder that `prepare` or `generate` wrote.")],
    redis: Annotated[str, typer.Option(help="redis://host:port/0, without the password")],
    stream: Annotated[str, typer.Option(help="Name of the Redis stream.")] = "taxi:in",
    speed: Annotated[float, typer.Option(help="Times real time; 0: as fast as the reader allows.")] = 60.0,
    limit: Annotated[int, typer.Option(help="Wait while the reader is this many rows behind.")] = 20_000,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the stream's newest entry.")] = False,
    from_seq: Annotated[int | None, typer.Option(help="Leave out the rows before this number.")] = None,
    secrets: SecretsOption = None,
    quiet: _Quiet = False,
) -> None:
    """Send prepared rows into a Redis stream, paced by their dropoff times, then an end entry.

    Example: leeward replay run out/slices --redis redis://127.0.0.1:6379/0 --speed 60
    """
    from leeward.core.secrets import NO_SECRETS, refuse_password
    from leeward.replay.run import replay
    from leeward.wire.secrets import read_secrets

    with _clean_ending(), _showing(quiet) as show:
        refuse_password("--redis", redis)
        last = replay(
            folder,
            redis,
            stream,
            speed,
            limit,
            show,
            resume=resume,
            from_seq=from_seq,
            secrets=read_secrets(secrets) if secrets else NO_SECRETS,
        )
    _line(
        quiet,
        "replay_finished",
        f"{last.sent} of {last.rows} rows are in {stream} {last.note}",
        sent=last.sent,
    )


def derive(
    inputs: Annotated[Path, typer.Argument(help="Folder with the taxi sample files.")],
    out: Annotated[Path, typer.Option(help="Folder for the two tables.")],
) -> None:
    """Make the generator's tables (rates by hour of the week, trips) from public sample files.

    Example: leeward replay derive path/to/samples --out tables
    """
    from leeward.replay.derive import derive as make

    with _clean_ending():
        make(inputs, out)


@contextmanager
def _clean_ending() -> Iterator[None]:
    """Errors: their text and exit 2. Ctrl-C: exit 130; SIGTERM: 143; Spark has ended by then either way."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except LeewardError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        typer.echo("stopped.", err=True)
        raise typer.Exit(143 if isinstance(error, _Terminated) else 130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


class _Terminated(KeyboardInterrupt):
    """SIGTERM came. Spark's gateway lets go of a running job for a KeyboardInterrupt, and for nothing else."""


def _terminate(signum: int, frame: object) -> None:
    raise _Terminated


@contextmanager
def _telling(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Steps of unknown length: a spinner with the step's name, or lines."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda text: _line(quiet, "replay_step", text, step=text)
        return
    with console.status("...") as status:
        yield lambda text: status.update(f"{text} ...")


@contextmanager
def _showing(quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A progress bar for a terminal, else lines."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _Lines(quiet).show
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("replay"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("...", total=None)
        yield lambda p: bar.update(task, total=p.rows, completed=p.sent, description=describe(p))


class _Lines:
    """Reports as lines, at most one a second unless the state changes."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._state: str | None = None
        self._at_s = 0.0

    def show(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if progress.state == self._state and now_s - self._at_s < _LINE_EVERY_S:
            return
        self._state, self._at_s = progress.state, now_s
        fields = {name: getattr(progress, name) for name in ("rows", "sent", "backlog", "data_s", "note")}
        _line(
            self.quiet,
            f"replay_{progress.state.value}",
            f"{progress.sent}/{progress.rows} {describe(progress)}",
            late_s=round(progress.late_s, 3),
            blocked_s=round(progress.blocked_s, 3),
            **fields,
        )


def describe(progress: Progress) -> str:
    """One line about a report."""
    at = datetime.fromtimestamp(progress.data_s, UTC).strftime("%Y-%m-%d %H:%M") if progress.data_s else ""
    state = progress.state.value.replace("_", " ")
    return ", ".join(part for part in (state, at, f"backlog {progress.backlog}", progress.note) if part)


def _summarise(manifest: Manifest, where: Path | None, quiet: bool) -> None:
    bad = ", ".join(f"{n} {reason}" for reason, n in manifest.bad.items()) or "none"
    _line(
        quiet,
        "replay_prepared",
        f"{manifest.rows} rows in {len(manifest.slices)} slices at {where}; left out: {bad}",
        rows=manifest.rows,
        slices=len(manifest.slices),
        bad=manifest.bad,
        out=str(where),
    )


def _line(quiet: bool, action: str, text: str, **fields: object) -> None:
    line = json.dumps({"action": action, **fields}) if quiet else text.strip()
    print(line, file=sys.stdout if quiet else sys.stderr, flush=True)
