"""Latency beside plain Storm's on the same topologies, rates and network (Fig. 9 of the paper). Pure.

Ours: operators along the JOIN path from the sensors' node to the users', scaled by the guarded rule.  Plain Storm: its
default scheduler spreads the same tasks over all nodes, and nothing moves.  Both emulate the same service times.

A source that Storm places away from the sensors receives their data over the network, and so do the users of a sink:
these ways are added to what the sink measures.  Ours has none, as source and sink are pinned to the two nodes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.agiledart.experiments.latency_setup import HIGH, LOW, MEDIUM, RATES, Application, Scenario

FIGURE = "Fig. 9"
OURS, STORM = "AgileDART", "plain Storm"
#: Plain Storm with the replicas that are enough for the medium rate, as its user would have submitted it.
FIXED = "plain Storm, replicas for the medium rate"
#: The paper: latency is so much lower than Storm's at medium and high rates, %.
LEAST, MOST = 16.7, 52.7
#: The latency is steady when the mean of a span is within this share of that of the span before, or above it.
STEADY = 0.1
#: Two runs are at one rate if the one's progress through the input differs by at most so much from the other's, %: a
#: machine that is busy with other work holds one of them up.
PACE = 10.0
#: Delays of the network by which the model says how far the figure hangs on them.
FIFTH = 0.2
MS = 1e3

#: Application's topology, rate by name, system.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """One line that a sink wrote; times are seconds since 1970, on the one clock of the machine."""

    number: int
    sent: float  #: when the source emitted the last tuple that the result needs
    received: float
    row: str = ""


def read_results(lines: Iterable[str]) -> list[Result]:
    """As the sink wrote them; a line that is still being written is left out."""
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
            times = float(entry["sent"]), float(entry["received"])
            found.append(Result(int(entry["seq"]), *times, str(entry.get("row", ""))))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def within(results: Iterable[Result], since: float, until: float) -> list[Result]:
    """Those that the sink received in this time."""
    return [one for one in results if since <= one.received < until]


def is_steady(results: Sequence[Result], now: float, span_s: float, *, may_grow: bool) -> bool:
    """Whether the newest span's mean latency is as low as the one before's: no backlog is being worked off.

    `may_grow`: it may be higher, as nothing will change that; else the policy has yet to see to it.
    """
    spans = [within(results, now - n * span_s, now - (n - 1) * span_s) for n in (2, 1)]
    if not all(spans):
        return False
    before, after = (fmean(one.received - one.sent for one in span) for span in spans)
    return after >= (1 - STEADY) * before and (may_grow or before >= (1 - STEADY) * after)


def progress(results: Sequence[Result]) -> float:
    """Numbers that passed in a second, from the first of these results to the last; 0 for one result."""
    first, last = results[0], results[-1]
    span_s = last.received - first.received
    return (last.number - first.number) / span_s if span_s > 0 else 0.0


def repeated(results: Iterable[Result]) -> int:
    """Results whose number the sink had written before."""
    return sum(count - 1 for count in Counter(one.number for one in results).values())


class Compared(NamedTuple):
    """Results of two systems that had the same input."""

    both: int  #: numbers up to the last one that both wrote
    differ: int  #: of these: one system lacks the result, or has another one


def compare(one: Iterable[Result], other: Iterable[Result]) -> Compared:
    """By number; of several results of one number the first counts."""
    mine, theirs = _by_number(one), _by_number(other)
    last = min(max(mine, default=0), max(theirs, default=0))
    numbers = {number for rows in (mine, theirs) for number in rows if number <= last}
    return Compared(len(numbers), sum(mine.get(number) != theirs.get(number) for number in numbers))


def _by_number(results: Iterable[Result]) -> dict[int, str]:
    found: dict[int, str] = {}
    for one in results:
        found.setdefault(one.number, one.row)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One topology at one rate under one system."""

    topology: str
    rate: str  #: one of `RATES`
    system: str
    per_s: float  #: tuples/s that its source emits
    mean_s: float  #: from the source's emit to the sink, over the window
    median_s: float
    p95_s: float
    outside_s: float  #: one way from the sensors to the source, and from the sink to the users
    model_s: float  #: by delays and service times alone, these ways included
    model_fifth_s: float  #: the same with a fifth of the delays
    results: int  #: in the window
    progress: float  #: numbers of results that passed in a second of the window; the same input has the same numbers
    repeated: int  #: in the whole run
    compared: int  #: with those of ours at this rate; of ours: 0
    differ: int  #: see `Compared`
    resets: int  #: a cut was restored
    replicas: Mapping[str, int]  #: of each component, in the window
    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)  #: their nodes

    @property
    def key(self) -> Key:
        """By which it is found."""
        return self.topology, self.rate, self.system

    @property
    def whole_s(self) -> float:
        """Mean, from the sensors to the users."""
        return self.mean_s + self.outside_s

    def document(self) -> dict[str, Any]:
        """As JSON has it; `measured_of` reads it."""
        return asdict(self)


