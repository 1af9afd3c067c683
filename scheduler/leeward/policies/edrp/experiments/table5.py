"""The paper's Table V: query 1 on a real Storm, for four objectives with a plan a minute (section 7.3). Pure.

Five nodes of two slots, four replicas in a slot, R_max 150 ms, C_max 15 $/h, T_D,max 60 s.  Each objective is run in
both modes: `restart` is the paper's protocol, `live` hands key groups over while tuples flow.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean, median
from typing import Any, Protocol

from leeward.core.errors import ConfigError
from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.edrp.experiments.reference import WEIGHTS
from leeward.policies.edrp.problem.values import Weights

FIGURE = "Table V"
LIVE, RESTART = "live", "restart"
MODES = (LIVE, RESTART)
#: Live stays under this share of downtime, %.
LIVE_DOWNTIME = 0.05
#: A result is one of a quiet time if nothing was reconfigured while it was on its way and for so long before, s: by
#: then what waited during a restart has been worked off.  The paper leaves out the tuples that were buffered.
QUIET_S = 30.0
#: Points of a curve.
POINTS = 120
MS = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One row of Table V: weights, and the paper's figures."""

    name: str
    weights: Weights
    paper_response_ms: float
    paper_cost: float  #: $/h
    paper_downtime: float  #: share of the run, %


OBJECTIVES = tuple(
    Objective(name=name, weights=WEIGHTS[name], paper_response_ms=ms, paper_cost=cost, paper_downtime=share)
    for name, ms, cost, share in (
        ("baseline", 103.6, 9.3, 10.18),
        ("balanced", 90.0, 9.8, 2.36),
        ("response time", 88.8, 9.9, 1.27),
        ("cost", 116.6, 8.9, 4.00),
    )
)


def service_options(objective: Objective, mode: str, overrides: Sequence[str] = ()) -> list[str]:
    """Settings of `leeward serve`, as the paper has them: no head-room, and every plan that is better is carried out.

    Bounds, EPS_max and t_syn are the defaults. `overrides` (KEY=VALUE) take the place of the paper's. Raises
    ConfigError for those that choose policy or mode.
    """
    weights = objective.weights
    for override in overrides:
        if (key := override.partition("=")[0]) in ("policy", "mode"):
            raise ConfigError(f"option {override!r} sets {key}.", remedy="Choose runs with --objective and --mode.")
    return [
        "policy=edrp", f"mode={mode}", "period_s=60", "edrp.headroom=0",
        "minimum_gain=0", "scale_down_s=0", "no_return_s=0",
        f"edrp.w_r={weights.r:g}", f"edrp.w_c={weights.c:g}", f"edrp.w_d={weights.d:g}", *overrides,
    ]  # fmt: skip


class Result(Protocol):
    """A result at the sink, and when the last tuple that it needs had left the source."""

    @property
    def sent_s(self) -> float:
        """When that was, s since 1970."""

    @property
    def age_s(self) -> float:
        """From then to the sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One objective in one mode."""

    objective: str
    mode: str
    tuples: int  #: rows that were replayed
    expected: int  #: results of the reference
    wrong: int  #: results lost, doubled or out of order
    seconds: float  #: from the first row sent to the last result
    response_s: float  #: mean of the results of quiet times
    response_all_s: float  #: mean of all results
    response_median_s: float  #: of all results; minutes of overload rule a mean
    quiet: float  #: share of the results that are of quiet times
    response_model_s: float  #: mean over the plans, by the model
    cost: float  #: $/h, mean over time
    downtime_s: float  #: sum over reconfigurations and resets
    longest_s: float  #: the longest of these
    reconfigurations: int
    resets: int  #: a cut was restored
    least_replicas: int
    most_replicas: int
    minutes: Sequence[float]  #: of the curves
    rates: Sequence[float]  #: tuples/s that the source sent
    replicas: Sequence[float]
    responses_s: Sequence[float]  #: median of the results since the point before
    pauses: Sequence[float]  #: s of downtime since the start

    @property
    def key(self) -> tuple[str, str]:
        """By which it is found."""
        return self.objective, self.mode

    @property
    def downtime(self) -> float:
        """Share of the run, %."""
        return 100 * self.downtime_s / self.seconds

    def document(self) -> dict[str, Any]:
        """As JSON has it; `measured_of` reads it."""
        return asdict(self)


def measured_of(document: Mapping[str, Any]) -> Measured:
    """Raises TypeError for a document of another form."""
    return Measured(**document)


