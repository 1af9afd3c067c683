"""The same policy, settings and rates on a real Storm and in the simulator, plan by plan.

    python tests/bench/agreement.py [--minutes 10] [--speed 60]

`leeward demo` runs query 1 with S-EDRP on a local cluster: a day's curve of 2013, compressed, with a plan each minute.
Then the simulator gets the rates that were offered, twice. First the world is `storm_conf/worlds/query1.toml` as it
is. The second time its service rates and the tuples out for each tuple in are those that the cluster measured, so that
what differs then is not due to them. Prints every plan of the three beside one another, and why they differ; writes
`out/bench/agreement.json`. Exit code 1 if the demo failed or gave no plan.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from systems import ROOT, write_result

from leeward.cli.simulate import EDRP
from leeward.control.registry import policy_of, setting_names
from leeward.core.settings import settings_from
from leeward.sim.world.description import WorldFile, load_world
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.run import simulate

WORLD = ROOT / "storm_conf/worlds/query1.toml"
PERIOD_S, BIN_S = 60.0, 5.0
#: A measured rate that is off by more than this share may be why plans differ.
OFF = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A plan, and what it was made from."""

    t: float  #: s after the first row was sent
    replicas: Mapping[str, int]
    rates: Mapping[str, float]  #: tuples/s that come to each component
    service: Mapping[str, float]  #: tuples/s of one replica
    objective: float


def main() -> int:
    options = _options()
    out = ROOT / "out/agreement"
    settings = [f"period_s={PERIOD_S:g}", f"window_s={PERIOD_S:g}", "scale_down_s=0", "no_return_s=0"]
    settings += [f"edrp.{k}={v}" for k, v in EDRP.items()]
    hours = options.minutes * options.speed / 60
    command = [Path(sys.executable).with_name("leeward"), "demo", "--hours", hours, "--speed", options.speed]
    command += ["--no-drain", "--out", out, "--base-port", options.base_port]
    for setting in settings:
        command += ["-o", setting]
    if subprocess.run([str(word) for word in command], cwd=ROOT).returncode:
        return 1
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    began = next(e["t"] for e in events if e["action"] == "leading")
    first = next(e["t"] for e in events if e["action"] == "measured" and e["rates"].get("data_source", 0.0) > 0) - 1.0
    lead_s = first - began
    trace = trace_of(out / "rows.csv.gz", options.speed, lead_s)
    live = plans_of((e["t"] - first, e) for e in events if e["action"] == "plan_made")
    live = [plan for plan in live if 0 < plan.t <= options.minutes * 60]
    if not live:
        return 1
    world = load_world(WORLD)
    simulated = simulated_plans(world, trace, settings, lead_s, options.minutes)
    fitted = simulated_plans(as_measured(world, live), trace, settings, lead_s, options.minutes)
    rows = [compared(a, nearest(a, simulated), nearest(a, fitted)) for a in live]
    console = Console()
    show(rows, console)
    write_result(
        ROOT / "out/bench/agreement.json",
        {"plans": [[asdict(made) for made in row[:3]] + [row[3]] for row in rows], "settings": settings},
        console,
    )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--speed", type=float, default=60.0, help="of the data, times real time")
    parser.add_argument("--base-port", type=int, default=6600, help="first port of the cluster")
    return parser.parse_args()


