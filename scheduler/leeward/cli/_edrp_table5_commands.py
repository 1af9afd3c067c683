"""`leeward experiment edrp-table5` and `edrp-table5-simulated`: their options. Heavy imports wait until one runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli._common import refusing
from leeward.cli._experiment_live import OUT
from leeward.cli._output import Output, OutputOption

if TYPE_CHECKING:
    from leeward.cli._edrp_table5 import Asked

QuickOption = Annotated[
    bool, typer.Option("--quick", help="A day's curve in 20 minutes of each run, in place of four days in 96.")
]
HoursOption = Annotated[float | None, typer.Option(min=0.1, help="Hours of data, in place of 96, or of 20.")]
ObjectiveOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="One of the four objectives; repeat for more.")
]
ModeOption = Annotated[list[str] | None, typer.Option(help="live or restart; both if left out.")]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("-o", metavar="KEY=VALUE", help="A setting in place of the paper's (edrp.c_max=10); repeat for more."),
]


def register(experiment: typer.Typer) -> None:
    """Adds both to `leeward experiment`."""
    experiment.command("edrp-table5")(edrp_table5)
    experiment.command("edrp-table5-simulated")(edrp_table5_simulated)


def edrp_table5(
    quick: QuickOption = False,
    objective: ObjectiveOption = None,
    mode: ModeOption = None,
    option: SettingOption = None,
    hours: HoursOption = None,
    seed: Annotated[int, typer.Option(help="Of the rows.")] = 1,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the cluster that is started.")] = OUT
    / "edrp-table5-cluster",
    base_port: Annotated[int, typer.Option(help="First port of the cluster's block.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, rows and events.")] = OUT / "edrp-table5",
    runs: Annotated[
        Path | None,
        typer.Option(help="Folder of runs that are over, kept for good. [default: in --out, until all eight are over]"),
    ] = None,
) -> None:
    """EDRP, Table V: query 1 on a real Storm for four objectives, by handover and by restart.

    Eight runs, one after the other: 13 hours, or 3 with --quick. Goes on where it was broken off.
    Example: leeward experiment edrp-table5 --quick --objective balanced --mode live
    """
    from leeward.cli._edrp_table5 import run_table5

    asked = _asked(quick, hours, seed, objective, mode, option)
    with refusing():
        run_table5(asked, folder=cluster, base_port=base_port, output=output, out=out, runs=runs)


def edrp_table5_simulated(
    quick: QuickOption = False,
    objective: ObjectiveOption = None,
    mode: ModeOption = None,
    option: SettingOption = None,
    hours: HoursOption = None,
    delay_ms: Annotated[float, typer.Option(help="One-way delay between two nodes, ms.", min=0.0)] = 0.0,
    topology: Annotated[Path | None, typer.Option(help="World of the topology (TOML) [default: query 1].")] = None,
    seed: Annotated[int, typer.Option(help="Of the rows and the policy.")] = 1,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV and picture.")] = OUT,
) -> None:
    """EDRP, Table V in virtual time: the eight runs of `edrp-table5`, with their rates and settings, in two minutes.

    Example: leeward experiment edrp-table5-simulated --objective "response time" --mode live -o edrp.c_max=10
    """
    from leeward.cli._edrp_table5_simulated import run_simulated

    asked = _asked(quick, hours, seed, objective, mode, option)
    with refusing():
        run_simulated(asked, delay_s=delay_ms / 1e3, topology=topology, output=output, out=out)


def _asked(
    quick: bool, hours: float | None, seed: int, objective: list[str] | None, mode: list[str] | None,
    option: list[str] | None,
) -> Asked:  # fmt: skip
    from leeward.cli._edrp_table5 import FULL_H, QUICK_H, Asked
    from leeward.policies.edrp.experiments.table5 import MODES, OBJECTIVES

    names = _one_of("--objective", objective, [one.name for one in OBJECTIVES])
    modes = _one_of("--mode", mode, MODES)
    words = ["--quick"] if quick else []
    words += ["--hours", f"{hours:g}"] if hours else []
    for flag, given in (("--objective", objective), ("--mode", mode), ("-o", option)):
        words += [word for value in given or () for word in (flag, value)]
    return Asked(
        quick=quick, hours=hours or (QUICK_H if quick else FULL_H), seed=seed,
        runs=[(one, how) for how in modes for one in OBJECTIVES if one.name in names],
        options=f" {shlex.join(words)}" if words else "", overrides=tuple(option or ()),
    )  # fmt: skip


def _one_of(option: str, given: list[str] | None, known: Sequence[str]) -> list[str]:
    """The names that were given, or all; a name that is not known ends the command."""
    if wrong := [name for name in given or () if name not in known]:
        raise typer.BadParameter(f"{wrong[0]!r} is none of {', '.join(known)}.", param_hint=option)
    return list(given or known)
