"""Figure 7: how long the moved queries take until they have worked off their buffers (eta = 1 s)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from leeward.core.experiment import Curve, Finding, Panel, Played, Row, Run, Setting
from leeward.policies.edge_cloud.experiments.rebalance import BASE, PASSES
from leeward.policies.edge_cloud.experiments.setups import LARGE, SMALL, TH, by_setting, intervals, run, walk, words

FIGURE = "Fig. 7"
PAPER_PEAK_S, PAPER_MEAN_LARGE_S = 20.0, 8.0


class Stabilization:
    """See the module."""

    def runs(self, *, seed: int, quick: bool) -> Sequence[Run]:
        """The workload with the most moves, small and large."""
        sizes = (SMALL,) if quick else (SMALL, LARGE)
        settings = [walk(TH, size, spread, seed) for size in sizes for spread in ((0.5,) if quick else (0.0, 0.5, 1.0))]
        return [run(setting, BASE, one) for setting in settings for one in PASSES]

    def conclude(self, played: Mapping[Run, Played]) -> Finding:
        """Over all intervals, as in the paper, and over those in which something moved."""
        rows: list[Row] = []
        panels: list[Panel] = []
        for setting, labels in by_setting(played).items():
            found = {one: [row.stabilization_s for row in intervals(labels[f"{BASE} + {one}"])] for one in PASSES}
            for one, values in found.items():
                rows += _of_pass(setting, one, values)
            curves = tuple(Curve(name=one, values=tuple(values)) for one, values in found.items())
            panels.append(Panel(title=words(setting), unit="stabilization, s", kind="boxes", curves=curves))
        return Finding(rows=tuple(rows), panels=tuple(panels), notes=NOTES)


def _of_pass(setting: Setting, one: str, values: Sequence[float]) -> list[Row]:
    where = words(setting)
    moved = [value for value in values if value > 0] or [0.0]
    large = setting.nodes == LARGE[0]
    return [
        Row(
            figure=FIGURE, setting=where, metric=f"{one}, mean over all intervals", unit="s", ours=fmean(values),
            paper=PAPER_MEAN_LARGE_S if large else None, high=PAPER_MEAN_LARGE_S if large else None,
        ),
        Row(
            figure=FIGURE, setting=where, metric=f"{one}, median where not zero", unit="s", paper=1.0,
            ours=median(moved),
        ),
        Row(figure=FIGURE, setting=where, metric=f"{one}, most", unit="s", paper=PAPER_PEAK_S, ours=max(values)),
    ]  # fmt: skip


NOTES = (
    "The paper prints bars and no numbers: below a second where not zero, peaks about 20 s, and up to 8 s with 1,000 "
    "devices. Service times are those after all moves, shared by the queries of a resource.",
)
