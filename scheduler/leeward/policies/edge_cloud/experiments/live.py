"""Dataflows on a real Storm: measured makespans beside the model's, and what became of their events. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.core.fields import FieldError, check_number, mapping, number, text, whole, wrong_type
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.values import check_one_of
from leeward.policies.edge_cloud.settings import METHODS, REBALANCES

FIGURE = "Live"
MS = 1e3
#: Bounds that are set: of the median over dataflows, %, and from submission to plan, s.
DEVIATION, PLAN_S = 15.0, 1.0
#: The kind of reconfiguration that moves queries while events flow.
HANDOVER = "handover"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The cluster, the dataflows and the time of a run."""

    seed: int
    nodes: int
    dataflows: int
    speed: float  #: of all devices; 1 is the benchmark's
    stretch: float  #: of all delays
    rate: float  #: events/s of a dataflow
    window_s: float  #: over which makespans are measured
    method: str
    rebalance: str
    joins: bool  #: queries may have several inputs


def scenario_of(document: object) -> Scenario:
    """The scenario of a parsed file; raises `FieldError` naming the first wrong field."""
    names = tuple(Scenario.__dataclass_fields__)
    top = mapping("scenario", document, frozenset(names), required=names)
    found = Scenario(
        seed=whole("seed", top["seed"]),
        nodes=whole("nodes", top["nodes"]),
        dataflows=whole("dataflows", top["dataflows"]),
        speed=number("speed", top["speed"]),
        stretch=number("stretch", top["stretch"]),
        rate=number("rate", top["rate"]),
        window_s=number("window_s", top["window_s"]),
        method=text("method", top["method"]),
        rebalance=text("rebalance", top["rebalance"]),
        joins=_truth("joins", top["joins"]),
    )
    for name in ("dataflows", "speed", "stretch", "rate", "window_s"):
        check_number(name, getattr(found, name), positive=True)
    if not 3 <= found.nodes <= 20:
        raise FieldError("nodes", found.nodes, "is not from 3 to 20", remedy="give so many")
    check_one_of("method", found.method, METHODS)
    check_one_of("rebalance", found.rebalance, REBALANCES)
    return found


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(name, value, "true or false")
    return value


