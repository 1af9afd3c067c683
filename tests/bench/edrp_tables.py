"""What `edrp.py` shows: medians as tables, and a picture."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from leeward.policies.edrp.experiments.pictures import COLOURS, figure_of, plain, save

Result = dict[str, Any]
RAN = ("optimal", "feasible", "infeasible", "unknown", "limit")


def summaries(results: list[Result]) -> list[dict[str, Any]]:
    """One line for each group, method and size: how many, how many proven, median and slowest, gap, memory."""
    cells: dict[tuple[object, ...], list[Result]] = {}
    for r in results:
        key = (r["group"], r["method"], r["shape"], r["operators"], r["nodes"], r["k"])
        cells.setdefault(key, []).append(r)
    return [
        dict(zip(("group", "method", "shape", "operators", "nodes", "k"), key, strict=True)) | _figures(cell, results)
        for key, cell in cells.items()
    ]


def _figures(cell: list[Result], results: list[Result]) -> dict[str, Any]:
    ran = [r for r in cell if r["status"] in RAN]
    seconds = [r["seconds"] for r in ran]
    gaps = [r["gap"] for r in ran if r["gap"] is not None]
    peaks = [r["peak_mb"] for r in ran if r["peak_mb"] is not None]
    ratios = ratios_of(cell, results)
    return {
        "instances": len(ran),
        "proven": sum(r["proven"] for r in ran),
        "not_run": len(cell) - len(ran),
        "why_not_run": sorted({r["status"] + ": " + r["why"] for r in cell if r["status"] not in RAN}),
        "median_s": median(seconds) if seconds else None,
        "max_s": max(seconds, default=None),
        "gap_max": max(gaps, default=None),
        "peak_mb": max(peaks, default=None),
        "times_slower_than_ours_min": min(ratios, default=None),
        "times_slower_than_ours_median": median(ratios) if ratios else None,
    }


def ratios_of(cell: list[Result], results: list[Result]) -> list[float]:
    """For each proven solve of `ilp` or `compact`: its seconds over those of our method on the same instance."""
    if cell[0]["group"] not in ("ilp", "compact"):
        return []
    names = ("nodes", "k", "traffic", "present", "seed")
    ours = {tuple(r[n] for n in names): r["seconds"] for r in results if r["group"] == "sizes" and r["proven"]}
    pairs = [(r["seconds"], ours.get(tuple(r[n] for n in names))) for r in cell if r["proven"]]
    return [theirs / max(own, 1e-6) for theirs, own in pairs if own is not None]


def print_tables(console: Console, results: list[Result]) -> None:
    """A table for each group; what was not run is told below it."""
    lines = summaries(results)
    for group in dict.fromkeys(line["group"] for line in lines):
        mine = [line for line in lines if line["group"] == group]
        console.print(f"\n[bold]{group}[/bold]")
        table = Table(box=box.SIMPLE, pad_edge=False)
        compared = any(line["times_slower_than_ours_min"] is not None for line in mine)
        for head in ("method", "application", "nodes", "k", "solved", "proven", "median, s", "max, s", "gap", "MB"):
            table.add_column(head, no_wrap=True)
        if compared:
            table.add_column("times ours, least", no_wrap=True)
        for line in (line for line in mine if line["instances"]):
            ratio = (_number(line["times_slower_than_ours_min"], 0),) if compared else ()
            table.add_row(*_cells(line), *ratio)
        console.print(table)
        for reason in sorted({why for line in mine for why in line["why_not_run"]}):
            sizes = ", ".join(_size(line) for line in mine if reason in line["why_not_run"])
            console.print(f"{reason}: {sizes}", style="dim")


def _size(line: dict[str, Any]) -> str:
    if line["shape"] == "reference":
        return f"{line['nodes']} nodes k {line['k']}"
    return f"{line['shape']} of {line['operators']}"


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    return (
        line["method"],
        line["shape"] if line["shape"] == "reference" else f"{line['shape']} of {line['operators']}",
        str(line["nodes"]),
        str(line["k"]),
        str(line["instances"]),
        str(line["proven"]),
        _number(line["median_s"], 3),
        _number(line["max_s"], 3),
        _number(line["gap_max"], 4),
        _number(line["peak_mb"], 0),
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def draw(path: Path, results: list[Result]) -> None:
    """Left: seconds over nodes; right: seconds over operators.  A mark for each solve, a cross if not proven."""
    figure, (left, right) = figure_of(1, 2, size=(13, 5))
    for method in dict.fromkeys(r["method"] for r in results):
        mine = [r for r in results if r["method"] == method and r["group"] != "operators" and r["status"] in RAN]
        colour = COLOURS.get(method, "black")
        _dots(left, mine, "nodes", colour, method)
    shapes = {"chain": "#4c72b0", "tree": "#55a868", "dense": "#dd8452"}
    for shape, colour in shapes.items():
        mine = [r for r in results if r["group"] == "operators" and r["shape"] == shape and r["status"] in RAN]
        _dots(right, mine, "operators", colour, shape)
    left.set(xlabel="nodes", title="the reference application, k = 2 to 4")
    sizes = sorted({r["nodes"] for r in results if r["group"] != "operators"})
    if sizes:
        left.set(xscale="log")
        left.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
        left.minorticks_off()
    right.set(xlabel="operators", title="random graphs on 24 nodes, k = 3")
    for axis in (left, right):
        if not axis.get_legend_handles_labels()[0]:
            axis.set_visible(False)  # a group that was not asked for
            continue
        axis.set(yscale="log", ylabel="seconds")
        plain(axis)
        axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4)
    title = "EDRP: seconds to a proven optimum (triangles: traffic has a price; x: not proven, with a gap)"
    figure.suptitle(title, fontsize=12)
    save(figure, path)


def _dots(axis: Any, mine: list[Result], over: str, colour: str, label: str) -> None:
    style = {"color": colour, "alpha": 0.6, "linewidths": 0}
    if mine:
        axis.scatter([], [], s=30, label=label, **style)
    for traffic, marker in ((False, "o"), (True, "^")):
        proven = [r for r in mine if r["proven"] and r["traffic"] == traffic]
        axis.scatter(_column(proven, over), _column(proven, "seconds"), s=22, marker=marker, **style)
    rest = [r for r in mine if not r["proven"]]
    axis.scatter(_column(rest, over), _column(rest, "seconds"), s=40, color=colour, marker="x")


def _column(results: list[Result], name: str) -> list[float]:
    return [max(r[name], 1e-3) for r in results]
