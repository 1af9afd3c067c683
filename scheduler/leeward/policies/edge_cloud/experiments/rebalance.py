"""Figures 4 and 6: the gain of rebalancing over none, and the queries that move for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from leeward.core.experiment import Curve, Finding, Panel, Played, Row, Run, Setting
from leeward.policies.edge_cloud.experiments.setups import (
    LARGE,
    REF,
    SMALL,
    TH,
    by_setting,
    gain,
    gains,
    intervals,
    poisson,
    run,
    totals_s,
    walk,
    words,
)

BASE, OURS = "topset-p", "polished"
PASSES = ("vertex", "edge", "vertex-edge")
#: The paper's greatest reduction of the total makespan, %, and its peak of moves in an interval.
PAPER_GAIN = {"small": 20.0, "large": 25.0}
PAPER_PEAK = {"small": 25.0, "large": 140.0}
#: Of vertex and edge rebalance with the workload TH: mean and most, %.
INDEPENDENT_MEAN, INDEPENDENT_MOST = 15.0, 31.0


class Rebalance:
    """See the module."""

    def runs(self, *, seed: int, quick: bool) -> Sequence[Run]:
        """REF and TH, small and large, a walk and Poisson's law."""
        if quick:
            settings = [walk(TH, SMALL, 0.5, seed)]
        else:
            sizes = (SMALL, LARGE)
            settings = [walk(workload, size, 0.5, seed) for workload in (REF, TH) for size in sizes]
            settings += [poisson(workload, size, seed) for workload in (REF, TH) for size in sizes]
        passes = [run(setting, BASE, one) for setting in settings for one in ("none", *PASSES)]
        return [*passes, *(run(setting, OURS) for setting in settings)]

    def conclude(self, played: Mapping[Run, Played]) -> Finding:
        """The gain in each interval, beside the run without a pass; moves in each interval."""
        rows: list[Row] = []
        panels: list[Panel] = []
        for setting, labels in by_setting(played).items():
            plain = totals_s(labels[BASE])
            found = {one: labels[f"{BASE} + {one}"] for one in PASSES}
            told = [row for one, results in found.items() for row in _of_pass(setting, one, results, plain)]
            rows += _ours(setting, labels)
            rows += sorted(told, key=lambda row: row.figure)
            curves = [Curve(name=one, values=tuple(gains(totals_s(results), plain))) for one, results in found.items()]
            panels.append(
                Panel(title=words(setting), unit="total makespan saved, %", kind="boxes", curves=tuple(curves))
            )
            moves = [
                Curve(name=one, values=tuple(float(row.moves) for row in intervals(results)))
                for one, results in found.items()
            ]
            panels.append(Panel(title=f"{words(setting)}: moves", unit="queries", kind="boxes", curves=tuple(moves)))
        return Finding(rows=tuple(rows), panels=tuple(panels), notes=NOTES)


def _of_pass(setting: Setting, one: str, results: Sequence[Played], plain: list[list[float]]) -> list[Row]:
    where = words(setting)
    size = "small" if setting.nodes == SMALL[0] else "large"
    heavy = setting.workload == TH
    totals, moves = totals_s(results), [row.moves for row in intervals(results)]
    both = heavy and one == "vertex-edge"
    paper = PAPER_GAIN[size] if one == "edge" else None
    return [
        Row(
            figure="Fig. 4", setting=where, metric=f"saved by {one}, mean", unit="%", ours=gain(totals, plain),
            independent=INDEPENDENT_MEAN if both else None,
        ),
        Row(
            figure="Fig. 4", setting=where, metric=f"saved by {one}, best interval", unit="%", paper=paper,
            independent=INDEPENDENT_MOST if both else None, ours=max(gains(totals, plain)),
            low=PAPER_GAIN["small"] if heavy and one == "edge" else None,
        ),
        Row(figure="Fig. 6", setting=where, metric=f"moves of {one}, median", unit="", paper=0, ours=median(moves)),
        Row(
            figure="Fig. 6", setting=where, metric=f"moves of {one}, most", unit="", ours=max(moves),
            paper=PAPER_PEAK[size] if one == "edge" else None,
        ),
        Row(
            figure="Fig. 4", setting=where, metric=f"broken constraints with {one}", unit="", high=0,
            ours=sum(row.violations for row in intervals(results)),
        ),
    ]  # fmt: skip


def _ours(setting: Setting, labels: Mapping[str, Sequence[Played]]) -> list[Row]:
    """Ours moves nothing that runs; it is beside the passes that do."""
    ours = totals_s(labels[OURS])
    return [
        Row(
            figure="Fig. 4", setting=words(setting), metric=f"{OURS} without a pass, under {BASE} with {one}", unit="%",
            ours=gain(ours, totals_s(labels[f"{BASE} + {one}"])), low=0.0,
        )
        for one in PASSES
    ]  # fmt: skip


NOTES = (
    "Edge rebalance saves as much as in the paper only where the transfer of an event takes as long as the way to the "
    "cloud: the workload TH. With REF the latency decides, and TopSet/P has seen to that.",
)