def measure(
    events: Sequence[Mapping[str, Any]], results: Sequence[Result], *, began: float, ended: float, **facts: Any
) -> Measured:
    """From the events of the service and the results at the sink, between two times (s since 1970).

    `facts` are the fields of `Measured` that neither of them has. Raises ValueError without events or results.
    """
    within = [event for event in events if began <= event["t"] < ended]
    seen = [event for event in within if event["action"] == "measured" and event["deployment"]]
    plans = [event for event in within if event["action"] == "plan_made" and event.get("response_s") is not None]
    changes = [event for event in within if event["action"] == "reconfiguration_ended"]
    if not seen or not results:
        raise ValueError("a run without measurements or results")
    quiet = [result for result in results if _is_quiet(result, list(_spans(within)))]
    replicas = [sum(sum(placed.values()) for placed in event["deployment"].values()) for event in seen]
    pauses = [float(event.get("pause_s", 0.0)) for event in changes]
    times = [began + (ended - began) * at / POINTS for at in range(1, POINTS + 1)]
    return Measured(
        seconds=ended - began,
        response_s=fmean(result.age_s for result in quiet) if quiet else math.nan,
        response_all_s=fmean(result.age_s for result in results),
        response_median_s=median(result.age_s for result in results),
        quiet=len(quiet) / len(results),
        response_model_s=fmean(float(plan["response_s"]) for plan in plans) if plans else math.nan,
        cost=_over_time([(event["t"], float(event["cost_per_h"])) for event in seen], ended),
        downtime_s=sum(pauses),
        longest_s=max(pauses, default=0.0),
        reconfigurations=sum(event["kind"] != "reset" for event in changes),
        resets=sum(event["kind"] == "reset" for event in changes),
        least_replicas=min(replicas),
        most_replicas=max(replicas),
        minutes=[(time - began) / 60 for time in times],
        rates=[_latest([(event["t"], event["rates"].get("data_source", 0.0)) for event in seen], t) for t in times],
        replicas=[_latest(list(zip((event["t"] for event in seen), replicas, strict=True)), t) for t in times],
        responses_s=_medians(results, [began, *times]),
        pauses=[sum(p for e, p in zip(changes, pauses, strict=True) if e["t"] <= t) for t in times],
        **facts,
    )


def _spans(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[float, float]]:
    """When tuples waited for a reconfiguration, and some time after. A pause of less than 0.1 s does not count."""
    began = None
    for event in events:
        if event["action"] == "reconfiguration_started":
            began = event["t"]
        elif event["action"] == "reconfiguration_ended":
            pause_s = float(event.get("pause_s", 0.0))
            if pause_s >= 0.1:
                yield event["t"] - pause_s if began is None else began, event["t"] + QUIET_S
            began = None


def _is_quiet(result: Result, spans: Iterable[tuple[float, float]]) -> bool:
    return not any(result.sent_s < end and result.sent_s + result.age_s >= start for start, end in spans)


def _over_time(values: Sequence[tuple[float, float]], until: float) -> float:
    """The mean of a value that holds until the next one."""
    ends = [*(time for time, _ in values[1:]), until]
    weighed = [(end - time, value) for (time, value), end in zip(values, ends, strict=True)]
    return sum(span * value for span, value in weighed) / sum(span for span, _ in weighed)


def _latest(values: Sequence[tuple[float, float]], at: float) -> float:
    """The newest value at that time; before the first one, the first."""
    return next((value for time, value in reversed(values) if time <= at), values[0][1])


def _medians(results: Sequence[Result], times: Sequence[float]) -> list[float]:
    """The median age, s, of the results that came between two times; without any, the one before, at first the next."""
    groups: list[list[float]] = [[] for _ in times[1:]]
    for result in results:
        at = bisect_left(times, result.sent_s + result.age_s) - 1
        groups[min(max(at, 0), len(groups) - 1)].append(result.age_s)
    last = median(next(ages for ages in groups if ages))
    return [last := median(ages) if ages else last for ages in groups]


# --- figures


def conclude(measured: Sequence[Measured], *, failed: Sequence[str] = (), overrides: Sequence[str] = ()) -> Finding:
    """Rows of each run, and a panel of each mode and of the replicas.

    `failed`: of runs that gave no figures, why. `overrides`: settings in place of the paper's.
    """
    known = {one.key: one for one in measured}
    rows = [
        row
        for mode in MODES
        for objective in OBJECTIVES
        if (one := known.get((objective.name, mode))) is not None
        for row in _rows(objective, one)
    ]
    where = f"{len(measured)} of {len(OBJECTIVES) * len(MODES)} runs"
    rows.append(Row(figure=FIGURE, setting=where, metric="runs that failed", unit="", ours=len(failed), high=0))
    return Finding(rows=tuple(rows), panels=tuple(_panels(known)), notes=(*NOTES, *override_notes(overrides), *failed))


def row_of(objective: Objective, mode: str, metric: str, unit: str, ours: float, **others: float | None) -> Row:
    """A figure of one run. `others`: the paper's, and bounds."""
    return Row(figure=FIGURE, setting=f"{objective.name}, {mode}", metric=metric, unit=unit, ours=ours, **others)


