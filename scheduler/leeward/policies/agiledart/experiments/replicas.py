"""Ours: routers that a bolt's senders use among its replicas, against even rotation, in virtual time.

The paper routes over links whose delays do not depend on what is sent. A replica's delay does: these runs show which
router may be used there, and with which settings. `leeward.policies.agiledart.paths.replicas` has the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.core.policy import Router
from leeward.core.route import RoutePacing
from leeward.policies.agiledart.paths.replicas import Load, play
from leeward.policies.agiledart.paths.routers import KlRouter, NextHopRouter, ReplicaRouter, ThompsonRouter

FIGURE = "Replicas"
EQUAL, SLOW, HALF = (0.02, 0.02, 0.02), (0.01, 0.01, 0.05), (0.01, 0.01, 0.02)
NEARLY_FULL = "three equal replicas, 95 % busy"
CHANGING = "the slow one of three changes in the middle, 55 % busy"
LOADS = {
    "three equal replicas, 50 % busy": Load(rate=75, services_s=EQUAL),
    "three equal replicas, 80 % busy": Load(rate=120, services_s=EQUAL),
    NEARLY_FULL: Load(rate=142, services_s=EQUAL),
    "one of three 5 times slower, 55 % busy": Load(rate=120, services_s=SLOW),
    "one of three 5 times slower, 80 % busy": Load(rate=176, services_s=SLOW),
    "one of three half as fast, 80 % busy": Load(rate=200, services_s=HALF),
    CHANGING: Load(rate=120, services_s=SLOW, change=(60.0, (0.05, 0.01, 0.01))),
}
ROTATION, SHORTEST, OURS = "even rotation", "shortest queue", "Thompson for replicas"
PATHS, LATE, NEXT_HOP, KL = (
    "Thompson for paths",
    "Thompson for replicas, four turns of 0.25 s",
    "next-hop",
    "KL, c = 0.3",
)
ROUTERS: dict[str, Callable[[], Router]] = {
    OURS: ReplicaRouter,
    LATE: ReplicaRouter,
    PATHS: lambda: ThompsonRouter(slot_s=0.01),
    NEXT_HOP: lambda: NextHopRouter(slot_s=0.2),
    KL: lambda: KlRouter(slot_s=0.2),
}
WAYS = (ROTATION, OURS, LATE, PATHS, NEXT_HOP, KL, SHORTEST)
PACINGS = {LATE: RoutePacing(every_s=0.25, turns=4)}
RUNS, QUICK_RUNS = 8, 1
#: Bounds of our own: mean delays of OURS, where even rotation gives a replica more than it can serve, in ms; and over
#: even rotation where no replica is slow and none is nearly full.
MOST_MS, MOST_OVER = 200.0, 2.0


class Replicas:
    """A study whose parts are (load, way, run)."""

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """All ways meet loads of the same seeds."""
        return [
            Part(name=f"{load}, {way}, {run}", seed=1000 * seed + 2 * run, options=(("load", load), ("way", way)))
            for load in LOADS
            for way in WAYS
            for run in range(QUICK_RUNS if quick else RUNS)
        ]

    def measure(self, part: Part) -> Mapping[str, float]:
        """Delays in ms, and the share of the last replica, the slow one at the begin, in %."""
        load, way = LOADS[str(part.option("load"))], str(part.option("way"))
        router = ROUTERS[way]() if way in ROUTERS else None
        pacing = PACINGS.get(way, RoutePacing())
        outcome = play(load, router, seed=part.seed, shortest=way == SHORTEST, pacing=pacing)
        return {"mean": 1000 * outcome.mean_s, "p99": 1000 * outcome.p99_s, "share": 100 * outcome.shares[-1]}

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Means over the runs."""
        found: dict[tuple[str, str], list[Mapping[str, float]]] = {}
        for part, figures in measured.items():
            found.setdefault((str(part.option("load")), str(part.option("way"))), []).append(figures)
        means = {key: {name: fmean(one[name] for one in of) for name in of[0]} for key, of in found.items()}
        return Finding(
            rows=tuple(row for load in LOADS for row in _rows(load, means)), panels=_panels(means), notes=NOTES
        )


def _rows(load: str, means: Mapping[tuple[str, str], Mapping[str, float]]) -> Iterator[Row]:
    equal = LOADS[load].services_s == EQUAL
    for way in WAYS:
        one = means[load, way]
        high = MOST_MS if way == OURS and not equal else None
        yield Row(figure=FIGURE, setting=load, metric=f"mean delay, {way}", unit="ms", ours=one["mean"], high=high)
        yield Row(figure=FIGURE, setting=load, metric=f"99th percentile, {way}", unit="ms", ours=one["p99"])
        if not equal:
            yield Row(
                figure=FIGURE, setting=load, metric=f"share of the last replica, {way}", unit="%", ours=one["share"]
            )
    if equal:
        high = None if load == NEARLY_FULL else MOST_OVER
        over = means[load, OURS]["mean"] / means[load, ROTATION]["mean"]
        yield Row(figure=FIGURE, setting=load, metric=f"{OURS} over rotation", unit="", ours=over, high=high)


def _panels(means: Mapping[tuple[str, str], Mapping[str, float]]) -> tuple[Panel, ...]:
    curves = tuple(Curve(name=way, values=tuple(means[load, way]["mean"] for load in LOADS)) for way in WAYS)
    return (
        Panel(
            title="mean delay", unit="ms", kind="dots", curves=curves, logarithmic=True,
            along="setting, in the order of the tables",
        ),
    )  # fmt: skip


NOTES = (
    "Replicas serve 10, 20 or 50 ms a tuple in the mean, exponential; Poisson arrivals of 120 s, of which the first "
    "quarter does not count; one sender. `busy` is the share of all replicas' capacity. Where even rotation gives "
    "a replica more than it can serve, its delay grows without end, and the figure is that of 120 s. Shortest queue "
    "knows each queue at each tuple, which no sender does. KL and next-hop choose one replica at a time and forget "
    "nothing; they are made for links.",
)
