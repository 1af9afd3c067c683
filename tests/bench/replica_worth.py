"""The worth of one more replica, as measured and by the learnt curve, from the events of a service.

    leeward experiment edrp-table5 --objective baseline --mode live
    python tests/bench/replica_worth.py out/experiments/edrp-table5/baseline-live/events.jsonl --component partial_rank

A plan prices a replica by the time that it saves a tuple of the component. A result may gain more or less: it waits for
the last tuple that it needs. Compared are the seconds in which the component had k and k + 1 replicas and every other
component the same number, at rates that both of them had, `SETTLED_S` after a change and outside of a reconfiguration.
Their load still differs, so the replica saves -d of a line, by least squares with the weights of Huber:

    time = c + a (rate of the source) + b (rate of the component) + d [k + 1 replicas]

Near its limit a component's wait is no line, so that its row says little.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

RESULT, TUPLE, CURVE = "a result", "a tuple, measured", "a tuple, by its curve"
#: After a change of the deployment results of the one before are still on their way for so long, s.
SETTLED_S = 15.0
#: With fewer samples of either number of replicas nothing is told: two minutes of seconds, or of the learner's spans.
LEAST = {RESULT: 120, TUPLE: 12, CURVE: 12}
#: Rates that both numbers of replicas had: those between these parts of each, %.
COMMON = 2, 98
#: A time further from the line than this many median distances counts less.
HUBER, ROUNDS = 2.0, 20

Replicas = tuple[tuple[str, int], ...]  #: component -> replicas, by name


class Sample(NamedTuple):
    """A time at one second, or the mean of a span of the learner."""

    source: float  #: tuples/s
    own: float  #: tuples/s of the component
    time_s: float


def settled(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Replicas, Mapping[str, float], Mapping[str, Any]]]:
    """Replicas, rates and event, while the deployment stands."""
    replicas: Replicas = ()
    rates: Mapping[str, float] = {}
    since = 0.0
    for event in events:
        if event["action"] == "measured" and event["deployment"]:
            seen = tuple(sorted((name, sum(placed.values())) for name, placed in event["deployment"].items()))
            if seen != replicas or event["state"] != "idle":
                replicas, since = seen, event["t"]
            rates = event["rates"]
        if replicas and event["t"] >= since + SETTLED_S:
            yield replicas, rates, event


def samples_of(
    events: Iterable[Mapping[str, Any]], source: str, component: str
) -> Mapping[tuple[Replicas, str], Mapping[int, list[Sample]]]:
    """(replicas of the others, whose time) -> replicas of the component -> samples."""
    found: dict[tuple[Replicas, str], dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for replicas, rates, event in settled(events):
        if source not in rates or component not in rates:
            continue
        others = tuple(pair for pair in replicas if pair[0] != component)
        times = {RESULT: event.get("response_s")} if event["action"] == "measured" else {}
        if event["action"] == "learnt" and (model := event["models"].get(component)):
            times = {TUPLE: model["measured_s"], CURVE: model["learnt_s"]}
        for whose, time_s in times.items():
            if time_s is not None:
                sample = Sample(rates[source], rates[component], time_s)
                found[others, whose][dict(replicas)[component]].append(sample)
    return found


def common(fewer: Sequence[Sample], more: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Those at rates of the component that both have."""
    ends = [np.percentile([sample.own for sample in samples], COMMON) for samples in (fewer, more)]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    return [one for one in fewer if low <= one.own <= high], [one for one in more if low <= one.own <= high]


def saved_s(fewer: Sequence[Sample], more: Sequence[Sample]) -> float:
    """-d of the module, s."""
    table = np.array(
        [(1.0, source, own, k, time) for k, group in enumerate((fewer, more)) for source, own, time in group]
    )
    line, times, weights = table[:, :4], table[:, 4], np.ones(len(table))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        fitted = np.linalg.lstsq(line * root[:, None], times * root, rcond=None)[0]
        away = np.abs(times - line @ fitted)
        weights = np.minimum(1.0, HUBER * np.median(away) / np.maximum(away, 1e-12))
    return -float(fitted[3])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("events", type=Path)
    arguments.add_argument("--component", required=True, help="of which a replica is added")
    arguments.add_argument("--source", default="data_source")
    given = arguments.parse_args()
    with given.events.open() as lines:
        found = samples_of(map(json.loads, lines), given.source, given.component)
    table = Table("replicas", "of the others", "whose time", "samples", "tuples/s", "saved, ms")
    for (others, whose), by_count in sorted(found.items()):
        for k in sorted(by_count.keys() & {k - 1 for k in by_count}):
            fewer, more = common(by_count[k], by_count[k + 1])
            if min(len(fewer), len(more)) >= LEAST[whose]:
                rates = [sample.own for sample in (*fewer, *more)]
                table.add_row(
                    f"{k} to {k + 1}", ", ".join(f"{name} {n}" for name, n in others if n > 1) or "one each", whose,
                    f"{len(fewer)} and {len(more)}", f"{min(rates):.0f} to {max(rates):.0f}",
                    f"{1e3 * saved_s(fewer, more):.1f}",
                )  # fmt: skip
    Console(highlight=False).print(table)
    return 0 if table.rows else 1


if __name__ == "__main__":
    sys.exit(main())