def bounded_rows(objective: Objective, mode: str, *, cost: float, downtime: float) -> tuple[Row, Row]:
    """Mean C, $/h, and downtime, share of the run in %: of live runs both have a bound."""
    live, row = mode == LIVE, partial(row_of, objective, mode)
    return (
        row("mean C", "$/h", cost, paper=objective.paper_cost, high=objective.paper_cost if live else None),
        row("downtime", "%", downtime, paper=objective.paper_downtime, high=LIVE_DOWNTIME if live else None),
    )


def _rows(objective: Objective, one: Measured) -> list[Row]:
    row = partial(row_of, objective, one.mode)

    quiet = [] if math.isnan(one.response_s) else [
        row("mean R, without results that waited for a reconfiguration", "ms", MS * one.response_s,
            paper=objective.paper_response_ms)
    ]  # fmt: skip
    model = [] if math.isnan(one.response_model_s) else [
        row("mean R by the model, over the plans", "ms", MS * one.response_model_s)
    ]  # fmt: skip
    return [
        *quiet,
        row("the same of all results", "ms", MS * one.response_all_s),
        row("median R of all results", "ms", MS * one.response_median_s),
        *model,
        *bounded_rows(objective, one.mode, cost=one.cost, downtime=one.downtime),
        row("longest pause", "s", one.longest_s),
        row("reconfigurations", "", one.reconfigurations),
        row("a cut was restored", "times", one.resets),
        row("fewest replicas", "", one.least_replicas),
        row("most replicas", "", one.most_replicas),
        row("rows replayed", "", one.tuples, low=1),
        row("results lost, doubled or out of order", "", one.wrong, high=0),
    ]


def _panels(known: Mapping[tuple[str, str], Measured]) -> Iterator[Panel]:
    for objective in OBJECTIVES:
        if runs := {mode: known[objective.name, mode] for mode in MODES if (objective.name, mode) in known}:
            replicas = {mode: one.replicas for mode, one in runs.items()}
            yield _over_minutes(f"{objective.name}: replicas", "replicas", runs, replicas)
    for mode in MODES:
        if runs := {one.name: known[one.name, mode] for one in OBJECTIVES if (one.name, mode) in known}:
            responses = {name: [MS * seconds for seconds in one.responses_s] for name, one in runs.items()}
            yield _over_minutes(f"median R, {mode}", "ms", runs, responses, logarithmic=True)
            yield _over_minutes(f"downtime so far, {mode}", "s", runs, {name: one.pauses for name, one in runs.items()})
    if first := next(iter(known.values()), None):
        yield _over_minutes("rate of the source", "tuples/s", {"sent": first}, {"sent": first.rates})


def _over_minutes(
    title: str, unit: str, runs: Mapping[str, Measured], values: Mapping[str, Sequence[float]], *,
    logarithmic: bool = False,
) -> Panel:  # fmt: skip
    """A curve for each name, over the minutes of the first of the runs."""
    curves = tuple(Curve(name=name, values=tuple(of_one)) for name, of_one in values.items())
    at = tuple(next(iter(runs.values())).minutes)
    return Panel(title=title, unit=unit, kind="lines", along="minute", at=at, curves=curves, logarithmic=logarithmic)


def override_notes(overrides: Sequence[str]) -> tuple[str, ...]:
    """A note of settings that are not the paper's, if there are some."""
    return (f"In place of the paper's settings: {', '.join(overrides)}.",) if overrides else ()


UP_TO_C_MAX = (
    "The response-time objective gives C no weight, and by handover a change costs next to nothing: a replica that "
    "saves a fraction of a millisecond is taken, up to C_max. In the paper a change cost a restart of 6 s or more, and "
    "replicas on more nodes cost delay."
)
NOTES = (
    "Emulated: the service times of Table II, without burning the processor; five nodes of two slots are processes of "
    "one machine, so the network has no delay. Rates keep below 284 tuples/s, Table II's rate of the source, which the "
    "paper exceeds.",
    "R is measured at the sink: from when the last tuple that a result needs left the source, which is after it waited "
    f"there. As in the paper, results that waited for a reconfiguration are left out: with a pause of 0.1 s or more, "
    f"those on their way during it and for {QUIET_S:g} s after. C is 1 $/h for each replica, weighed by time. Downtime "
    "is the sum of pauses; in a handover a pause is the longest wait of a tuple for its group.",
    "Both modes have the paper's settings: a plan a minute, no head-room, and every better plan is carried out.",
    "In the paper 10 replicas were enough, of partial_rank the third. One parser of Table II's service time takes 233 "
    "tuples/s and each of the two operators behind it 253: above that each needs a second replica with every "
    "objective.",
    UP_TO_C_MAX,
)
