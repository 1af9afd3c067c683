"""The part of `leeward simulate` that runs policies side by side on a workload of topologies that come and go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from leeward.cli._common import EXIT_INTERRUPTED
from leeward.cli._output import Output, document_text
from leeward.cli._progress import progress

if TYPE_CHECKING:
    from leeward.core.experiment import Setting
    from leeward.core.policy import JointPolicy
    from leeward.core.workload import Interval, Workload
    from leeward.sim.workload.arrivals import Step
    from leeward.sim.workload.rows import RowsFile

#: Control intervals where none are given: the paper's, of its small and its large cluster.
SMALL_NODES, SMALL_INTERVALS, LARGE_INTERVALS = 100, 100, 400


class Arrivals(StrEnum):
    """How topologies come and go."""

    random_walk = "random-walk"
    poisson = "poisson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of the command."""

    workload: str
    policies: tuple[str, ...]
    nodes: int
    intervals: int | None
    arrivals: Arrivals
    spread: float | None
    seed: int
    rows: Path | None
    every_interval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entrant:
    """A policy that runs."""

    label: str
    policy: JointPolicy


def simulate_workload(wanted: Wanted, output: Output) -> None:
    """Runs each policy on the same arrivals, and prints a summary; raises LeewardError and OSError for bad input."""
    from leeward.control.registry import make_workload
    from leeward.sim.workload.bench import steps_of
    from leeward.sim.workload.rows import RowsFile

    entrants = _entrants(wanted.policies)
    workload = make_workload(wanted.workload, nodes=wanted.nodes, seed=wanted.seed)
    steps = steps_of(_setting(wanted), workload.sizes)
    about = _about(wanted)
    with ExitStack() as stack:
        kept = None if wanted.rows is None else stack.enter_context(RowsFile(wanted.rows, about))
        found = _play(entrants, workload, steps, kept, wanted)
    _print({**about, "intervals": len(steps)}, found, output, wanted.every_interval)


def _entrants(texts: Sequence[str]) -> list[_Entrant]:
    """The policies that `NAME,key=value` name. Raises ConfigError naming option, value and remedy."""
    from leeward.control.registry import make_joint_policy
    from leeward.core.errors import ConfigError
    from leeward.core.options import Text

    if not texts:
        raise ConfigError("--policy is missing.", remedy="Name at least one: --policy NAME,key=value.")
    found: list[_Entrant] = []
    for label in texts:
        if label in [entrant.label for entrant in found]:
            raise ConfigError(f"--policy {label!r} is there twice.", remedy="Give each once.")
        name, *options = label.split(",")
        values: dict[str, object] = {}
        for option in options:
            key, equals, value = option.partition("=")
            if not equals or key in values:
                said = "is there twice" if equals else "has no '='"
                raise ConfigError(f"--policy {label!r}: {option!r} {said}.", remedy="Write NAME,key=value,key=value.")
            values[key] = Text(value)
        found.append(_Entrant(label=label, policy=make_joint_policy(name, values)))
    return found


def _setting(wanted: Wanted) -> Setting:
    """The arrivals: of the seed, and of nothing that a policy does. Raises ConfigError for a spread without a walk."""
    from leeward.core.errors import ConfigError
    from leeward.core.experiment import Setting

    if wanted.spread is not None and wanted.arrivals is not Arrivals.random_walk:
        raise ConfigError(
            f"--spread is {wanted.spread:g}, but arrivals are {wanted.arrivals}.",
            remedy=f"Leave it out, or give --arrivals {Arrivals.random_walk}.",
        )
    small = wanted.nodes <= SMALL_NODES
    return Setting(
        workload=wanted.workload, nodes=wanted.nodes, seed=wanted.seed, arrivals=wanted.arrivals.value,
        intervals=wanted.intervals or (SMALL_INTERVALS if small else LARGE_INTERVALS), spread=wanted.spread or 0.0,
    )  # fmt: skip


def _about(wanted: Wanted) -> dict[str, Any]:
    """Everything on which rows depend, but for the policy."""
    from leeward import __version__

    spread = {"spread": wanted.spread or 0.0} if wanted.arrivals is Arrivals.random_walk else {}
    return {
        "workload": wanted.workload, "nodes": wanted.nodes, "seed": wanted.seed, "arrivals": str(wanted.arrivals),
        **spread, "version": __version__,
    }  # fmt: skip


def _play(
    entrants: Sequence[_Entrant], workload: Workload, steps: tuple[Step, ...], kept: RowsFile | None, wanted: Wanted
) -> dict[str, list[Interval]]:
    """The rows of each policy, one policy after the other. Ends the command if it is interrupted."""
    from leeward.sim.workload.run import play

    found: dict[str, list[Interval]] = {}
    with progress(len(entrants) * len(steps), entrants[0].label) as advance:
        for number, entrant in enumerate(entrants):
            done = list(kept.done(entrant.label))[: len(steps)] if kept is not None else []
            found[entrant.label] = done
            run = play(workload, entrant.policy, steps, seed=wanted.seed, clock=time.perf_counter, done=tuple(done))
            try:
                for row in run:
                    done.append(row)
                    if kept is not None:
                        kept.add(entrant.label, row)
                    advance(number * len(steps) + len(done), entrant.label)
            except KeyboardInterrupt:
                _interrupted(entrant.label, len(done), len(steps), wanted.rows)
    return found


def _interrupted(label: str, done: int, intervals: int, rows: Path | None) -> None:
    """Says how to go on, and ends the command."""
    said = f"interrupted: {label} was at interval {done} of {intervals}."
    if rows is not None:
        said += f" The rows are in {rows}; the same command goes on from there."
    else:
        said += " Nothing is kept. With --rows FILE the same command goes on from where it was interrupted."
    typer.echo(said, err=True)
    raise typer.Exit(EXIT_INTERRUPTED)


def _print(about: dict[str, Any], found: dict[str, list[Interval]], output: Output, every_interval: bool) -> None:
    from leeward.sim.workload.rows import document_of
    from leeward.sim.workload.summary import interval_line_of, line_of, summary_of, table_text

    summaries = {label: summary_of(rows) for label, rows in found.items()}
    if output is Output.table:
        typer.echo(", ".join(f"{name} {value}" for name, value in about.items()))
        typer.echo(table_text([line_of(label, summary) for label, summary in summaries.items()]), nl=False)
        for label, rows in found.items() if every_interval else ():
            typer.echo(f"\nintervals of {label}\n{table_text([interval_line_of(row) for row in rows])}", nl=False)
        return
    policies = [
        {"policy": label, "summary": summaries[label], "rows": [document_of(row) for row in rows]}
        for label, rows in found.items()
    ]
    typer.echo(document_text({"simulation": about, "policies": policies}, output), nl=False)