def trace_of(rows: Path, speed: float, lead_s: float) -> RateTrace:
    """The rates at which the rows are sent, tuples/s, by `BIN_S`; none for the first `lead_s`."""
    with gzip.open(rows, "rt") as file:
        sent = [datetime.fromisoformat(row[3]).replace(tzinfo=UTC).timestamp() for row in csv.reader(file)]
    bins = Counter(int((t - sent[0]) / speed // BIN_S) for t in sent)
    middles = [(lead_s + (at + 0.5) * BIN_S, bins[at] / BIN_S) for at in range(max(bins) + 1)]
    points = [(0.0, 0.0), (lead_s, 0.0), *middles]
    return RateTrace(tuple(t for t, _ in points), tuple(rate for _, rate in points))


def plans_of(events: Iterable[tuple[float, Mapping[str, Any]]]) -> list[Made]:
    return [
        Made(
            t=round(t, 1),
            replicas={name: sum(placed.values()) for name, placed in sorted(e["deployment"].items())},
            rates=e["rates"],
            service=e["service_rates"],
            objective=e["objective"],
        )
        for t, e in events
        if "deployment" in e and "objective" in e
    ]


def simulated_plans(
    world: WorldFile, trace: RateTrace, settings: Sequence[str], lead_s: float, minutes: float
) -> list[Made]:
    chosen = settings_from({"policy": "edrp"}, [*settings, f"edrp.link_delay_s={world.delay_s}"], more=setting_names)
    hours = (lead_s + minutes * 60 + PERIOD_S) / 3600
    outcome = simulate(world, trace, policy_of(chosen), chosen.service, hours=hours)
    return plans_of((e.at_s - lead_s, e.fields) for e in outcome.events if e.action == "plan_made")


def as_measured(world: WorldFile, live: Sequence[Made]) -> WorldFile:
    """The world with the cluster's service rates, and its tuples out for each tuple in (medians over the plans)."""

    def median(values: Iterable[float]) -> float | None:
        found = [value for value in values if value > 0]
        return statistics.median(found) if found else None

    components = tuple(
        replace(c, rate=median(plan.service.get(c.id, 0.0) for plan in live) or c.rate) for c in world.components
    )
    streams = []
    for stream in world.streams:
        beside = sum(s.ratio for s in world.streams if s.target == stream.target and s is not stream)
        ratio = median(
            plan.rates.get(stream.target, 0.0) / plan.rates[stream.source]
            for plan in live
            if not beside and plan.rates.get(stream.source)
        )
        streams.append(replace(stream, ratio=ratio or stream.ratio))
    return replace(world, components=components, streams=tuple(streams))


def nearest(plan: Made, others: Sequence[Made]) -> Made:
    """The one that was made at about the same time."""
    return min(others, key=lambda other: (abs(other.t - plan.t), other.t))


def compared(live: Made, simulated: Made, fitted: Made) -> tuple[Made, Made, Made, str]:
    """The three plans, and in words why the first two differ; empty if they do not."""
    if live.replicas == simulated.replicas:
        return live, simulated, fitted, ""
    off = [
        f"{what} of {name} {ours:.0f} against {theirs:.0f}/s"
        for what, of_live, of_simulated in (
            ("load", live.rates, simulated.rates),
            ("service rate", live.service, simulated.service),
        )
        for name, ours in sorted(of_live.items())
        if (theirs := of_simulated.get(name, 0.0)) > 0 and abs(ours / theirs - 1) > OFF
    ]
    cause = "; ".join(off) or f"the facts differ by less than {OFF:.0%}"
    with_them = "with the measured ones the plans agree" if live.replicas == fitted.replicas else "not by these alone"
    return live, simulated, fitted, f"{cause}: {with_them}"


def show(rows: Sequence[tuple[Made, Made, Made, str]], console: Console) -> None:
    table = Table("s", "tuples/s", "on Storm", "simulated", "with measured facts", title="replicas, by plan")
    names = sorted({name for live, *_ in rows for name, count in live.replicas.items() if count > 1})

    def counts(made: Made) -> str:
        return " ".join(f"{name}:{made.replicas[name]}" for name in names if made.replicas.get(name, 1) > 1) or "1 each"

    for live, simulated, fitted, _ in rows:
        rate = live.rates.get("data_source", 0.0)
        table.add_row(f"{live.t:.0f}", f"{rate:.0f}", counts(live), counts(simulated), counts(fitted))
    console.print(table)
    for live, _, _, why in rows:
        if why:
            console.print(f"at {live.t:.0f} s: {why}", highlight=False, soft_wrap=True)
    same = sum(not why for *_, why in rows)
    fit = sum(live.replicas == fitted.replicas for live, _, fitted, _ in rows)
    console.print(f"{len(rows)} plans: {same} equal as simulated, {fit} with the measured facts", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
