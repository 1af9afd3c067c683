"""`leeward reference query1 FILE...`: the challenge's rows from one plain process."""

from __future__ import annotations

import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leeward.core.errors import ConfigError, LeewardError
from leeward.local.places import checkout


class Per(StrEnum):
    """When a row is due: after the event that changed the ten, or at the pulse that closes an interval."""

    EVENT = "event"
    PULSE = "pulse"


def register(app: typer.Typer) -> None:
    """Adds `reference` and its sub-commands to the command line."""
    reference = typer.Typer(help="Single-process references, to compare a topology's output with.")
    reference.callback()(_group)  # keeps `query1` a sub-command though it is the only one
    reference.command("query1")(query1)
    app.add_typer(reference, name="reference")


def _group() -> None:
    """Single-process references, to compare a topology's output with."""


def query1(
    files: Annotated[list[Path], typer.Argument(help="CSV files of 17 columns, plain or gzip, in order of dropoff.")],
    per: Annotated[Per, typer.Option(help="A row per event that changes the ten, or per pulse.")] = Per.EVENT,
    pulse_s: Annotated[int, typer.Option(min=1, help="Interval of the pulses, seconds of data time.")] = 60,
    lon_m_per_deg: Annotated[
        float | None,
        typer.Option("--cell-lon-m-per-deg", help="Metres of one degree of longitude, for own cells."),
    ] = None,
    lat_m_per_deg: Annotated[
        float | None,
        typer.Option("--cell-lat-m-per-deg", help="Metres of one degree of latitude, for own cells."),
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the rows by dropoff first (all in memory).")] = False,
    count_bad: Annotated[
        bool,
        typer.Option("--count-bad", help="Print to standard error how many rows were rejected, by reason."),
    ] = False,
) -> None:
    """The ten top routes of the last 30 minutes: pickup, dropoff, from_1, to_1, ..., from_10, to_10."""
    bolts_importable()
    from bolts.query1.grid import Grid
    from bolts.query1.reference import reference_rows

    if (lon_m_per_deg is None) != (lat_m_per_deg is None):
        raise typer.BadParameter("give --cell-lon-m-per-deg and --cell-lat-m-per-deg together, or neither.")
    rejects: Counter[str] = Counter()
    try:
        grid = (
            Grid.of_metres(lon_m_per_degree=lon_m_per_deg, lat_m_per_degree=lat_m_per_deg)
            if lon_m_per_deg is not None and lat_m_per_deg is not None
            else Grid()
        )
        for result in reference_rows(files, per=per.value, pulse_s=pulse_s, grid=grid, rejects=rejects, sort=sort):
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
        raise ConfigError("reference: no bolts/query1 here.", remedy="Run it in a checkout of Leeward.")
    if str(root) not in sys.path:
        sys.path.append(str(root))
