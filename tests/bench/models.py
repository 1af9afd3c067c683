"""Models of response time against measurements, from the events of a service.

    leeward demo --no-drain --out out/models            # or any leeward serve --events FILE
    python tests/bench/models.py out/models/events.jsonl

Each event `learnt` has, for each component, the mean time of its tuples over a span, and their rate. Before a span is
a sample, its time is predicted by the curve of the spans before it, as a plan would, and by M/M/1 with the measured
service rate. Prints how far off both were. Spans for which the curve was not sure (5 samples, 20 %) are left out, as
S-EDRP then plans by M/M/1 too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from leeward.control.learning.curves import LEAST_TUPLES, CurveLearner, Stay
from leeward.policies.edrp.policy import LEAST_SAMPLES
from leeward.policies.edrp.settings import EdrpSettings


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


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    found = errors_of(map(json.loads, Path(sys.argv[1]).read_text().splitlines()))
    table = Table("component", "spans", "learnt, off by", "M/M/1, off by", "not sure")
    for name, errors in sorted(found.items()):
        means = [f"{100 * mean(each):.1f} %" if each else "-" for each in (errors.learnt, errors.mm1)]
        table.add_row(name, str(len(errors.learnt)), *means, str(errors.unsure))
    Console().print(table)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
