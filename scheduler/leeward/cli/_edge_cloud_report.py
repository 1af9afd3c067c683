"""The rows, the summary and the table of `leeward experiment edge-cloud-live`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from leeward.policies.edge_cloud.model.dataflow import Dataflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The parameters of a run."""

    nodes: int
    dataflows: int
    seed: int = 0
    speed: float  #: of all devices; 1 is the benchmark's
    stretch: float  #: of all delays
    rate: float  #: events/s of a dataflow
    window_s: float  #: over which makespans are measured
    rebalance: str = "none"
    joins: bool = True  #: queries may have several inputs


@dataclass(slots=True, kw_only=True)
class Row:
    """Facts, plan, measurements and faults of one dataflow."""

    name: str
    dataflow: Dataflow
    id: str = ""
    queries: int = 0
    seen_to_plan_s: float | None = None  #: from the service's first look at it
    submitted_to_plan_s: float | None = None  #: from Nimbus' acceptance
    submitted_to_running_s: float | None = None  #: to the end of the reconfiguration that places it
    refused: str = ""
    killed: bool = False
    place: list[str] = field(default_factory=list)
    model_s: float | None = None
    measured_s: float | None = None
    events: int = 0
    lost: int = 0
    doubled: int = 0
    moves: Counter[str] = field(default_factory=Counter)  #: kinds of reconfigurations after its arrival
    longest_s: float | None = None  #: delay of an event, around the drain

    @property
    def joins(self) -> int:
        """Queries with several inputs: there copies of one event wait for each other, which the model does not know."""
        return sum(len(parents) > 1 for parents in self.dataflow.parents)

    @property
    def ratio(self) -> float | None:
        """Measured over model."""
        return self.measured_s / self.model_s if self.measured_s and self.model_s else None

    def as_json(self) -> dict[str, Any]:
        """The row in the JSON file."""
        values = asdict(self)
        kinds = [query.kind for query in self.dataflow.queries]
        del values["dataflow"]
        return {**values, "kinds": kinds, "moves": dict(self.moves), "joins": self.joins, "ratio": self.ratio}


def summary(plot: Plot, rows: Sequence[Row]) -> dict[str, Any]:
    """The rows and what follows from them, in plain values."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    plain = [row.ratio for row in rows if row.ratio is not None and not row.joins]
    plans = [row.submitted_to_plan_s for row in rows if row.submitted_to_plan_s is not None]
    seen = [row.seen_to_plan_s for row in rows if row.seen_to_plan_s is not None]
    return {
        "plot": asdict(plot),
        "dataflows": [row.as_json() for row in rows],
        "deviation_median": median(abs(ratio - 1) for ratio in ratios) if ratios else None,
        "ratio_median": median(ratios) if ratios else None,
        "ratio_median_without_joins": median(plain) if plain else None,
        "submitted_to_plan_most_s": max(plans, default=None),
        "seen_to_plan_most_s": max(seen, default=None),
        "events": sum(row.events for row in rows),
        "lost": sum(row.lost for row in rows),
        "doubled": sum(row.doubled for row in rows),
        "moves": dict(sum((row.moves for row in rows), Counter[str]())),
        "load": os.getloadavg()[0],
    }


def print_result(found: dict[str, Any]) -> None:
    """The table, and what it does not show."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, soft_wrap=True, width=118)
    head = (
        "dataflow",
        "queries",
        "joins",
        "model ms",
        "measured ms",
        "ratio",
        "plan s",
        "events",
        "lost",
        "doubled",
        "moves",
    )
    table = Table(*head, "longest ms", box=None)
    for row in found["dataflows"]:
        moves = " ".join(f"{count} {kind}" for kind, count in sorted(row["moves"].items()))
        table.add_row(
            row["name"], str(row["queries"]), str(row["joins"]), _ms(row["model_s"]), _ms(row["measured_s"]),
            "-" if row["ratio"] is None else f"{row['ratio']:.3f}", f"{row['submitted_to_plan_s'] or 0:.2f}",
            str(row["events"]), str(row["lost"]), str(row["doubled"]),
            "refused" if row["refused"] else "killed" if row["killed"] else moves, _ms(row["longest_s"]),
        )  # fmt: skip
    console.print(table)
    plot = found["plot"]
    if found["deviation_median"] is not None:
        plain = found["ratio_median_without_joins"]
        if plain is not None:
            console.print(f"dataflows without joins: measured makespan {plain:.3f} of the model's, median")
        console.print(
            f"measured makespan: {100 * found['deviation_median']:.1f} % from the model's, median over dataflows; "
            f"plan at most {found['submitted_to_plan_most_s']:.2f} s after submission"
        )
    console.print(
        f"{found['events']} events, {found['lost']} lost, {found['doubled']} doubled; moves: {found['moves']}"
    )
    console.print(
        f"Times are stretched: devices of speed {plot['speed']:g}, delays times {plot['stretch']:g}, {plot['rate']:g} "
        "events/s a dataflow, so that Storm's own milliseconds on a shared machine do not hide the model's. Queries of "
        "one node do not slow each other here (mode exclusive)."
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"
