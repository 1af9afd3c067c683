"""`leeward experiment agiledart-recovery`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._output import Output, OutputOption
from leeward.local.places import written

OUT = written("experiments", here=Path.cwd()) / "agiledart-recovery"


def agiledart_recovery(
    quick: Annotated[
        bool, typer.Option("--quick", help="32 MiB, and one and eight failures, in half a minute.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the states' bytes.")] = 0,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture.")] = OUT,
) -> None:
    """AgileDART, Fig. 11: state rebuilt from fragments at agents, as processes on this machine, under emulated rates.

    A full run takes three minutes. Example: leeward experiment agiledart-recovery --quick
    """
    from leeward.cli._recovery_live import run_recovery
    from leeward.core.errors import LeewardError

    try:
        run_recovery(quick=quick, seed=seed, output=output, out=out)
    except (LeewardError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
