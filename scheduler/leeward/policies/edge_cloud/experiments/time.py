"""Figure 5: the time that each strategy takes to plan an arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from leeward.core.experiment import Curve, Finding, Panel, Played, Row, Run, Setting
from leeward.policies.edge_cloud.experiments.setups import LARGE, REF, SMALL, by_setting, poisson, run, walk, words

FIGURE = "Fig. 5"
MS = 1e3
HUGE = (10_000, 200)
#: Dataflows that run from the first interval on, on the resources of HUGE.
CROWD, CROWDED = 2000, (HUGE[0], 100)
#: Intervals of the genetic algorithms: they take minutes where the others take milliseconds.
GENETIC = (100, 30)
#: Resources -> bound of the median for TopSet/P and for ours, ms.
TOPSET_P_MS = {1000: 1.0, 10_000: 15.0}
POLISHED_MS = {100: 2.0, 1000: 10.0}
#: Of each arrival among CROWD others, ms, and of all 400 plans of the large set-up, s.
CROWDED_MS, RUN_S = 100.0, 30.0
#: Of the paper, against TopSet/P.
PAPER_TIMES = {"gai": 1e3, "gag": 1e4}
INDEPENDENT_TIMES = {"gai": 700.0, "gag": 8000.0}


class Time:
    """See the module."""

    def runs(self, *, seed: int, quick: bool) -> Sequence[Run]:
        """100, 1,000 and 10,000 resources; the genetic algorithms with 100."""
        sizes = (SMALL, (LARGE[0], 60)) if quick else (SMALL, LARGE, HUGE)
        found = [
            run(walk(REF, size, 0.5, seed), method) for size in sizes for method in ("topset", "topset-p", "polished")
        ]
        if quick:
            return found
        crowded = poisson(REF, CROWDED, seed, start=CROWD)
        found += [run(crowded, method) for method in ("topset-p", "polished")]
        return [*found, *(run(walk(REF, GENETIC, 0.5, seed), method) for method in ("topset-p", "gai", "gag"))]

    def conclude(self, played: Mapping[Run, Played]) -> Finding:
        """Of the intervals with an arrival; the first interval loads compiled code, and is left out."""
        rows: list[Row] = []
        panels: list[Panel] = []
        for setting, labels in by_setting(played).items():
            times = {label: _arrivals_ms(results) for label, results in labels.items()}
            for label, results in labels.items():
                rows += _of_one(setting, label, results)
            rows += _ratios(setting, times)
            curves = tuple(Curve(name=label, values=tuple(values)) for label, values in times.items())
            panels.append(
                Panel(title=words(setting), unit="planning, ms", kind="boxes", curves=curves, logarithmic=True)
            )
        return Finding(rows=tuple(rows), panels=tuple(panels), notes=NOTES)


def _arrivals_ms(results: Sequence[Played]) -> list[float]:
    return [row.plan_s * MS for result in results for row in result.intervals[1:] if row.arrived]


def _of_one(setting: Setting, label: str, results: Sequence[Played]) -> list[Row]:
    values = _arrivals_ms(results)
    bounds = {"topset-p": TOPSET_P_MS, "polished": POLISHED_MS}.get(label, {}) if setting.start is None else {}
    where = words(setting)
    whole = RUN_S if (setting.nodes, setting.intervals) == LARGE else None
    seconds = label in ("topset", "topset-p") and setting.nodes <= LARGE[0]
    return [
        Row(
            figure=FIGURE, setting=where, metric=f"{label}, median", unit="ms", ours=median(values),
            paper=1e3 if seconds else None, high=bounds.get(setting.nodes),
        ),
        Row(
            figure=FIGURE, setting=where, metric=f"{label}, most", unit="ms", ours=max(values),
            high=None if setting.start is None else CROWDED_MS,
        ),
        Row(
            figure=FIGURE, setting=where, metric=f"{label}, all plans", unit="s", high=whole,
            ours=sum(row.plan_s for one in results for row in one.intervals),
        ),
    ]  # fmt: skip


def _ratios(setting: Setting, times: Mapping[str, Sequence[float]]) -> list[Row]:
    return [
        Row(
            figure=FIGURE, setting=words(setting), metric=f"{label} takes so many times as long as topset-p", unit="",
            paper=PAPER_TIMES[label], independent=INDEPENDENT_TIMES[label],
            ours=median(times[label]) / median(times["topset-p"]),
        )
        for label in PAPER_TIMES
        if label in times
    ]  # fmt: skip


NOTES = (
    "Times are those of the whole question to the policy: reading views, placing, and plans. The paper's machine "
    'is not named; it says "within 1 s in all cases".',
    "The genetic algorithms are not 1,000 and 10,000 times slower than TopSet/P: a population is evaluated as one "
    "array, and ends after half of its 200 generations without gain.",
)
