"""`leeward experiment edrp-table5-simulated`: Table V's runs in virtual time, with the rates of those on Storm.

The rows and pictures are made in `policies/edrp/experiments/table5_simulated.py`.
"""

from __future__ import annotations

import shlex
import shutil
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.cli._edrp_table5 import Asked
from leeward.cli._experiment_service import WORLD
from leeward.cli._output import Output
from leeward.cli.simulate import EDRP
from leeward.core.experiment import Finding, Part
from leeward.local.places import checkout

if TYPE_CHECKING:
    from leeward.sim.world.description import WorldFile
    from leeward.sim.world.run import Outcome

NAME = "edrp-table5-simulated"


def run_simulated(asked: Asked, *, delay_s: float, topology: Path | None, output: Output, out: Path) -> None:
    """The runs, on all processors; raises LeewardError and OSError.

    `delay_s`: one way, between two nodes. `topology`: file of the world; None: query 1.
    """
    from leeward.cli._experiment import measure_parts, tell
    from leeward.sim.world.description import load_world

    asked.check()
    world = load_world(topology or (checkout() or Path.cwd()) / WORLD)
    study = SimulatedTable5(replace(world, delay_s=delay_s), asked)
    rows, began = out / f"{NAME}.rows", time.monotonic()
    finding = study.conclude(measure_parts(study.measure, study.parts(), rows, NAME))
    command = f"leeward experiment {NAME} --seed {asked.seed}{asked.options}"
    command += f" --delay-ms {1e3 * delay_s:g}" if delay_s else ""
    command += f" --topology {topology}" if topology else ""
    tell(NAME, finding, command=command, seed=asked.seed, seconds=time.monotonic() - began, output=output, out=out)
    shutil.rmtree(rows, ignore_errors=True)  # it is over: the next call measures again


@dataclass(frozen=True, slots=True)
class SimulatedTable5:
    """See the module."""

    world: WorldFile
    asked: Asked

    def parts(self) -> list[Part]:
        """Each run that is asked for. All that its figures depend on is in the options, for the file of parts."""
        asked = self.asked
        return [
            Part(
                name=f"{objective.name}, {mode}", seed=asked.seed,
                options=(
                    ("objective", objective.name), ("mode", mode), ("hours", asked.hours),
                    ("shape", "day" if asked.quick else "week"), ("delay", self.world.delay_s),
                    ("world", self.world.name), ("overrides", shlex.join(asked.overrides)),
                ),
            )
            for objective, mode in asked.runs
        ]  # fmt: skip

    def measure(self, part: Part) -> Mapping[str, float]:
        """One simulation."""
        from leeward.control.registry import policy_of, setting_names
        from leeward.core.settings import settings_from
        from leeward.policies.edrp.experiments.table5 import OBJECTIVES, service_options
        from leeward.sim.world.run import simulate

        (objective,) = (one for one in OBJECTIVES if one.name == part.option("objective"))
        options = service_options(objective, str(part.option("mode")), self.asked.overrides)
        document = {
            "seed": part.seed,
            "edrp": {**EDRP, "gap": 0.0, "seed": part.seed, "link_delay_s": self.world.delay_s},
        }
        chosen = settings_from(document, options, more=setting_names)
        trace, hours = self.asked.trace, self.asked.hours / 60
        return figures_of(simulate(self.world, trace, policy_of(chosen), chosen.service, hours=hours))

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """The rows of the room."""
        from leeward.policies.edrp.experiments.table5_simulated import conclude

        runs = {(str(p.option("objective")), str(p.option("mode"))): figures for p, figures in measured.items()}
        asked, delay_s = self.asked, self.world.delay_s
        return conclude(runs, minutes=asked.hours, peak=asked.trace.peak, delay_s=delay_s, overrides=asked.overrides)


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