@dataclass(slots=True, kw_only=True)
class Lived:
    """Plan, measurements and faults of one dataflow."""

    name: str
    dataflow: Dataflow
    id: str = ""  #: the topology's
    seen_to_plan_s: float | None = None  #: from the service's first look at it
    submitted_to_plan_s: float | None = None  #: from Nimbus' acceptance
    refused: str = ""
    killed: bool = False
    place: list[str] = field(default_factory=list)
    model_s: float | None = None
    measured_s: float | None = None
    events: int = 0
    lost: int = 0
    doubled: int = 0
    again: int = 0  #: lines written anew after a reset
    placed_first: bool = False  #: Storm's first placement of it was the plan
    moves: Counter[str] = field(default_factory=Counter)  #: kinds of reconfigurations in a drain
    rebalanced: Counter[str] = field(default_factory=Counter)  #: the same after its arrival, before the drain
    longest_s: float | None = None  #: delay of an event, around the drain

    @property
    def joins(self) -> int:
        """Queries with several inputs: there copies of one event wait for each other, which the model does not know."""
        return sum(len(parents) > 1 for parents in self.dataflow.parents)

    @property
    def ratio(self) -> float | None:
        """Measured over model."""
        return self.measured_s / self.model_s if self.measured_s and self.model_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A node was emptied."""

    node: str
    dataflows: int  #: that used it
    seconds: float
    left: tuple[str, ...]  #: dataflows that use it still


def conclude(scenario: Scenario, lived: Sequence[Lived], drain: Drain | None) -> Finding:
    """Bounded figures of the run, and those of each dataflow."""
    measured = [one for one in lived if one.ratio is not None]
    where = f"{scenario.dataflows} dataflows, {scenario.nodes} nodes"
    rows = [
        *_deviations(where, measured),
        *_plans(where, lived),
        *_events(where, scenario, lived, drain),
        *(row for one in measured for row in _of_one(one)),
    ]
    curves = (
        Curve(name="model", values=tuple(MS * (one.model_s or 0) for one in measured)),
        Curve(name="measured", values=tuple(MS * (one.measured_s or 0) for one in measured)),
    )
    panel = Panel(title=where, unit="makespan, ms", kind="dots", along="dataflow", curves=curves)
    stretched = (
        f"Times are stretched: devices of speed {scenario.speed:g}, delays times {scenario.stretch:g}, "
        f"{scenario.rate:g} events/s a dataflow, so that Storm's own milliseconds on a shared machine do not hide the "
        "model's. Queries of one node do not slow each other here (mode exclusive)."
    )
    return Finding(rows=tuple(rows), panels=(panel,) if measured else (), notes=(stretched,))


def _deviations(where: str, measured: Iterable[Lived]) -> list[Row]:
    every = {"": list(measured)}
    every[" without joins"] = [one for one in every[""] if not one.joins]
    return [
        Row(
            figure=FIGURE, setting=where, unit="%", high=None if kind else DEVIATION,
            metric=f"measured makespan from the model's, median of {len(ones)}{kind}",
            ours=100 * median(abs((one.ratio or 0) - 1) for one in ones),
        )
        for kind, ones in every.items()
        if ones
    ]  # fmt: skip


def _plans(where: str, lived: Sequence[Lived]) -> list[Row]:
    submitted = [one.submitted_to_plan_s for one in lived if one.submitted_to_plan_s is not None]
    seen = [one.seen_to_plan_s for one in lived if one.seen_to_plan_s is not None]
    if not submitted:
        return []
    return [
        Row(figure=FIGURE, setting=where, metric=metric, unit="s", ours=ours, high=high)
        for metric, ours, high in (
            (f"plan after submission, median of {len(submitted)}", median(submitted), None),
            ("plan after submission, most", max(submitted), PLAN_S),
            ("plan after the service saw it, most", max(seen), None),
        )
    ]


def _events(where: str, scenario: Scenario, lived: Sequence[Lived], drain: Drain | None) -> list[Row]:
    counts: list[tuple[str, float, float | None, float | None]] = [
        ("events at the sinks", sum(one.events for one in lived), 1, None),
        ("dataflows measured", sum(one.measured_s is not None for one in lived), 1, None),
        ("lost", sum(one.lost for one in lived), None, 0),
        ("doubled", sum(one.doubled for one in lived), None, 0),
        ("written again after a reset", sum(one.again for one in lived), None, None),
        ("refused dataflows", sum(bool(one.refused) for one in lived), None, None),
        (
            "dataflows whose first placement was the plan",
            sum(one.placed_first for one in lived),
            sum(not one.refused for one in lived),
            None,
        ),
    ]
    if scenario.rebalance != "none":
        moved = sum((one.rebalanced for one in lived), Counter[str]())
        counts += [
            (f"handovers by the rebalance ({scenario.rebalance})", moved[HANDOVER], 1, None),
            ("its other reconfigurations, and handovers that were given up", moved.total() - moved[HANDOVER], None, 0),
        ]
    if drain is not None:
        counts += _drained(lived, drain)
    return [
        Row(figure=FIGURE, setting=where, metric=metric, unit="", ours=ours, low=low, high=high)
        for metric, ours, low, high in counts
    ]


def _drained(lived: Sequence[Lived], drain: Drain) -> list[tuple[str, float, float | None, float | None]]:
    """A query that was moved before leaves its old task, now warm, beside others that work: to bring that task to a
    third node Storm restarts their worker, so only dataflows that nothing has moved are bound to a handover.
    """
    fresh = sum((one.moves for one in lived if not one.rebalanced), Counter[str]())
    again = sum((one.moves for one in lived if one.rebalanced), Counter[str]())
    new = sum(bool(one.moves) for one in lived if not one.rebalanced)
    return [
        (f"handovers in the drain, {new} dataflows that nothing had moved", fresh[HANDOVER], new, None),
        ("their other reconfigurations, and handovers that were given up", fresh.total() - fresh[HANDOVER], None, 0),
        ("handovers in the drain, of dataflows moved before", again[HANDOVER], None, None),
        ("their other reconfigurations", again.total() - again[HANDOVER], None, None),
        (f"dataflows left on the drained node, of {drain.dataflows}", len(drain.left), None, 0),
    ]


def _of_one(one: Lived) -> list[Row]:
    where = f"{one.name}, {len(one.dataflow.queries)} queries, {one.joins} with several inputs"
    found = {"makespan by the model": one.model_s, "measured": one.measured_s, "longest while moving": one.longest_s}
    return [
        Row(figure=FIGURE, setting=where, metric=metric, unit="ms", ours=MS * value)
        for metric, value in found.items()
        if value is not None
    ]
