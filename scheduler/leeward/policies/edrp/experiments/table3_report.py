"""Table III as files: summary, plans and sensitivity as CSV, assumptions as JSON, two pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leeward.policies.edrp.experiments.csv_file import write_csv
from leeward.policies.edrp.experiments.network import Network
from leeward.policies.edrp.experiments.pictures import COLOURS, GREY, figure_of, plain, save
from leeward.policies.edrp.experiments.reference import TABLE_II
from leeward.policies.edrp.experiments.table3 import BOUNDS, OBJECTIVES, Assumptions, Plan, Row

SUMMARY_COLUMNS = (
    "assumptions", "objective", "w_r", "w_c", "w_d",
    "paper_response_ms", "our_response_ms", "paper_cost", "our_cost", "paper_downtime_s", "our_downtime_s",
    "reconfigurations", "most_replicas", "plans", "unproven", "failed", "seconds", "slowest_s",
)  # fmt: skip
PLAN_COLUMNS = (
    "objective", "minute", "rate_tps", "status", "response_ms", "cost", "downtime_s", "replicas", "seconds",
    *TABLE_II,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The four hours under one set of assumptions; a row is None where nothing could be deployed."""

    assumptions: Assumptions
    rows: tuple[Row | None, ...]
    plans: tuple[Plan, ...]

    @property
    def seconds(self) -> float:
        return sum(plan.seconds for plan in self.plans)


def summary_rows(hours: Hours) -> list[dict[str, Any]]:
    """One dictionary of `SUMMARY_COLUMNS` for each objective."""
    found = []
    for objective, row in zip(OBJECTIVES, hours.rows, strict=True):
        line: dict[str, Any] = {
            "assumptions": hours.assumptions.name,
            "objective": objective.name,
            "w_r": objective.weights.r,
            "w_c": objective.weights.c,
            "w_d": objective.weights.d,
            "paper_response_ms": objective.paper_response_ms,
            "paper_cost": objective.paper_cost,
            "paper_downtime_s": objective.paper_downtime_s,
            "plans": sum(plan.objective == objective.name for plan in hours.plans),
        }
        if row is not None:
            line |= {
                "our_response_ms": round(row.response_ms, 2),
                "our_cost": round(row.cost, 3),
                "our_downtime_s": round(row.downtime_s, 3),
                "reconfigurations": row.reconfigurations,
                "most_replicas": row.most_replicas,
                "unproven": row.unproven,
                "failed": row.failed,
                "seconds": round(row.seconds, 3),
                "slowest_s": round(row.slowest_s, 3),
            }
        found.append(line)
    return found


def plan_rows(plans: Iterable[Plan]) -> list[dict[str, Any]]:
    """One dictionary of `PLAN_COLUMNS` for each plan; where the replicas are: `node` or `node x2`, joined by ` + `."""
    return [
        {
            "objective": plan.objective,
            "minute": plan.minute,
            "rate_tps": round(plan.rate_tps, 3),
            "status": plan.status,
            "response_ms": round(1000 * plan.response_s, 3),
            "cost": round(plan.cost, 4),
            "downtime_s": round(plan.downtime_s, 5),
            "replicas": plan.replicas,
            "seconds": round(plan.seconds, 4),
        }
        | {
            name: " + ".join(node if count == 1 else f"{node} x{count}" for node, count in sorted(placed.items()))
            for name, placed in plan.deployment.items()
        }
        for plan in plans
    ]


def dependence(reference: Hours, varied: Sequence[Hours], *, most: int = 3) -> list[str]:
    """For each column of the table, a sentence: which assumptions move it most, by the mean over the objectives.

    Variations in which some minute had no deployment are left out: their means are not of a whole hour.
    """
    if not _is_whole(reference):
        return []
    whole = [hours for hours in varied if _is_whole(hours)]
    sentences = []
    for name, column in (("mean R", "response_ms"), ("mean C", "cost"), ("downtime", "downtime_s")):
        before = _over_objectives(reference, column)
        changes = [(hours.assumptions.name, _over_objectives(hours, column) / before - 1) for hours in whole if before]
        changes.sort(key=lambda change: (-abs(change[1]), change[0]))
        told = ", ".join(f"{what} ({100 * change:+.0f} %)" for what, change in changes[:most])
        rest = max((abs(change) for _, change in changes[most:]), default=0.0)
        if told:
            sentences.append(f"{name} hangs most on: {told}; each other moves it by {100 * rest:.0f} % at most.")
    return sentences


def _is_whole(hours: Hours) -> bool:
    return all(row is not None and not row.failed for row in hours.rows)


