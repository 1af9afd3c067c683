"""`leeward simulate`: a policy runs a topology for hours or weeks of a rate trace, in virtual time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._output import Output, OutputOption, document_text

if TYPE_CHECKING:
    from leeward.core.settings import Chosen
    from leeward.sim.world.description import WorldFile
    from leeward.sim.world.rates import RateTrace
    from leeward.sim.world.run import Outcome

#: How S-EDRP is solved in a simulation, unless an option says otherwise. The search ends with a proof and not by time,
#: so that a run repeats. The last 5 % is worth no search: the guard asks for a gain of 0.02, the objective is near 0.4.
EDRP = {"method": "exact", "gap": 0.05}
#: A plan that takes this share of its time limit may differ from run to run.
CLOSE_TO_LIMIT = 0.5
EXIT_REFUSED, EXIT_BAD_INPUT = 1, 2


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("simulate")(simulate_command)


def simulate_command(
    topology: Annotated[Path, typer.Option(help="TOML of nodes, components and streams.")],
    rate: Annotated[Path, typer.Option(help="CSV of time and tuples/s; see docs/results/simulated_week.md.")],
    policy: Annotated[str, typer.Option(help="Name of the policy; none: nothing changes.")] = "edrp",
    hours: Annotated[float, typer.Option(min=0.01, help="Time to simulate, h.")] = 24.0,
    start: Annotated[float, typer.Option(min=0.0, help="Begin at this hour of the rate file.")] = 0.0,
    scale: Annotated[float | None, typer.Option(min=0.0, help="Multiply every rate by this.")] = None,
    peak: Annotated[float | None, typer.Option(min=0.0, help="Scale to this highest rate, tuples/s.")] = None,
    option: Annotated[list[str] | None, typer.Option("-o", help="key=value or policy.key=value.")] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals and policy; a run with the same seed repeats.")] = 0,
    period: Annotated[float, typer.Option(min=0.1, help="Time between plans, s.")] = 60.0,
    output: OutputOption = Output.table,
    events: Annotated[Path | None, typer.Option(help="Write what happened here, a JSON object a line.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it here, SVG.")] = None,
) -> None:
    """Run a policy through the real service on a simulated cluster, and print what its plans cost.

    Example: leeward simulate --topology storm_conf/worlds/query1.toml --rate rates.csv --peak 220 --hours 168
    """
    with _errors():
        from leeward.sim.world.description import load_world
        from leeward.sim.world.rates import load_rates
        from leeward.sim.world.report import document_of, events_text, table_text

        _check_picture(picture)
        chosen = _chosen(policy, option or [], seed, period, world := load_world(topology))
        trace = _scaled(load_rates(rate).from_hour(start), scale, peak)
        outcome = _run(world, trace, chosen, hours)
        about = {
            "topology": world.name, "policy": chosen.service.policy, "seed": seed, "hours": hours, "period_s": period,
            "response_max_s": world.response_max_s, "options": option or [],
        }  # fmt: skip
        document = document_of(outcome.figures, about)
        sys.stdout.write(table_text(document) if output is Output.table else document_text(document, output))
        if events is not None:
            _write(events, events_text(outcome.events))
        if picture is not None:
            from leeward.sim.world.picture import draw

            picture.parent.mkdir(parents=True, exist_ok=True)
            draw(picture, outcome.figures, title=f"{world.name}, {chosen.service.policy}, seed {seed}")
    raise typer.Exit(EXIT_REFUSED if outcome.figures.resets or outcome.figures.lost else 0)


def _chosen(policy: str, options: list[str], seed: int, period: float, world: WorldFile) -> Chosen:
    """Settings of service and policy for a simulation, overridden by the options."""
    from leeward.control.registry import setting_names
    from leeward.core.settings import settings_from

    document: dict[str, Any] = {"policy": policy, "seed": seed, "period_s": period, "window_s": max(1.0, period)}
    if policy == "edrp":
        document["edrp"] = {**EDRP, "seed": seed, "link_delay_s": world.delay_s}
    return settings_from(document, options, more=setting_names)


def _scaled(trace: RateTrace, scale: float | None, peak: float | None) -> RateTrace:
    from leeward.core.errors import ConfigError

    if scale is not None and peak is not None:
        raise ConfigError(f"--scale is {scale:g} and --peak is {peak:g}.", remedy="Give one of them.")
    if peak is not None and trace.peak <= 0:
        raise ConfigError(f"--peak is {peak:g}, but every rate is 0.", remedy="Give another rate file.")
    factor = scale if scale is not None else peak / trace.peak if peak is not None else 1.0
    return trace.scaled(factor)


def _run(world: WorldFile, trace: RateTrace, chosen: Chosen, hours: float) -> Outcome:
    """With progress, and what it took, on standard error."""
    from leeward.control.registry import policy_of
    from leeward.sim.world.run import simulate

    decider = policy_of(chosen)
    with _progress(hours) as advance:
        outcome = simulate(world, trace, decider, chosen.service, hours=hours, progress=advance)
    figures = outcome.figures
    typer.echo(
        f"{hours:g} h in {outcome.wall_s:.1f} s; {figures.plans} plans, solving {outcome.solving_s:.1f} s, the slowest "
        f"{outcome.slowest_s:.2f} s",
        err=True,
    )
    if outcome.slowest_s > CLOSE_TO_LIMIT * (limit_s := _limit_s(chosen)):
        text = f"warning: a plan took {outcome.slowest_s:.2f} s of {limit_s:g} s, so this run may not repeat."
        typer.echo(text, err=True)
    return outcome


def _limit_s(chosen: Chosen) -> float:
    """The time in which a plan has to be found; infinite for a policy without such a limit."""
    from leeward.core.options import read
    from leeward.policies.edrp.settings import EdrpSettings

    if chosen.service.policy != "edrp":
        return math.inf
    return read(EdrpSettings, chosen.policies["edrp"], where="edrp.").solve_limit_s


@contextmanager
def _progress(hours: float) -> Iterator[Callable[[float], None]]:
    """A bar on standard error where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("simulating", total=hours * 3600.0)
        shown = 0.0

        def advance(seconds: float) -> None:
            nonlocal shown
            if (now := time.monotonic()) - shown > 0.2:
                shown = now
                progress.update(bar, completed=seconds)

        yield advance


def _check_picture(picture: Path | None) -> None:
    from leeward.core.errors import ConfigError

    if picture is not None and picture.suffix != ".svg":
        raise ConfigError(f"--picture is {str(picture)!r}.", remedy="Name a file that ends in .svg.")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@contextmanager
def _errors() -> Iterator[None]:
    from leeward.core.errors import LeewardError

    try:
        yield
    except (LeewardError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None
