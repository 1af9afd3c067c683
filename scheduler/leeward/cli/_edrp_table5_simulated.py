"""`leeward experiment edrp-table5-simulated`: Table V's runs in virtual time, with the rates of those on Storm.

The rows and pictures are made in `policies/edrp/experiments/table5_simulated.py`.
"""

from __future__ import annotations

import shutil
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli._common import refusing
from leeward.cli._experiment_service import WORLD
from leeward.cli._output import Output, OutputOption
from leeward.cli.simulate import EDRP
from leeward.core.experiment import Finding, Part
from leeward.local.places import checkout, written

if TYPE_CHECKING:
    from leeward.sim.world.description import WorldFile
    from leeward.sim.world.rates import RateTrace
    from leeward.sim.world.run import Outcome

NAME = "edrp-table5-simulated"


def register(experiment: typer.Typer) -> None:
    """Adds the command to `leeward experiment`."""
    experiment.command(NAME)(edrp_table5_simulated)


def edrp_table5_simulated(
    quick: Annotated[
        bool, typer.Option("--quick", help="A day's curve in 20 minutes of each run, in place of four days in 96.")
    ] = False,
    hours: Annotated[float | None, typer.Option(min=0.1, help="Hours of data, in place of 96, or of 20.")] = None,
    delay_ms: Annotated[float, typer.Option(help="One-way delay between two nodes, ms.", min=0.0)] = 0.0,
    topology: Annotated[Path | None, typer.Option(help="World of the topology (TOML) [default: query 1].")] = None,
    seed: Annotated[int, typer.Option(help="Of the rows and the policy.")] = 1,
    output: OutputOption = Output.table,
    out: Annotated[Path | None, typer.Option(help="Folder for JSON, CSV and picture.")] = None,
) -> None:
    """EDRP, Table V in virtual time: the eight runs of `edrp-table5`, with their rates and settings, in two minutes.

    Example: leeward experiment edrp-table5-simulated --quick
    """
    from leeward.cli._edrp_table5 import FULL_H, QUICK_H, Asked
    from leeward.cli._experiment import measure_parts, tell
    from leeward.sim.world.description import load_world

    folder = out or written("experiments", here=Path.cwd())
    asked = Asked(quick=quick, hours=hours or (QUICK_H if quick else FULL_H), seed=seed, runs=(), options="")
    with refusing():
        world = load_world(topology or (checkout() or Path.cwd()) / WORLD)
        study = SimulatedTable5(replace(world, delay_s=delay_ms / 1e3), asked.trace, asked.hours)
        rows, began = folder / f"{NAME}.rows", time.monotonic()
        finding = study.conclude(measure_parts(study, list(study.parts(seed=seed, quick=quick)), rows, NAME))
        command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}"
        command += (f" --hours {hours:g}" if hours else "") + (f" --delay-ms {delay_ms:g}" if delay_ms else "")
        command += f" --topology {topology}" if topology else ""
        tell(NAME, finding, command=command, seed=seed, seconds=time.monotonic() - began, output=output, out=folder)
    shutil.rmtree(rows, ignore_errors=True)  # it is over: the next call measures again


@dataclass(frozen=True, slots=True)
class SimulatedTable5:
    """See the module. A Study."""

    world: WorldFile
    trace: RateTrace  #: at 60 times real time
    hours: float  #: of data, each a minute of the run

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """Each objective in each mode. All that its figures depend on is in the options, for the file of parts."""
        from leeward.policies.edrp.experiments.table5 import MODES, OBJECTIVES

        return [
            Part(
                name=f"{objective.name}, {mode}", seed=seed,
                options=(
                    ("objective", objective.name), ("mode", mode), ("hours", self.hours),
                    ("shape", "day" if quick else "week"), ("delay", self.world.delay_s), ("world", self.world.name),
                ),
            )
            for mode in MODES for objective in OBJECTIVES
        ]  # fmt: skip

    def measure(self, part: Part) -> Mapping[str, float]:
        """One simulation."""
        from leeward.control.registry import policy_of, setting_names
        from leeward.core.settings import settings_from
        from leeward.policies.edrp.experiments.table5 import OBJECTIVES, service_options
        from leeward.sim.world.run import simulate

        (objective,) = (one for one in OBJECTIVES if one.name == part.option("objective"))
        options = [f"{key}={value}" for key, value in service_options(objective, str(part.option("mode"))).items()]
        document = {
            "seed": part.seed,
            "edrp": {**EDRP, "gap": 0.0, "seed": part.seed, "link_delay_s": self.world.delay_s},
        }
        chosen = settings_from(document, options, more=setting_names)
        return figures_of(simulate(self.world, self.trace, policy_of(chosen), chosen.service, hours=self.hours / 60))

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """The rows of the room."""
        from leeward.policies.edrp.experiments.table5_simulated import conclude

        runs = {(str(p.option("objective")), str(p.option("mode"))): figures for p, figures in measured.items()}
        return conclude(runs, minutes=self.hours, peak=self.trace.peak, delay_s=self.world.delay_s)


def figures_of(outcome: Outcome) -> dict[str, float]:
    """The figures of one simulation; times in s."""
    from leeward.policies.edrp.experiments.table5 import POINTS

    figures = outcome.figures
    seconds = 3600.0 * figures.hours
    times = [sample.at_s for sample in figures.samples]
    last = len(times) - 1
    replicas = {
        f"replicas {at}": float(figures.samples[min(bisect_left(times, seconds * (at + 1) / POINTS), last)].replicas)
        for at in range(POINTS)
    }
    return {
        "response": figures.mean_response_s, "p95": figures.p95_response_s, "cost": figures.cost / figures.hours,
        "downtime": figures.downtime_s, "seconds": seconds, "longest": figures.longest_stop_s,
        "reconfigurations": float(figures.handovers + figures.restarts), "most replicas": float(figures.most_replicas),
        "offered": figures.offered, "lost": figures.lost, **replicas,
    }  # fmt: skip
