"""The testbed live, with every discipline on the same queries: the loads it sustains beside the model's.

A few thousand queries decide the percentile of a class by four or five of them, so loads of single workloads differ by
a quarter.  So this workload is one that is typical: of the seeds 0 to 79 the one whose loads in the model come nearest
to those of 300,000 queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.simulation.run import WARM, Simulation
from leeward.policies.dssp.simulation.setup import PERCENT, Setting

FIGURE = "Table IV, live"
QUERIES, QUICK_QUERIES, SEED = 4000, 240, 78
#: The rate of a quick run, and the part of the model's load around which a full one looks, in so many steps.
QUICK_RATE, AROUND, STEPS = 10.0, 0.16, 4
#: Loads that differ by less count as equal: the resolution of the search.
EQUAL = 0.02
#: For a query without a whole answer, s.
NEVER_S = 1e6
#: Bounds of EDFQ's load over others', and of the measured percentiles around the model's.
OVER = {"FIFO": 1.28, "SPR": 1.10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One discipline at one rate: latencies by class at the client, s; None where a query was not answered whole."""

    discipline: str
    rate: float
    latencies: Mapping[str, Sequence[float | None]]
    late: float  #: share of the subtasks that started late

    def tails(self) -> dict[str, float]:
        """Class -> the 99th percentile, s."""
        return {name: _tail(values) for name, values in self.latencies.items() if values}

    def kept(self, setting: Setting) -> bool:
        """All classes keep their objectives."""
        tails = self.tails()
        return all(tails.get(one.name, 0.0) <= one.objective_s for one in setting.classes)

    @property
    def missing(self) -> int:
        """Queries without a whole answer."""
        return sum(value is None for values in self.latencies.values() for value in values)


def _tail(values: Sequence[float | None]) -> float:
    return float(np.percentile([NEVER_S if one is None else one for one in values], PERCENT))


def counted(number: int, queries: int) -> bool:
    """A query that counts, as in the model: queues were empty for the first ones."""
    return number >= int(WARM * queries)


class Search:
    """The largest rate at which a discipline keeps all objectives, by bisection between two."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    @property
    def rate(self) -> float:
        """To try next, queries/s."""
        return (self.low + self.high) / 2

    def learn(self, kept: bool) -> None:
        """All objectives were kept at that rate, or not."""
        self.low, self.high = (self.rate, self.high) if kept else (self.low, self.rate)


def modelled(simulation: Simulation) -> dict[str, float]:
    """Discipline -> the load that it sustains in the model on these queries."""
    return {name: simulation.sustained(one, 6.0, 40.0).rate for name, one in DISCIPLINES.items()}


def conclude(
    simulation: Simulation, model: Mapping[str, float], loads: Mapping[str, float], measured: Sequence[Measured]
) -> Finding:
    """`loads`: discipline -> measured load; empty in a quick run."""
    setting = simulation.queries.setting
    where = f"{setting.name}, {len(simulation.queries.kind)} queries, seed {simulation.queries.seed}"
    rows = [
        Row(figure=FIGURE, setting=where, metric=f"sustained load, {name}, {kind}", unit="queries/s", ours=value)
        for name in loads for kind, value in (("measured", loads[name]), ("model", model[name]))
    ]  # fmt: skip
    for rival, least in OVER.items() if loads else ():
        rows.append(
            Row(
                figure=FIGURE, setting=where, metric=f"EDFQ over {rival}", unit="%", low=100 * (least - 1),
                paper={"FIFO": 35.9, "SPR": 14.3}[rival], ours=100 * (loads["EDFQ"] / loads[rival] - 1),
            )
        )  # fmt: skip
    if loads:
        best = max(loads["EDF"], loads["EDFQ"])
        rows += [
            Row(figure=FIGURE, setting=where, metric="ours over the better of EDF and EDFQ", unit="%",
                ours=100 * (loads["ours"] / best - 1), low=-100 * EQUAL),
            Row(figure=FIGURE, setting=where, metric="pairs in another order than in the model", unit="",
                ours=float(disagreements(model, loads)), high=0.0),
        ]  # fmt: skip
    return Finding(
        rows=tuple(rows + _beside(simulation, where, measured)), panels=panels(model, loads) if loads else (),
        notes=NOTES,
    )  # fmt: skip


def panels(model: Mapping[str, float], loads: Mapping[str, float]) -> tuple[Panel, ...]:
    """Loads, measured and in the model."""
    curves = tuple(Curve(name=name, values=(loads[name], model[name])) for name in loads)
    title = "load that all classes sustain: measured (0), model (1)"
    return (Panel(title=title, unit="queries/s", kind="dots", along="measured, model", curves=curves),)


def disagreements(model: Mapping[str, float], loads: Mapping[str, float]) -> int:
    """Pairs of disciplines that one of the two puts in one order and the other in the other, by more than `EQUAL`."""

    def order(found: Mapping[str, float], one: str, other: str) -> int:
        apart = found[one] / found[other] - 1
        return 0 if abs(apart) <= EQUAL else (1 if apart > 0 else -1)

    names = sorted(loads)
    return sum(order(model, a, b) * order(loads, a, b) < 0 for n, a in enumerate(names) for b in names[n + 1 :])


def _beside(simulation: Simulation, where: str, measured: Sequence[Measured]) -> list[Row]:
    """Percentiles of the same queries at the same rates, measured and simulated."""
    apart: dict[str, list[float]] = {name: [] for name in DISCIPLINES}
    for one in measured:
        outcome = simulation.outcome(one.rate, DISCIPLINES[one.discipline])
        for kind, of in enumerate(simulation.queries.setting.classes):
            found = one.tails().get(of.name)
            if found is not None and found < NEVER_S:
                apart[one.discipline].append(100 * (found / outcome.percentile(kind) - 1))
    rows = [
        Row(
            figure=FIGURE, setting=where, metric=f"99th percentile over the model's, {name}, mean", unit="%",
            ours=fmean(values),
        )
        for name, values in apart.items() if values
    ]  # fmt: skip
    answered = sum(len(values) for one in measured for values in one.latencies.values())
    missing = sum(one.missing for one in measured)
    return [
        *rows,
        Row(figure=FIGURE, setting=where, metric="queries that count", unit="", ours=float(answered)),
        Row(figure=FIGURE, setting=where, metric="of these without a whole answer", unit="", ours=float(missing)),
    ]  # fmt: skip


NOTES = (
    "Each discipline has processes of its own: a registry, four domains with eight workers each, a provider; queries "
    "come over HTTP, tasks travel over WebSocket. Workers wait for the execution times that the model draws for the "
    "same seed, node and query. Weights of classes are those that the model learns at the rate; no provider goes on "
    "learning. All disciplines run at a time on this machine. Latencies are taken at the client.",
)
