"""`leeward reference query1 FILE...`: the results of an application's topology, from one plain process."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.core.errors import ConfigError, LeewardError
from leeward.local.places import checkout


class Per(StrEnum):
    """When a row is due: after the event that changed the ten, or at the pulse that closes an interval."""

    EVENT = "event"
    PULSE = "pulse"


Files = Annotated[list[Path], typer.Argument(help="CSV files of 17 columns, plain or gzip, in order of dropoff.")]
PerOption = Annotated[Per, typer.Option(help="A row per event that changes the ten, or per pulse.")]
PulseOption = Annotated[int, typer.Option(min=1, help="Interval of the pulses, seconds of data time.")]
SortOption = Annotated[bool, typer.Option("--sort", help="Sort the rows by dropoff first (all in memory).")]
CountOption = Annotated[
    bool, typer.Option("--count-bad", help="Print to standard error how many rows were rejected, by reason.")
]


def register(app: typer.Typer) -> None:
    """Adds `reference` and its sub-commands to the command line."""
    reference = typer.Typer(help="Single-process references, to compare a topology's output with.")
    reference.command("query1")(query1)
    reference.command("query2")(query2)
    reference.command("urban")(urban)
    app.add_typer(reference, name="reference")


def query1(
    files: Files,
    per: PerOption = Per.EVENT,
    pulse_s: PulseOption = 60,
    lon_m_per_deg: Annotated[
        float | None,
        typer.Option("--cell-lon-m-per-deg", help="Metres of one degree of longitude, for own cells."),
    ] = None,
    lat_m_per_deg: Annotated[
        float | None,
        typer.Option("--cell-lat-m-per-deg", help="Metres of one degree of latitude, for own cells."),
    ] = None,
    sort: SortOption = False,
    count_bad: CountOption = False,
) -> None:
    """The ten top routes of the last 30 minutes: pickup, dropoff, from_1, to_1, ..., from_10, to_10.

    Example: leeward reference query1 out/rows.csv.gz --per pulse
    """
    bolts_importable()
    from bolts.query1.grid import Grid
    from bolts.query1.reference import reference_rows

    if (lon_m_per_deg is None) != (lat_m_per_deg is None):
        raise typer.BadParameter("give --cell-lon-m-per-deg and --cell-lat-m-per-deg together, or neither.")

    def rows(rejects: Counter[str]) -> Any:
        grid = (
            Grid.of_metres(lon_m_per_degree=lon_m_per_deg, lat_m_per_degree=lat_m_per_deg)
            if lon_m_per_deg is not None and lat_m_per_deg is not None
            else Grid()
        )
        return reference_rows(files, per=per.value, pulse_s=pulse_s, grid=grid, rejects=rejects, sort=sort)

    _print(rows, count_bad=count_bad)


def query2(
    files: Files,
    per: PerOption = Per.EVENT,
    pulse_s: PulseOption = 60,
    sort: SortOption = False,
    count_bad: CountOption = False,
) -> None:
    """The ten most profitable areas: pickup, dropoff, then id, empty taxis, median profit, profitability of each.

    Example: leeward reference query2 out/rows.csv.gz --per pulse
    """
    bolts_importable()
    from bolts.query2.reference import reference_rows

    _print(
        lambda rejects: reference_rows(files, per=per.value, pulse_s=pulse_s, rejects=rejects, sort=sort),
        count_bad=count_bad,
    )


def urban(
    reports: Annotated[int, typer.Option(min=1, help="How many reports the sensors make.")] = 6000,
    sensors: Annotated[int, typer.Option(min=1, help="Sensors of all cities: urban.sensors.")] = 90_000,
    seed: Annotated[int, typer.Option(help="Of the reports: latency.seed.")] = 1,
    pulse_s: Annotated[int, typer.Option(min=1, help="Interval of the pulses, seconds of data time.")] = 10,
    window_s: Annotated[int, typer.Option(min=1, help="Seconds of data time, a multiple of the interval.")] = 60,
    count_bad: CountOption = False,
) -> None:
    """Index, alert and figures of seven cities at each pulse: t, city, index, worst kind, alert, four figures a kind.

    Example: leeward reference urban --reports 6000 --sensors 70
    """
    bolts_importable()
    from bolts.urban.reference import made_lines, reference_rows
    from bolts.urban.settings import read_settings

    def rows(drops: Counter[str]) -> Any:
        read_settings({"urban.pulse_s": pulse_s, "urban.window_s": window_s})  # raises ConfigError
        lines = made_lines(seed, sensors, reports)
        return reference_rows(lines, pulse_s=pulse_s, window_s=window_s, drops=drops)

    _print(rows, count_bad=count_bad)


def _print(rows: Callable[[Counter[str]], Any], *, count_bad: bool) -> None:
    """The results on standard output, one a line; exit code 1 for input that cannot be read."""
    rejects: Counter[str] = Counter()
    try:
        for result in rows(rejects):
            sys.stdout.write(result.row + "\n")
    except LeewardError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    if count_bad:
        for reason, count in sorted(rejects.items()):
            typer.echo(f"{reason}: {count}", err=True)


def bolts_importable() -> None:
    """`bolts` lies beside the package's folder in a checkout, not in an installation."""
    root = checkout()
    if root is None:
        raise ConfigError("reference: no bolts/ here.", remedy="Run it in a checkout of Leeward.")
    if str(root) not in sys.path:
        sys.path.append(str(root))
