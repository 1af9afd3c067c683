"""The demo's result as data and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from leeward.dashboard.verdict import Verdict
from leeward.dashboard.watch import downtime_s


def build_report(
    verdict: Verdict,
    events: Sequence[Mapping[str, Any]],
    *,
    tuples_in: int,
    seconds: float,
    responses_s: Sequence[float],
    storm_version: str,
    data: str,
    emulations: Mapping[str, str],
) -> dict[str, Any]:
    """Everything that `out/demo.json` holds; `seconds` from the first row sent to the last result."""
    ended = [e for e in events if e["action"] == "reconfiguration_ended" and e["kind"] != "reset"]
    return {
        "tuples_in": tuples_in,
        **asdict(verdict),
        "reconfigurations": [_reconfiguration(event) for event in ended],
        "resets": sum(event["action"] == "reset" for event in events),
        "plans": sum(event["action"] == "plan_made" for event in events),
        "downtime_share": downtime_s(events) / seconds,
        "seconds": seconds,
        "response_s": _percentiles(responses_s),
        "storm_version": storm_version,
        "data": data,
        "emulations": dict(emulations),
    }


def _reconfiguration(event: Mapping[str, Any]) -> dict[str, Any]:
    changes = event["changes"]
    return {
        "kind": "+".join(sorted({change["kind"] for change in changes})) or "none",
        "components": [change["component"] for change in changes],
        "from": {change["component"]: change["before"] for change in changes},
        "to": {change["component"]: change["after"] for change in changes},
        "result": event["result"],
        "pause_s": event["pause_s"],
        "bytes_moved": event["bytes_imported"],
        "bytes_exported": event["bytes_exported"],
        "phases": event["phases"],
        "reason": event.get("reason", ""),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    cuts = quantiles(values, n=100, method="inclusive")
    return {
        "p50": round(cuts[49], 4),
        "p95": round(cuts[94], 4),
        "p99": round(cuts[98], 4),
        "max": round(max(values), 4),
    }


def print_report(report: Mapping[str, Any], where: Path) -> None:
    """The verdict for people."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table("kind", "components", "pause", "moved", "result", title="reconfigurations")
    for entry in report["reconfigurations"]:
        table.add_row(
            entry["kind"],
            ", ".join(entry["components"]),
            f"{entry['pause_s']:.2f} s",
            f"{entry['bytes_moved']} B",
            entry["result"],
        )
    console.print(table)
    emulated = ", ".join(f"{name}: {value}" for name, value in report["emulations"].items())
    console.print(
        f"{report['tuples_in']} tuples in, {report['results_out']} results out of {report['expected']} expected; "
        f"lost {report['lost']}, doubled {report['duplicated']}, out of order {report['out_of_order']}"
    )
    console.print(
        f"downtime {report['downtime_share']:.2%} of {report['seconds']:.0f} s; {report['plans']} plans; "
        f"emulated: {emulated}"
    )
    if report["equal_to_reference"]:
        console.print("[bold green]equal to the undisturbed single-process reference, row by row[/]")
    else:
        console.print(f"[bold red]NOT equal to the reference:[/] {report['first_difference']}")
    console.print(f"written: {where}")
