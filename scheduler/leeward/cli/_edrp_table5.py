"""The run of `leeward experiment edrp-table5`: query 1 on a local cluster, once for each objective and mode.

The parts that compute are in `policies/edrp/experiments/table5.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from leeward.cli._common import EXIT_INTERRUPTED, sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._kept import Kept
from leeward.cli._output import Output
from leeward.cli._replayed import Replayed, Rows, generated_rows, refuse_elsewhere, remove_earlier
from leeward.control.registry import policy_of, setting_names
from leeward.core.errors import LeewardError
from leeward.core.settings import settings_from
from leeward.local.preflight import refuse_running
from leeward.policies.edrp.experiments.table5 import (
    OBJECTIVES,
    Measured,
    Objective,
    conclude,
    measure,
    measured_of,
    service_options,
)

if TYPE_CHECKING:
    from leeward.sim.world.rates import RateTrace

NAME = "edrp-table5"
SPEED = 60.0
#: Data of the paper's run: four days of a week as it was, h; of a quick one: a day's curve pressed into these hours.
FULL_H, QUICK_H = 96.0, 20.0
#: Rows per minute of data, at 60 times real time tuples/s.
PEAK, TROUGH = 260.0, 20.0
START = "2013-01-14 04:00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The rows to be replayed, and the runs that are asked for."""

    quick: bool
    hours: float  #: of data
    seed: int
    runs: Sequence[tuple[Objective, str]]
    options: str  #: of the command line, beside the seed, to repeat it
    overrides: Sequence[str] = ()  #: settings in place of the paper's, key=value

    @property
    def rows(self) -> tuple[str, ...]:
        """Options of `leeward replay generate`."""
        shape = ("day", "--trough-rate", f"{TROUGH:g}") if self.quick else ("real", "--start", START)
        sizes = ("--hours", f"{self.hours:g}", "--peak-rate", f"{PEAK:g}", "--seed", str(self.seed))
        return ("--profile", *shape, *sizes)

    @property
    def words(self) -> str:
        """The rows for people."""
        shape = "a day's curve of 2013 compressed" if self.quick else f"the week of 2013 from {START} on"
        return f"{self.hours:g} h generated with seed {self.seed}, {shape}, at most {PEAK:g} tuples/s"

    @property
    def trace(self) -> RateTrace:
        """How many of them are sent each second: those of a minute of data."""
        from leeward.replay.generate import Settings, counts_of
        from leeward.replay.profile import Profile
        from leeward.sim.world.rates import RateTrace

        shape: dict[str, Any] = {"trough_rate": TROUGH} if self.quick else {"profile": Profile.REAL, "start": START}
        counts = counts_of(Settings(hours=self.hours, peak_rate=PEAK, seed=self.seed, **shape))
        return RateTrace(tuple(at + 0.5 for at in range(len(counts))), tuple(map(float, counts)))

    @property
    def kept_by(self) -> tuple[object, ...]:
        """Settings that a kept run must have been made with to count."""
        return (self.rows, SPEED, *([tuple(self.overrides)] if self.overrides else []))

    def check(self) -> None:
        """Raises ConfigError if the service would not take the settings of a run."""
        for objective, mode in self.runs:
            policy_of(settings_from({}, service_options(objective, mode, self.overrides), more=setting_names))


def run_table5(
    asked: Asked, *, folder: Path, base_port: int, output: Output, out: Path, runs: Path | None = None
) -> None:
    """All runs that are not kept of an earlier call, one after the other; raises LeewardError, OSError, typer.Exit.

    `runs`: where they are kept for good; None: in `out`, until all are over.
    """
    refuse_elsewhere(f"experiment {NAME}")
    asked.check()
    sigterm_interrupts()
    began = time.monotonic()
    kept = Kept(runs or out / f"{NAME}.runs", asked.kept_by, measured_of)
    left = [run for run in asked.runs if (run[0].name, run[1]) not in kept.runs]
    if left:
        refuse_running(folder)
    failed: list[str] = []
    try:
        with redirect_stdout(sys.stderr):  # of the result alone
            rows = generated_rows(asked.rows, asked.words, out / "rows") if left else None
            for at, (objective, mode) in enumerate(left, 1):
                assert rows is not None  # some are left
                typer.echo(f"run {at} of {len(left)}: {objective.name}, {mode}")
                try:
                    options = service_options(objective, mode, asked.overrides)
                    kept.add(_run(objective, mode, rows, options, folder=folder, base_port=base_port, out=out))
                except (LeewardError, ValueError) as error:
                    failed.append(f"{objective.name}, {mode}: {error}")
                    typer.echo(f"failed: {error}")
    except KeyboardInterrupt:
        typer.echo(f"stopped: the same command goes on after {len(kept.runs)} runs.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    chosen = {(objective.name, mode) for objective, mode in asked.runs}
    told = [one for key, one in kept.runs.items() if key in chosen]
    finding = conclude(told, failed=failed, overrides=asked.overrides)
    command = f"leeward experiment {NAME} --seed {asked.seed}{asked.options}"
    seconds = sum(one.seconds for one in told) if not left else time.monotonic() - began
    tell(NAME, finding, command=command, seed=asked.seed, seconds=seconds, output=output, out=out)
    if runs is None and len(kept.runs) == 2 * len(OBJECTIVES):
        kept.end()  # it is over: the next call measures again


def _run(
    objective: Objective, mode: str, rows: Rows, options: list[str], *, folder: Path, base_port: int, out: Path
) -> Measured:
    where = out / f"{objective.name.replace(' ', '_')}-{mode}"
    where.mkdir(parents=True, exist_ok=True)
    remove_earlier(where)
    with ExitStack() as stack:
        run = Replayed(
            rows, out=where, folder=folder, speed=SPEED, service_times="emulated", base_port=base_port, stack=stack,
            options=options, title=f"Table V: {objective.name}, {mode}",
        )  # fmt: skip
        run.start()
        run.play()
        verdict = run.verdict()
        return measure(
            run.events.all, run.results.all(), began=run.started, ended=run.finished, objective=objective.name,
            mode=mode, tuples=rows.last - 1, expected=verdict.expected,
            wrong=verdict.lost + verdict.duplicated + verdict.out_of_order,
        )  # fmt: skip
