"""How often policies reconfigure a simulated topology, with guards and without, and by which forecast.

The study names no policy: it gets those to compare, each with its settings. One part is one policy under one set of
guards and one forecast, for all the hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from leeward.control.forecast import GRAIN_S, METHODS, History
from leeward.control.registry import policy_of
from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.core.settings import settings_from
from leeward.sim.world.description import WorldFile
from leeward.sim.world.ledger import Event
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.run import Outcome, simulate

#: The cool-down of the calm guards, s; a return within it is back and forth under every set of guards.
COOL_DOWN_S = 300.0
#: Name of a set of guards -> settings of the service that differ from the defaults.
GUARDS: Mapping[str, Mapping[str, float]] = {
    "none": {"cool_down_s": 0.0, "scale_down_s": 0.0, "no_return_s": 0.0, "minimum_gain": 0.0},
    "default": {},
    "calm": {"cool_down_s": COOL_DOWN_S, "scale_down_s": 1800.0},
}
#: Between two plans, s: of the guards' part, and of the forecasts', whose time ahead it is, too.
PERIOD_S, FORECAST_PERIOD_S = 60.0, 300.0
#: Times ahead of which forecasts are compared with the trace itself, s.
AHEAD_S = (60.0, 300.0, 900.0, 3600.0)
DAY_S = 86_400.0

Policies = Mapping[str, tuple[str, Mapping[str, Any]]]  #: label -> (name, its settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restless:
    """See the module. A Study."""

    world: WorldFile
    trace: RateTrace  #: from the first hour that is simulated
    source: str  #: of the trace, in words
    hours: float
    forecast_hours: float  #: over a day, else no forecast knows yesterday
    policies: Policies
    forecast_policies: Policies
    methods: tuple[str, ...] = tuple(METHODS)

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """Each policy under each set of guards, then each policy of the forecasts under each method."""
        guarded = [
            Part(name=f"{policy}, {guards}", seed=seed, options=_options("guards", policy, guards, "last"))
            for policy in self.policies for guards in GUARDS
        ]  # fmt: skip
        ahead = [
            Part(name=f"{policy}, {method}", seed=seed, options=_options("forecasts", policy, "default", method))
            for policy in self.forecast_policies for method in self.methods
        ]  # fmt: skip
        return [*guarded, *ahead, Part(name="forecasts against the trace", seed=seed, options=(("kind", "errors"),))]

    def measure(self, part: Part) -> Mapping[str, float]:
        """One simulation, or the errors of the forecasts."""
        if part.option("kind") == "errors":
            return errors_of(self.trace, self.forecast_hours, self.methods)
        ahead = part.option("kind") == "forecasts"
        hours, period_s = (self.forecast_hours, FORECAST_PERIOD_S) if ahead else (self.hours, PERIOD_S)
        label = str(part.option("policy"))
        policy, own = (self.forecast_policies if ahead else self.policies)[label]
        document: dict[str, Any] = {
            "policy": policy, "seed": part.seed, "period_s": period_s, "window_s": PERIOD_S,
            "forecast": part.option("forecast"), "ahead_forecast_s": FORECAST_PERIOD_S,
            **GUARDS[str(part.option("guards"))], policy: dict(own),
        }  # fmt: skip
        chosen = settings_from(document)
        outcome = simulate(self.world, self.trace, policy_of(chosen), chosen.service, hours=hours)
        return figures_of(outcome, hours)

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Reconfigurations a day and returns, then the forecasts."""
        by = {part.options: figures for part, figures in measured.items()}
        rows: list[Row] = []
        for policy in self.policies:
            for guards in GUARDS:
                free = by[_options("guards", policy, "none", "last")]
                rows += _guard_rows(policy, guards, by[_options("guards", policy, guards, "last")], free)
        for policy in self.forecast_policies:
            for method in self.methods:
                rows += _forecast_rows(policy, method, by[_options("forecasts", policy, "default", method)])
        rows += [
            Row(figure="forecast error", setting=f"{ahead_s:g} s ahead", metric=method, unit="% of the rate",
                ours=100.0 * by[(("kind", "errors"),)][f"{method} {ahead_s:g}"])
            for ahead_s in AHEAD_S for method in self.methods if f"{method} {ahead_s:g}" in by[(("kind", "errors"),)]
        ]  # fmt: skip
        return Finding(rows=tuple(rows), panels=self._panels(by), notes=self._notes())

    def _panels(self, by: Mapping[tuple[tuple[str, str | float], ...], Mapping[str, float]]) -> tuple[Panel, ...]:
        days = range(int(self.hours // 24) or 1)

        def curve(policy: str, guards: str) -> Curve:
            figures = by[_options("guards", policy, guards, "last")]
            return Curve(name=guards, values=tuple(figures.get(f"day {day}", 0.0) for day in days))

        return tuple(
            Panel(
                title=f"Reconfigurations of each day, {policy}", unit="a day", kind="lines", along="day",
                curves=tuple(curve(policy, guards) for guards in GUARDS),
            )
            for policy in self.policies
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        sets = "; ".join(
            f"{name}: {', '.join(f'{key} = {value:g}' for key, value in changed.items()) or 'as the settings have it'}"
            for name, changed in GUARDS.items()
        )
        return (
            f"Rates: {self.source}, at most {self.trace.peak:.0f} tuples/s; {self.hours:g} h for the guards, with a "
            f"plan each {PERIOD_S:g} s, {self.forecast_hours:g} h for the forecasts, with a plan each "
            f"{FORECAST_PERIOD_S:g} s for the rates of {FORECAST_PERIOD_S:g} s later. World: {self.world.name}.",
            f"Guards: {sets}.",
            "A return is a component that goes back to the replicas it had before its last change. Its time is from "
            "the end of that change to the begin of the next one.",
            "A day has to pass before a forecast knows yesterday; until then it is `last`, or the trend of `blended`.",
        )


def _options(kind: str, policy: str, guards: str, forecast: str) -> tuple[tuple[str, str | float], ...]:
    return ("kind", kind), ("policy", policy), ("guards", guards), ("forecast", forecast)


def figures_of(outcome: Outcome, hours: float) -> dict[str, float]:
    """The figures of one simulation; times in s. `day N`: reconfigurations of that day."""
    figures, spans = outcome.figures, changes_of(outcome.events)
    gaps = returns(spans)
    between = [begin - end for (_, end, _), (begin, _, _) in pairwise(spans)]
    found = {
        "reconfigurations": len(spans) / (hours / 24.0),
        "within the cool-down": float(sum(gap < COOL_DOWN_S for gap in gaps)),
        "within an hour": float(sum(gap < 3600.0 for gap in gaps)),
        "least time between": min(between, default=hours * 3600.0),
        "over share": figures.over_share,
        "cost": figures.cost / figures.hours,
        "response": figures.mean_response_s,
        "downtime": figures.downtime_s,
        "lost": figures.lost,
        "refused": float(sum(figures.refused.values())),
    }
    for begin, _, _ in spans:
        name = f"day {int(begin // DAY_S)}"
        found[name] = found.get(name, 0.0) + 1.0
    return found


Span = tuple[float, float, tuple[tuple[str, str, str], ...]]  #: (begin s, end s, (component, before, after) of each)


def changes_of(events: Sequence[Event]) -> list[Span]:
    """The reconfigurations that were carried out, in order."""
    spans, begin = [], 0.0
    for event in events:
        if event.action == "reconfiguration_started":
            begin = event.at_s
        elif event.action == "reconfiguration_ended" and event.fields["result"] == "done":
            changes = tuple(
                (str(c["component"]), str(sorted(c["before"].items())), str(sorted(c["after"].items())))
                for c in event.fields["changes"]
            )
            spans.append((begin, event.at_s, changes))
    return spans


def returns(spans: Sequence[Span]) -> list[float]:
    """Of each return of a component, the time since it left, s."""
    last: dict[str, tuple[float, str]] = {}  # component -> (end of its last change, what it left)
    gaps = []
    for begin, end, changes in spans:
        for component, before, after in changes:
            if component in last and last[component][1] == after:
                gaps.append(begin - last[component][0])
            last[component] = (end, before)
    return gaps


def errors_of(trace: RateTrace, hours: float, methods: Sequence[str]) -> dict[str, float]:
    """Mean absolute error of each method over the mean rate, by time ahead; where all of them know enough."""
    found: dict[str, float] = {}
    for ahead_s in AHEAD_S:
        history, errors, rates = History(ahead_s), dict.fromkeys(methods, 0.0), 0.0
        for minute in range(int(hours * 60.0)):
            now = 60.0 * minute
            history.add(now, trace.at(now))
            if now < DAY_S + 2 * GRAIN_S or minute % 5:
                continue
            points, real = history.points(), trace.at(now + ahead_s)
            rates += real
            for method in methods:
                forecast = METHODS[method](points, now, ahead_s)
                errors[method] += abs(real - (points[-1][1] if forecast is None else forecast))
        if rates:
            found |= {f"{method} {ahead_s:g}": errors[method] / rates for method in methods}
    return found


def _guard_rows(policy: str, guards: str, mine: Mapping[str, float], free: Mapping[str, float]) -> list[Row]:
    """`free`: the same policy without guards."""
    calm = guards == "calm"
    figures: list[tuple[str, str, float, float | None, float | None]] = [
        ("reconfigurations", "a day", mine["reconfigurations"], None,
         free["reconfigurations"] if guards != "none" else None),
        (f"returns within {COOL_DOWN_S:g} s", "times", mine["within the cool-down"], None,
         None if guards == "none" else 0.0),
        ("returns within an hour", "times", mine["within an hour"], None, None),
        ("least time between two", "s", mine["least time between"],
         None if guards == "none" else COOL_DOWN_S if calm else 20.0, None),
        *_common(mine),
    ]  # fmt: skip
    return _rows("guards", f"{policy}, guards: {guards}", figures)


def _forecast_rows(policy: str, method: str, mine: Mapping[str, float]) -> list[Row]:
    reconfigurations = ("reconfigurations", "a day", mine["reconfigurations"], None, None)
    return _rows("forecasts", f"{policy}, forecast: {method}", [*_common(mine), reconfigurations])


def _common(mine: Mapping[str, float]) -> list[tuple[str, str, float, float | None, float | None]]:
    return [
        ("time over the bound of the response time", "%", 100.0 * mine["over share"], None, None),
        ("mean response time", "ms", 1000.0 * mine["response"], None, None),
        ("cost", "$/h", mine["cost"], None, None),
        ("downtime", "s", mine["downtime"], None, None),
        ("tuples lost", "tuples", mine["lost"], None, 0.0),
    ]


def _rows(
    figure: str, setting: str, figures: Sequence[tuple[str, str, float, float | None, float | None]]
) -> list[Row]:
    return [
        Row(figure=figure, setting=setting, metric=metric, unit=unit, ours=ours, low=low, high=high)
        for metric, unit, ours, low, high in figures
    ]
