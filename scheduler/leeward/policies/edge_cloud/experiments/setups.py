"""The paper's set-ups and arrivals (its section 5), and the figures that the experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from leeward.core.experiment import Played, Run, Setting
from leeward.core.workload import Interval

POLICY = "edge-cloud"
REF, TH = "edge-cloud-ref", "edge-cloud-th"
#: Resources and control intervals.
SMALL, LARGE = (100, 100), (1000, 400)
#: Half the width u of the random walk around U = 2.
SPREADS = (0.0, 0.5, 1.0)
#: Of which `ours` has to hold: different clusters, catalogues and arrivals.
SEEDS = 10


def walk(workload: str, size: tuple[int, int], spread: float, seed: int) -> Setting:
    """A random walk."""
    nodes, intervals = size
    return Setting(
        workload=workload, nodes=nodes, intervals=intervals, arrivals="random-walk", spread=spread, seed=seed
    )


def poisson(workload: str, size: tuple[int, int], seed: int, start: int | None = None) -> Setting:
    """Poisson arrivals."""
    nodes, intervals = size
    return Setting(workload=workload, nodes=nodes, intervals=intervals, arrivals="poisson", seed=seed, start=start)


def all_arrivals(workload: str, size: tuple[int, int], seed: int) -> list[Setting]:
    """The paper's four."""
    return [*(walk(workload, size, spread, seed) for spread in SPREADS), poisson(workload, size, seed)]


def run(setting: Setting, method: str, rebalance: str = "none") -> Run:
    """One strategy in one setting; its label is the strategy."""
    label = method if rebalance == "none" else f"{method} + {rebalance}"
    options = (("method", method), ("rebalance", rebalance))
    return Run(setting=setting, label=label, policy=POLICY, options=options)


def words(setting: Setting) -> str:
    """A setting without its seed, for people."""
    kind = f"walk 2 +- {setting.spread:g}" if setting.arrivals == "random-walk" else "Poisson 12"
    if setting.start is not None:
        kind += f", {setting.start:,} dataflows"
    size = f"{setting.nodes:,} resources, {setting.intervals} intervals"
    return f"{setting.workload.removeprefix('edge-cloud-').upper()}, {size}, {kind}"


def by_setting(played: Mapping[Run, Played]) -> dict[Setting, dict[str, list[Played]]]:
    """Setting with its first seed -> label -> the runs of all seeds, in the order in which they were asked for."""
    found: dict[Setting, dict[str, list[Played]]] = {}
    first: dict[str, Setting] = {}
    for one, result in played.items():
        setting = first.setdefault(words(one.setting), one.setting)
        found.setdefault(setting, {}).setdefault(one.label, []).append(result)
    return found


def totals_s(results: Iterable[Played]) -> list[list[float]]:
    """The objective (8) of each interval, s, for each seed."""
    return [[interval.makespan_s for interval in result.intervals] for result in results]


def gain(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """By how much ours is under theirs, over all intervals and seeds together, in %."""
    return 100 * (1 - sum(map(sum, ours)) / sum(map(sum, theirs)))


def gains(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> list[float]:
    """The same for each interval of each seed in which anything runs."""
    pairs = ((a, b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True))
    return [100 * (1 - a / b) for a, b in pairs if b > 0]


def intervals(results: Iterable[Played]) -> list[Interval]:
    """Of all seeds."""
    return [interval for result in results for interval in result.intervals]


def refused_percent(results: Sequence[Played]) -> float:
    """Refusals as a share of the arrivals."""
    every = intervals(results)
    return 100 * sum(len(one.refused) for one in every) / sum(len(one.arrived) for one in every)


def mean_total_s(results: Sequence[Played]) -> float:
    """The mean of the objective (8) over intervals and seeds, s."""
    return fmean(value for one in totals_s(results) for value in one)
