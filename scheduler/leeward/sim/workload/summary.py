"""The rows of one policy in a few figures, for programs and for people. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from leeward.core.workload import Interval

MS = 1e3


def summary_of(rows: Sequence[Interval]) -> dict[str, Any]:
    """Figures over all intervals, as JSON has them; times in s, None for one that never ends.

    Of stabilization the mean is over the intervals in which something moved.
    """
    plans = sorted(row.plan_s for row in rows)
    settles = [row.stabilization_s for row in rows if row.moves]
    return {
        "intervals": len(rows),
        "arrivals": sum(len(row.arrived) for row in rows),
        "refused": sum(len(row.refused) for row in rows),
        "active": _mean_and_most([row.active for row in rows]),
        "makespan_s": _mean_and_most([row.makespan_s for row in rows]),
        "plan_s": {"median": median(plans), "p99": plans[math.ceil(0.99 * len(plans)) - 1], "most": plans[-1]},
        "moves": {"all": sum(row.moves for row in rows), "most": max(row.moves for row in rows)},
        "stabilization_s": _mean_and_most(settles or [0.0]),
        "violations": sum(row.violations for row in rows),
    }


def _mean_and_most(values: Sequence[float]) -> dict[str, float | None]:
    mean, most = fmean(values), max(values)
    return {"mean": mean if math.isfinite(mean) else None, "most": most if math.isfinite(most) else None}


def line_of(policy: str, summary: dict[str, Any]) -> dict[str, str]:
    """A summary as a line of a table: means over the intervals, the median plan, the longest stabilization."""
    plan, moves, settles = summary["plan_s"], summary["moves"], summary["stabilization_s"]
    return {
        "policy": policy,
        "active": f"{summary['active']['mean']:.1f}",
        "makespan, s": f"{summary['makespan_s']['mean']:.4f}",
        "plan, ms": f"{plan['median'] * MS:.2f}",
        "99 %": f"{plan['p99'] * MS:.2f}",
        "moves": str(moves["all"]),
        "most": str(moves["most"]),
        "stabilization, s": _seconds(settles["most"]),
        "refused": f"{summary['refused']} of {summary['arrivals']}",
        "violations": str(summary["violations"]),
    }


def interval_line_of(row: Interval) -> dict[str, str]:
    """A row as a line of a table."""
    return {
        "interval": str(row.interval),
        "event": _event(row),
        "active": str(row.active),
        "makespan, s": f"{row.makespan_s:.4f}",
        "plan, ms": f"{row.plan_s * MS:.2f}",
        "moves": str(row.moves),
        "stabilization, s": _seconds(row.stabilization_s if math.isfinite(row.stabilization_s) else None),
        "violations": str(row.violations),
        "refused": str(len(row.refused)),
    }


def table_text(lines: Sequence[Mapping[str, str]]) -> str:
    """A table as wide as it has to be: the first column to the left, figures to the right."""
    cells = [list(lines[0]), *(list(line.values()) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(_aligned(row, widths) + "\n" for row in cells)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *figures = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in figures)])


def _event(row: Interval) -> str:
    events = [f"+{name}" for name in row.arrived] + [f"-{name}" for name in row.departed]
    return " ".join(events) if len(events) < 3 else f"+{len(row.arrived)} -{len(row.departed)}"


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.3f}"
