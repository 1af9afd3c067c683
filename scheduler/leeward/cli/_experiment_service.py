"""`leeward experiment service-guards`: policies on a week of real rates, with guards and without, by each forecast."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption
from leeward.cli.simulate import EDRP
from leeward.local.places import checkout, written

if TYPE_CHECKING:
    from leeward.core.experiment import Study
    from leeward.sim.world.description import WorldFile
    from leeward.sim.world.rates import RateTrace

NAME = "service-guards"
PEAK = 220.0
#: Of a run with --quick: hours of the guards' part, and of the forecasts'.
QUICK_H, QUICK_FORECAST_H = 12.0, 26.0
#: A generated trace begins at this hour of the day: its first hours rise to the peak and fall.
MORNING_H = 9.0
WORLD = Path("storm_conf/worlds/query1.toml")


def register(experiment: typer.Typer) -> None:
    """Adds the command to `leeward experiment`."""
    experiment.command(NAME)(service_guards)


def service_guards(
    rate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of time and tuples/s; else a generated daily shape."),
    ] = None,
    start: Annotated[float, typer.Option(help="Begin at this hour of the rate file.", min=0.0)] = 312.0,
    hours: Annotated[float, typer.Option(help="Time to simulate, h.", min=1.0)] = 168.0,
    peak: Annotated[float, typer.Option(help="Scale to this highest rate, tuples/s.", min=1.0)] = PEAK,
    topology: Annotated[Path | None, typer.Option(help="World of the topology (TOML) [default: query 1].")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few hours of it, and fewer forecasts.")] = False,
    seed: Annotated[int, typer.Option(help="Of arrivals and policies.")] = 0,
    output: OutputOption = Output.table,
    out: Annotated[Path | None, typer.Option(help="Folder for JSON, CSV and picture.")] = None,
) -> None:
    """Reconfigurations a day of each policy with guards and without, returns, and the gain of each forecast.

    Example: leeward experiment service-guards --rate ../shared/data/taxi/rate_per_minute_2013H1.csv.gz
    """
    from leeward.cli._experiment import measure_parts, tell

    folder = out or written("experiments", here=Path.cwd())
    with refusing():
        study = study_of(rate, start, hours, peak, topology, quick=quick)
        rows = folder / f"{NAME}{'-quick' if quick else ''}.rows"
        began = time.monotonic()
        finding = study.conclude(measure_parts(study.measure, list(study.parts(seed=seed, quick=quick)), rows, NAME))
        command = f"leeward experiment {NAME} --seed {seed}" + (" --quick" if quick else f" --hours {hours:g}")
        command += "" if peak == PEAK else f" --peak {peak:g}"
        command += f" --topology {topology}" if topology else ""
        command += f" --rate {rate} --start {start:g}" if rate else ""
        seconds = time.monotonic() - began
        tell(NAME, finding, command=command, seed=seed, seconds=seconds, output=output, out=folder)
    _forget(rows)


def study_of(
    rate: Path | None, start: float, hours: float, peak: float, topology: Path | None, *, quick: bool
) -> Study:
    """The study of these options. Raises ConfigError, OSError."""
    from leeward.sim.world.description import load_world
    from leeward.sim.world.rates import load_rates
    from leeward.sim.world.restless import Restless

    world = load_world(topology or (checkout() or Path.cwd()) / WORLD)
    whole, forecast_h = (QUICK_H, QUICK_FORECAST_H) if quick else (hours, hours)
    trace = load_rates(rate).from_hour(start) if rate else generated(max(whole, forecast_h)).from_hour(MORNING_H)
    trace = cut(trace, max(whole, forecast_h))
    return Restless(
        world=world, trace=trace.scaled(peak / trace.peak), source=rate.name if rate else "generated",
        hours=whole, forecast_hours=forecast_h, policies=_policies(world), forecast_policies=_ahead(world, quick=quick),
        **({"methods": ("last", "blended")} if quick else {}),
    )  # fmt: skip


Policies = dict[str, tuple[str, dict[str, Any]]]


def _policies(world: WorldFile) -> Policies:
    """Those that decide about one topology, by rates."""
    edrp = {**EDRP, "link_delay_s": world.delay_s}
    return {"edrp": ("edrp", edrp), "agiledart": ("agiledart", {}), "even": ("even", {})}


def _ahead(world: WorldFile, *, quick: bool) -> Policies:
    """Those of the forecasts: with the head-room of their settings, and with hardly any, where a forecast counts."""
    edrp = {**EDRP, "link_delay_s": world.delay_s}
    all_of_them: Policies = {
        "edrp": ("edrp", edrp),
        "edrp without head-room": ("edrp", {**edrp, "headroom": 0.0}),
        "agiledart": ("agiledart", {}),
        "agiledart with little head-room": ("agiledart", {"worth": 0.95}),
    }
    return {name: policy for name, policy in all_of_them.items() if not quick or name.startswith("agiledart with")}


def generated(hours: float) -> RateTrace:
    """A daily shape with two peaks, a value each five minutes, that differs a little from day to day."""
    import math

    from leeward.sim.world.rates import RateTrace

    times = tuple(300.0 * at for at in range(int((hours + MORNING_H) * 12) + 25))

    def rate(time_s: float) -> float:
        day, hour = divmod(time_s / 3600.0, 24.0)
        shape = 1.2 - math.cos(2 * math.pi * (hour - 4.0) / 24.0) + 0.5 * math.sin(4 * math.pi * (hour - 5.0) / 24.0)
        return shape * (1.0 + 0.1 * math.sin(2.4 * day)) + 0.05 * math.sin(time_s / 700.0)

    return RateTrace(times, tuple(max(0.05, rate(time_s)) for time_s in times))


def cut(trace: RateTrace, hours: float) -> RateTrace:
    """Its first hours, and two more that forecasts are compared with. Raises ConfigError if it is shorter."""
    from leeward.core.errors import ConfigError
    from leeward.sim.world.rates import RateTrace

    kept = [(t, r) for t, r in zip(trace.times, trace.rates, strict=True) if 0 <= t <= (hours + 2) * 3600.0]
    if not kept or kept[-1][0] < hours * 3600.0 - 3600.0:
        raise ConfigError(
            f"--hours is {hours:g}, the rate file has {kept[-1][0] / 3600.0 if kept else 0.0:.1f} h from --start on.",
            remedy="Begin earlier, or simulate less.",
        )
    return RateTrace(tuple(t for t, _ in kept), tuple(r for _, r in kept))


def _forget(rows: Path) -> None:
    import shutil

    shutil.rmtree(rows, ignore_errors=True)  # it is over: the next call measures again
