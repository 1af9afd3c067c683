"""Models of response time against measurements, from the events of a service.

    leeward demo --no-drain --out out/models            # or any leeward serve --events FILE
    python tests/bench/models.py out/models/events.jsonl

Each event `learnt` has, for each component, the mean time of its tuples over a span, and their rate. Before a span is
a sample, its time is predicted by the curve of the spans before it, as a plan would, and by M/M/1 with the measured
service rate. Prints how far off both were. Spans for which the curve was not sure (5 samples, 20 %) are left out, as
S-EDRP then plans by M/M/1 too.

The last lines are of the whole path: the response time of a plan that keeps the deployment, from source to sink, beside
the mean of what was measured in the 10 s after it. The page tells it with the rest that was learnt by then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from leeward.control.learning.curves import LEAST_TUPLES, CurveLearner, Stay
from leeward.policies.edrp.policy import LEAST_SAMPLES
from leeward.policies.edrp.settings import EdrpSettings

#: Measurements of so long after a plan are compared with it, s.
AFTER_S = 10.0


@dataclass(slots=True)
class Errors:
    """Of one component: relative distances from what was measured."""

    learnt: list[float] = field(default_factory=list)
    mm1: list[float] = field(default_factory=list)
    unsure: int = 0  #: spans that were not predicted


def errors_of(events: Iterable[Mapping[str, Any]]) -> dict[str, Errors]:
    """Component -> its errors, from a service's events in their order."""
    learners: dict[str, CurveLearner] = {}
    found: dict[str, Errors] = {}
    for event in events:
        if event["action"] == "leading":  # another term: it learns anew
            learners = {}
        for name, model in event.get("models", {}).items() if event["action"] == "learnt" else ():
            busy, measured_s = model["utilisation"], model["measured_s"]
            service_s = model["mm1_s"] * (1.0 - busy)
            learner, errors = learners.setdefault(name, CurveLearner()), found.setdefault(name, Errors())
            curve, rate = learner.fit(service_s), busy / service_s
            if curve is None or curve.samples < LEAST_SAMPLES or curve.error(rate) > EdrpSettings().curve_error:
                errors.unsure += 1
            else:
                errors.learnt.append(abs(curve.response_s(rate) / measured_s - 1.0))
                errors.mm1.append(abs(model["mm1_s"] / measured_s - 1.0))
            learner.add(Stay(tuples=LEAST_TUPLES, sojourn_s=measured_s, service_s=service_s, busy=busy), event["t"])
    return found


@dataclass(slots=True)
class PathErrors:
    """Of the whole path: times of plans that keep the deployment, and what was measured after them, s."""

    parts: list[float] = field(default_factory=list)  #: by the policy
    told: list[float] = field(default_factory=list)  #: with the rest that was learnt by then
    measured: list[float] = field(default_factory=list)

    def off(self, by: Sequence[float]) -> float:
        """Mean relative distance from what was measured, %."""
        return 100 * mean(abs(one / other - 1.0) for one, other in zip(by, self.measured, strict=True))


def path_errors(events: Iterable[Mapping[str, Any]]) -> PathErrors:
    """From a service's events in their order; plans made before the rest was known are left out."""
    found = PathErrors()
    rest: float | None = None
    plan: tuple[float, float, float] | None = None  # t, parts, with the rest
    seen: list[float] = []
    for event in events:
        action, t = event["action"], event["t"]
        if plan is not None and t > plan[0] + AFTER_S:
            if seen:
                for to, value in zip((found.parts, found.told, found.measured), (*plan[1:], mean(seen)), strict=True):
                    to.append(value)
            plan = None
        if action in ("leading", "reconfiguration_started"):
            rest, plan = None if action == "leading" else rest, None
        elif action == "learnt":
            rest = event["rest"].get("seconds", rest)
        elif action == "plan_made" and event.get("response_s") is not None and rest is not None:
            plan, seen = (t, event["response_s"], event["response_s"] + rest), []
        elif action == "measured" and event["response_s"] is not None:
            seen.append(event["response_s"])
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    events = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    found, path = errors_of(events), path_errors(events)
    table = Table("component", "spans", "learnt, off by", "M/M/1, off by", "not sure")
    for name, errors in sorted(found.items()):
        means = [f"{100 * mean(each):.1f} %" if each else "-" for each in (errors.learnt, errors.mm1)]
        table.add_row(name, str(len(errors.learnt)), *means, str(errors.unsure))
    console = Console(highlight=False)
    console.print(table)
    if path.measured:
        console.print(f"the path after {len(path.measured)} plans, measured: {1000 * mean(path.measured):.0f} ms")
        for name, by in (("the policy's parts", path.parts), ("with the rest", path.told)):
            console.print(f"{name}: {1000 * mean(by):.0f} ms, off by {path.off(by):.0f} %")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
