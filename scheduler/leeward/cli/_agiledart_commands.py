"""AgileDART's own commands of `leeward experiment`; heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._output import Output, OutputOption
from leeward.local.places import written

OUT = written("experiments", here=Path.cwd())


def agiledart_live_paths(
    quick: Annotated[bool, typer.Option("--quick", help="9 sites and 30 packets, half a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Of links, losses and routers.")] = 0,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the emulated network.")] = OUT
    / "agiledart-live-paths-network",
    base_port: Annotated[int, typer.Option(help="Chooses the subnet of the network.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, and the sites' lines.")] = OUT
    / "agiledart-live-paths",
) -> None:
    """AgileDART: processes forward packets over an emulated network that loses them, while their routers learn.

    Needs root. A full run takes ten minutes. Example: leeward experiment agiledart-live-paths --quick
    """
    from leeward.cli._agiledart_live_paths import run_live
    from leeward.core.errors import LeewardError

    try:
        run_live(quick=quick, seed=seed, folder=cluster, base_port=base_port, output=output, out=out)
    except (LeewardError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