def measured_of(document: Mapping[str, Any]) -> Measured:
    """Raises TypeError for a document of another form."""
    return Measured(**document)


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Mean, median and 95th percentile of the latency, s, as `Measured` names them; of at least one result."""
    delays = sorted(one.received - one.sent for one in results)
    return {
        "mean_s": fmean(delays),
        "median_s": median(delays),
        "p95_s": delays[math.ceil(0.95 * len(delays)) - 1],
    }


def runs_of(application: Application) -> list[tuple[str, str]]:
    """(system, rate) in the order in which they run: plain Storm gets the replicas that ours had."""
    found = [(system, rate) for system in (OURS, STORM) for rate in RATES if rate in application.rates]
    both = HIGH in application.rates and MEDIUM in application.rates
    return [*found, (FIXED, HIGH)] if both else found


def replicas_from(system: str, rate: str) -> str:
    """The rate at which ours had the replicas that a run of plain Storm gets."""
    return MEDIUM if system == FIXED else rate


def conclude(scenario: Scenario, measured: Sequence[Measured], *, failed: Sequence[str] = ()) -> Finding:
    """Rows and a panel of each application that has figures. `failed`: of runs that gave none, why."""
    known = {one.key: one for one in measured}
    rows: list[Row] = []
    panels = []
    for application in scenario.applications:
        for rate in application.rates:
            ours = known.get((application.topology, rate, OURS))
            storm = known.get((application.topology, rate, STORM))
            if ours and storm:
                rows += _rows(application, ours, storm, known.get((application.topology, rate, FIXED)))
        if panel := _panel(application, known):
            panels.append(panel)
    where = f"{len(measured)} runs"
    rows.append(Row(figure=FIGURE, setting=where, metric="runs that failed", unit="", ours=len(failed), high=0))
    return Finding(rows=tuple(rows), panels=tuple(panels), notes=(*_notes(scenario), *failed))


def _rows(application: Application, ours: Measured, storm: Measured, fixed: Measured | None) -> list[Row]:
    low = None if ours.rate == LOW else LEAST
    where = f"{application.title}, {ours.rate} rate, {ours.per_s:g} tuples/s"

    def row(metric: str, unit: str, value: float, *, paper: float | None = None, **bounds: float | None) -> Row:
        return Row(figure=FIGURE, setting=where, metric=metric, unit=unit, ours=value, paper=paper, **bounds)

    rows = [row("mean latency lower than plain Storm's", "%", _lower(ours.whole_s, storm.whole_s), paper=low, low=low)]
    lower = _lower(ours.median_s + ours.outside_s, storm.median_s + storm.outside_s)
    rows.append(row("the same of the medians", "%", lower))
    rows.append(row("the same without the ways outside", "%", _lower(ours.mean_s, storm.mean_s)))
    rows.append(row("the same by the model", "%", _lower(ours.model_s, storm.model_s)))
    rows.append(
        row("the same by the model, a fifth of the delays", "%", _lower(ours.model_fifth_s, storm.model_fifth_s))
    )
    pace = 100 * storm.progress / ours.progress if ours.progress else 0.0
    rows += [
        row("plain Storm's pace through the input, of ours", "%", pace, low=100 - PACE, high=100 + PACE),
        row("results that both wrote", "", storm.compared, low=1),
        row("of these, missing in one or different", "", storm.differ, high=0),
    ]
    for one in (ours, storm, fixed):
        if one is not None:
            rows += _of_one(row, one)
    if fixed is not None:
        rows.append(row(f"lower than {FIXED}", "%", _lower(ours.whole_s, fixed.whole_s)))
    return rows


def _of_one(row: Any, one: Measured) -> list[Row]:
    return [
        row(f"{one.system}: mean latency", "ms", MS * one.whole_s),
        row(f"{one.system}: median", "ms", MS * (one.median_s + one.outside_s)),
        row(f"{one.system}: 95th percentile", "ms", MS * (one.p95_s + one.outside_s)),
        row(f"{one.system}: of that from sensors and to users", "ms", MS * one.outside_s),
        row(f"{one.system}: by the model", "ms", MS * one.model_s),
        row(f"{one.system}: replicas", "", sum(one.replicas.values())),
        row(f"{one.system}: nodes", "", len({node for nodes in one.hosts.values() for node in nodes})),
        row(f"{one.system}: results", "", one.results, low=1),
        row(f"{one.system}: results that came twice", "", one.repeated, high=0),
        row(f"{one.system}: a cut was restored", "times", one.resets),
    ]


def _lower(ours: float, theirs: float) -> float:
    """%"""
    return 100 * (1 - ours / theirs)


def _panel(application: Application, known: Mapping[Key, Measured]) -> Panel | None:
    """Latency by rate: ours, plain Storm's, and the range in which the paper's claim puts ours."""
    rates = [
        rate for rate in application.rates
        if all((application.topology, rate, system) in known for system in (OURS, STORM))
    ]  # fmt: skip
    if not rates:
        return None
    ours, storm = (
        [MS * known[application.topology, rate, system].whole_s for rate in rates] for system in (OURS, STORM)
    )
    curves = {OURS: ours, STORM: storm}
    for share in (LEAST, MOST):
        curves[f"{share:g} % lower, the paper's range"] = [(1 - share / 100) * value for value in storm]
    return Panel(
        title=application.title, unit="mean latency, ms", kind="lines", along="tuples/s",
        at=tuple(known[application.topology, rate, OURS].per_s for rate in rates),
        curves=tuple(Curve(name=name, values=tuple(values)) for name, values in curves.items()),
    )  # fmt: skip


def _notes(scenario: Scenario) -> tuple[str, ...]:
    return (
        f"Emulated: {scenario.sites} sites of {scenario.nodes} nodes with {scenario.slots} slots each; "
        f"{scenario.inside_ms:g} ms one way inside a site, {scenario.least_ms:g} to {scenario.most_ms:g} ms between "
        f"two; service times of each component, {1 / scenario.speed:g} times its topology's, without burning the "
        "processor. The paper gives no delays: the rows by the model tell how far the figure hangs on them.",
        "Plain Storm: the same jar and tasks, placed by Storm's default scheduler, with a worker on each node, and as "
        "many replicas as ours had at this rate. Nothing moves them. The ways outside lead from the sensors to its "
        "source and from its sink to the users: the network's one-way delays, added to what its sink measures.",
        "Latency is received minus sent at the sink, over "
        f"{scenario.window_s:g} s after the last reconfiguration; all processes share one clock.",
    )
