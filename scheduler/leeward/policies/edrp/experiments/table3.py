"""The paper's Table III: one hour of one plan a minute, for four objectives (section 7.2).

Fifteen nodes of ANSNET, a source that climbs from 70 to 220 tuples/s and falls back, R_max 175 ms, C_max 30 $/h,
T_D,max 7.5 s, two replicas at most.  Values that the paper leaves open are an `Assumptions`; `variations` changes one
of them at a time, so that one can see how far the figures hang on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from leeward.policies.edrp.experiments.network import Network, scaled_delays_s
from leeward.policies.edrp.experiments.reference import (
    SINK,
    SOURCE,
    WEIGHTS,
    Ratios,
    reference_operators,
    reference_streams,
)
from leeward.policies.edrp.problem.evaluate import evaluate
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Deployment, Node, Weights

if TYPE_CHECKING:
    from leeward.policies.edrp.problem.outcome import Outcome

MINUTES = 60
LEAST_TPS, MOST_TPS = 70.0, 220.0
MEAN_DELAY_S = 0.032
K = 2
BOUNDS = Bounds(r=0.175, c=30.0, d=7.5)
#: The first deployment of every run, without a price on downtime.
FIRST = Weights(r=0.5, c=0.5, d=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One row of Table III: weights and the paper's figures (ms, $/h, s)."""

    name: str
    weights: Weights
    paper_response_ms: float
    paper_cost: float
    paper_downtime_s: float


