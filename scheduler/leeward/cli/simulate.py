"""`leeward simulate`: policies in virtual time, on one topology under a rate trace or on many that come and go."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import EXIT_REFUSED, refusing
from leeward.cli._output import Output, OutputOption, document_text
from leeward.cli._progress import progress
from leeward.cli._simulate_workload import Arrivals, Wanted, simulate_workload

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
POLICY = (
    "Name of the policy, edrp if none is given; with `none` nothing changes. "
    "A workload takes this option several times, each NAME,key=value,key=value."
)
#: The two kinds of run, as the help has them.
ONE, MANY = "One topology", "A workload of many topologies"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("simulate")(simulate_command)


def _one(help: str, *names: str, **more: Any) -> Any:
    """An option of a run of one topology."""
    return typer.Option(*names, help=help, rich_help_panel=ONE, **more)


def _many(help: str, *names: str, **more: Any) -> Any:
    """An option of a run of many topologies."""
    return typer.Option(*names, help=help, rich_help_panel=MANY, **more)


def simulate_command(
    context: typer.Context,
    policy: Annotated[list[str] | None, typer.Option(help=POLICY)] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals and policy; a run with the same seed repeats.")] = 0,
    output: OutputOption = Output.table,
    topology: Annotated[Path | None, _one("TOML of nodes, components and streams.")] = None,
    rate: Annotated[Path | None, _one("CSV of time and tuples/s; see docs/results/simulated_week.md.")] = None,
    hours: Annotated[float, _one("Time to simulate, h.", min=0.01)] = 24.0,
    start: Annotated[float, _one("Begin at this hour of the rate file.", min=0.0)] = 0.0,
    scale: Annotated[float | None, _one("Multiply every rate by this.", min=0.0)] = None,
    peak: Annotated[float | None, _one("Scale to this highest rate, tuples/s.", min=0.0)] = None,
    option: Annotated[list[str] | None, _one("key=value or policy.key=value.", "-o")] = None,
    period: Annotated[float, _one("Time between plans, s.", min=0.1)] = 60.0,
    events: Annotated[Path | None, _one("Write what happened here, a JSON object a line.")] = None,
    picture: Annotated[Path | None, _one("Draw it here, SVG.")] = None,
    workload: Annotated[str | None, _many("Name of the workload.")] = None,
    nodes: Annotated[int, _many("Nodes of its cluster.", min=1)] = 100,
    intervals: Annotated[
        int | None, _many("Control intervals; if not given, 100, or 400 of over 100 nodes.", min=1)
    ] = None,
    arrivals: Annotated[Arrivals, _many("How topologies come and go.")] = Arrivals.random_walk,
    spread: Annotated[float | None, _many("Random walk: 2 components a node, more or less by this; else 0.")] = None,
    rows: Annotated[Path | None, _many("Keep the intervals here; the same command goes on from there.")] = None,
    intervals_table: Annotated[bool, _many("A line for each interval, too.", "--intervals-table")] = False,
) -> None:
    """Run policies on a simulated cluster, and print what their plans cost.

    One topology for hours of a rate trace, through the real service; or a workload of topologies that come and go: on
    it several policies, side by side, meet the same arrivals.

    Example: leeward simulate --topology storm_conf/worlds/query1.toml --rate rates.csv --peak 220 --hours 168

    Example: leeward simulate --workload edge-cloud-ref --nodes 100 --policy edge-cloud,method=topset --policy
    edge-cloud,method=topset-p --rows out/rows.jsonl
    """
    with refusing():
        _check_one_kind(context, workload)
        if workload is not None:
            wanted = Wanted(
                workload=workload, policies=tuple(policy or ()), nodes=nodes, intervals=intervals, arrivals=arrivals,
                spread=spread, seed=seed, rows=rows, every_interval=intervals_table,
            )  # fmt: skip
            simulate_workload(wanted, output)
            return
        assert topology is not None and rate is not None  # _check_one_kind looked
        trace = _Trace(rate=rate, start=start, scale=scale, peak=peak, hours=hours)
        files = _Files(events=events, picture=picture)
        lost = _simulate_topology(topology, trace, _only(policy), option or [], seed, period, output, files)
    raise typer.Exit(EXIT_REFUSED if lost else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trace:
    """The part of a rate file that is run."""

    rate: Path
    start: float
    scale: float | None
    peak: float | None
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """Files to write, beside the result."""

    events: Path | None
    picture: Path | None


def _check_one_kind(context: typer.Context, workload: str | None) -> None:
    """Raises ConfigError for an option of the one kind of run beside those of the other, and for none of them."""
    from leeward.core.errors import ConfigError

    panels = {entry.name: getattr(entry, "rich_help_panel", None) for entry in context.command.params}
    names = {entry.name: entry.opts[0] for entry in context.command.params}
    given = [name for name in panels if getattr(context.get_parameter_source(name or ""), "name", "") == "COMMANDLINE"]
    foreign = [name for name in given if panels[name] == (MANY if workload is None else ONE)]
    if foreign:
        kind = "of a workload, and --workload is missing" if workload is None else "of one topology, not of a workload"
        raise ConfigError(f"{names[foreign[0]]} is an option {kind}.", remedy="Leave it out, or see --help.")
    missing = [] if workload is not None else [name for name in ("topology", "rate") if name not in given]
    if missing:
        raise ConfigError(
            f"{names[missing[0]]} is missing.", remedy="Give --topology and --rate, or --workload and --policy."
        )


def _only(policies: list[str] | None) -> str:
    from leeward.core.errors import ConfigError

    first, *more = policies or ["edrp"]
    if more:
        raise ConfigError(f"--policy is {first!r} and {more[0]!r}.", remedy="Give one; a workload takes several.")
    return first


def _simulate_topology(
    topology: Path, about: _Trace, policy: str, options: list[str], seed: int, period: float, output: Output,
    files: _Files,
) -> bool:  # fmt: skip
    """Whether something was lost."""
    from leeward.sim.world.description import load_world
    from leeward.sim.world.rates import load_rates
    from leeward.sim.world.report import document_of, events_text, table_text

    _check_picture(files.picture)
    chosen = _chosen(policy, options, seed, period, world := load_world(topology))
    trace = _scaled(load_rates(about.rate).from_hour(about.start), about.scale, about.peak)
    outcome = _run(world, trace, chosen, about.hours)
    document = document_of(outcome.figures, {
        "topology": world.name, "policy": chosen.service.policy, "seed": seed, "hours": about.hours, "period_s": period,
        "response_max_s": world.response_max_s, "options": options,
    })  # fmt: skip
    sys.stdout.write(table_text(document) if output is Output.table else document_text(document, output))
    if files.events is not None:
        _write(files.events, events_text(outcome.events))
    if files.picture is not None:
        from leeward.sim.world.picture import draw

        files.picture.parent.mkdir(parents=True, exist_ok=True)
        draw(files.picture, outcome.figures, title=f"{world.name}, {chosen.service.policy}, seed {seed}")
    return bool(outcome.figures.resets or outcome.figures.lost)


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
    from leeward.adapters.post import PeerPost
    from leeward.control.registry import Policies
    from leeward.sim.world.run import simulate

    decider = Policies(chosen, PeerPost).of(world.name)
    with progress(hours * 3600.0, "simulating") as advance:
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


def _check_picture(picture: Path | None) -> None:
    from leeward.core.errors import ConfigError

    if picture is not None and picture.suffix != ".svg":
        raise ConfigError(f"--picture is {str(picture)!r}.", remedy="Name a file that ends in .svg.")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