def _over_objectives(hours: Hours, column: str) -> float:
    return float(sum(getattr(row, column) for row in hours.rows))


def write(folder: Path, reference: Hours, varied: Sequence[Hours], network: Network, *, method: str) -> list[Path]:
    """All files of the experiment; returns their paths."""
    every = (reference, *varied)
    write_csv(folder / "summary.csv", SUMMARY_COLUMNS, summary_rows(reference))
    write_csv(folder / "plans.csv", PLAN_COLUMNS, plan_rows(reference.plans))
    write_csv(folder / "sensitivity.csv", SUMMARY_COLUMNS, [row for hours in every for row in summary_rows(hours)])
    assumed = {
        "method": method,
        "bounds": asdict(BOUNDS),
        "mean_over": "the plans of an hour, the first among them; downtime is a sum",
        "nodes": [city.name for city in network.cities if city.name not in reference.assumptions.without],
        "runs": [asdict(hours.assumptions) for hours in every],
        "dependence": dependence(reference, varied),
    }
    (folder / "assumptions.json").write_text(json.dumps(assumed, indent=1) + "\n", encoding="utf-8")
    draw_table(folder / "table3.png", reference, varied)
    draw_hours(folder / "hours.png", reference)
    names = ("summary.csv", "plans.csv", "sensitivity.csv", "assumptions.json", "table3.png", "hours.png")
    return [folder / name for name in names]


def draw_table(path: Path, reference: Hours, varied: Sequence[Hours]) -> None:
    """Three panels, one for each column: the paper's figure, ours, and a dot for each variation."""
    figure, axes = figure_of(1, 3, size=(12, 4.2))
    columns = (
        ("mean response time, ms", "paper_response_ms", "response_ms"),
        ("mean cost, $/h", "paper_cost", "cost"),
        ("total downtime, s", "paper_downtime_s", "downtime_s"),
    )
    for axis, (title, theirs, ours) in zip(axes.flat, columns, strict=True):
        for at, objective in enumerate(OBJECTIVES):
            row = reference.rows[at]
            axis.bar(at - 0.2, getattr(objective, theirs), 0.36, color="#cccccc", label="paper" if at == 0 else None)
            if row is not None:
                axis.bar(at + 0.2, getattr(row, ours), 0.36, color=COLOURS[objective.name])
            dots = [getattr(hours.rows[at], ours) for hours in varied if hours.rows[at] is not None]
            axis.scatter([at + 0.2] * len(dots), dots, s=14, color="black", alpha=0.6, zorder=3, linewidths=0)
        axis.set_title(title, fontsize=11)
        axis.set_xticks(range(len(OBJECTIVES)), [objective.name.replace(" ", "\n") for objective in OBJECTIVES])
        plain(axis)
    figure.suptitle(
        "EDRP, Table III: the paper (grey), ours (coloured), one assumption changed at a time (dots)", fontsize=12
    )
    save(figure, path)


def draw_hours(path: Path, hours: Hours) -> None:
    """One panel for each objective, as the paper's Figure 5: response time, reconfigurations, replicas."""
    figure, axes = figure_of(2, 2, size=(12, 7))
    for axis, objective in zip(axes.flat, OBJECTIVES, strict=True):
        plans = [plan for plan in hours.plans if plan.objective == objective.name]
        minutes = [plan.minute for plan in plans]
        colour = COLOURS[objective.name]
        changes = [plan for plan in plans if plan.downtime_s > 0]
        for plan in changes:
            axis.axvline(plan.minute, color=GREY, linewidth=0.8, linestyle=":")
        axis.plot(minutes, [1000 * plan.response_s for plan in plans], color=colour, linewidth=2)
        axis.axhline(1000 * BOUNDS.r, color="#c44e52", linewidth=1)
        axis.text(0.5, 1000 * BOUNDS.r - 2, "R_max", color="#c44e52", fontsize=9, va="top")
        axis.set(xlim=(0, 60), ylim=(60, 185), xlabel="minute", ylabel="response time, ms")
        axis.set_title(f"{objective.name}: {len(changes)} reconfigurations (dotted)", fontsize=11)
        plain(axis)
        beside = axis.twinx()
        beside.step(minutes, [plan.replicas for plan in plans], where="post", color="black", linewidth=1)
        beside.set(ylim=(0, 16), ylabel="replicas (black)")
        beside.spines["top"].set_visible(False)
    figure.suptitle("EDRP, one hour: the source climbs from 70 to 220 tuples/s and falls back", fontsize=12)
    save(figure, path)