OBJECTIVES = tuple(
    Objective(name=name, weights=WEIGHTS[name], paper_response_ms=ms, paper_cost=cost, paper_downtime_s=s)
    for name, ms, cost, s in (
        ("baseline", 120.8, 9.6, 12.0),
        ("balanced", 121.7, 9.9, 2.4),
        ("response time", 121.5, 10.3, 2.4),
        ("cost", 136.0, 9.2, 4.9),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Values that the paper does not give; the defaults are the reference run."""

    name: str = "reference"
    #: Nodes of the graph that host nothing: it has 18, the paper uses "a portion" of 15.  The one overseas, and the
    #: second of each two cities less than 100 km apart.
    without: tuple[str, ...] = ("Hawaii", "Reston", "San Jose")
    #: Where the two pinned operators are: the taxis' own city, and the node that is farthest from it.
    source: str = "New York"
    sink: str = "Los Angeles"
    ratios: Ratios = field(default_factory=Ratios)
    #: $/h per tuple/s between two nodes.  Table II prints 0.02, but no deployment of Table III can have paid it:
    #: the source's mean is 145 tuples/s, so one crossing costs 2.9 $/h; eight operators on nodes of two units cross
    #: three times or more, and with 8 $/h of replicas that is 16.7 $/h, where 9.2 to 10.3 are printed.
    link_cost: float = 0.0
    mean_delay_s: float = MEAN_DELAY_S
    #: Which of the paper's two models prices a change: A.1, as the numerical study's parameters suggest, or A.2.
    downtime_model: str = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One solve, and the minute that begins with it."""

    objective: str
    minute: int
    rate_tps: float
    #: optimal, feasible, infeasible or unknown.  Where there is no deployment, the present one stays.
    status: str
    response_s: float
    cost: float
    downtime_s: float
    replicas: int
    deployment: Deployment
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Table III's figures of one objective, and how they were reached."""

    objective: Objective
    response_ms: float
    cost: float
    downtime_s: float
    reconfigurations: int
    most_replicas: int
    #: Plans that are not proven optimal (a time limit), and those without a deployment.
    unproven: int
    failed: int
    seconds: float
    slowest_s: float


def source_rate(minute: float) -> float:
    """Tuples/s: linear from 70 to 220 in the first half hour and back in the second."""
    half = MINUTES / 2
    return LEAST_TPS + (MOST_TPS - LEAST_TPS) * (1.0 - abs(minute - half) / half)


def problem_at(
    network: Network, assumptions: Assumptions, minute: float, weights: Weights, current: Deployment | None
) -> Problem:
    """The instance that is solved at a minute; raises `LeewardError` for a city that is not there."""
    names, delays = scaled_delays_s(network, assumptions.without, assumptions.mean_delay_s)
    rate = source_rate(minute)
    return Problem(
        name=f"edrp-table3 {assumptions.name} minute {minute:g}",
        nodes=tuple(Node(id=name) for name in names),
        delay_s=delays,
        operators=reference_operators(rate, K, {SOURCE: assumptions.source, SINK: assumptions.sink}),
        streams=reference_streams(rate, assumptions.ratios),
        weights=weights,
        bounds=BOUNDS,
        link_cost=assumptions.link_cost,
        current=current,
        downtime_model=assumptions.downtime_model,  # type: ignore[arg-type]
    )


def run_hour(
    network: Network,
    assumptions: Assumptions,
    objective: Objective,
    solver: Callable[[Problem], Outcome],
    *,
    step: int = 1,
) -> Iterator[Plan]:
    """The first deployment and one plan every `step` minutes; ends early if there is no first deployment."""
    current: Deployment | None = None
    for minute in range(0, MINUTES + 1, step):
        weights = FIRST if current is None else objective.weights
        problem = problem_at(network, assumptions, minute, weights, current)
        outcome = solver(problem)
        found = getattr(outcome, "deployment", None)
        placed = current if found is None else found
        if placed is None:
            return
        metrics = evaluate(problem, placed)
        yield Plan(
            objective=objective.name,
            minute=minute,
            rate_tps=source_rate(minute),
            status=type(outcome).__name__.lower(),
            response_s=metrics.R,
            cost=metrics.C,
            downtime_s=metrics.T_D,
            replicas=sum(sum(nodes.values()) for nodes in placed.values()),
            deployment=placed,
            seconds=outcome.effort.seconds,
        )
        current = placed


def summarise(objective: Objective, plans: list[Plan]) -> Row | None:
    """The row of one objective: means over its plans, total downtime; None if nothing could be deployed.

    Minutes in which a kept deployment cannot keep up with its load have no finite response time; they count as
    failed and are left out of the mean.
    """
    mine = [plan for plan in plans if plan.objective == objective.name]
    finite = [plan.response_s for plan in mine if math.isfinite(plan.response_s)]
    if not finite:
        return None
    return Row(
        objective=objective,
        response_ms=1000 * fmean(finite),
        cost=fmean(plan.cost for plan in mine),
        downtime_s=sum(plan.downtime_s for plan in mine),
        reconfigurations=sum(plan.downtime_s > 0 for plan in mine),
        most_replicas=max(plan.replicas for plan in mine),
        unproven=sum(plan.status == "feasible" for plan in mine),
        failed=sum(plan.status in ("infeasible", "unknown") for plan in mine),
        seconds=sum(plan.seconds for plan in mine),
        slowest_s=max(plan.seconds for plan in mine),
    )


def variations() -> tuple[Assumptions, ...]:
    """One assumption changed at a time; the name says which."""
    base, ratios = Assumptions(), Ratios()

    def selectivity(name: str, **changes: float) -> Assumptions:
        return replace(base, name=name, ratios=replace(ratios, **changes))

    hawaii = ("Hartford", "Reston", "San Jose")
    return (
        replace(base, name="sink San Francisco", sink="San Francisco"),
        replace(base, name="sink Dallas", sink="Dallas"),
        replace(base, name="pins swapped", source=base.sink, sink=base.source),
        replace(base, name="pins Greensboro, Seattle", source="Greensboro", sink="Seattle"),
        replace(base, name="Hawaii for Hartford", without=hawaii),
        replace(base, name="sink Hawaii, no Hartford", without=hawaii, sink="Hawaii"),
        replace(base, name="mean delay 40 ms", mean_delay_s=0.040),
        selectivity("window emits 15", count_by_window=15.0),
        selectivity("window emits 1", count_by_window=1.0),
        selectivity("metronome emits 0.01", metronome=0.01),
        selectivity("metronome emits 0.4", metronome=0.4),
        selectivity("filter passes 0.9", filter_by_coordinates=0.9),
        selectivity("source feeds metronome, 0.1", ticks=0.1),
        replace(
            base,
            name="traffic 0.02, window 1",
            link_cost=0.02,
            ratios=replace(ratios, count_by_window=1.0),
        ),
        replace(base, name="traffic 0.02", link_cost=0.02),
        replace(base, name="downtime of A.2 (Storm)", downtime_model="storm"),
    )


#: Variations of `--quick`.
QUICK_VARIATIONS = ("sink San Francisco", "window emits 1")
