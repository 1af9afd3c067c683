"""The paper's Table IV: variables and solving times over nodes and k, CPLEX 12.6.3 on 4 vCPU beside ours.

The paper says neither rates nor delays nor what is deployed; here the source emits 200 tuples/s, the cluster is
random with a mean delay of 32 ms, one replica of each operator is deployed at random (the restricted problem needs
a present deployment) and the objective is the balanced one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.policies.edrp.experiments.instances import counted_instance, one_each
from leeward.policies.edrp.experiments.isolated import Measured, Task
from leeward.policies.edrp.milp.ilp import VARIABLE_LIMIT, variable_count
from leeward.policies.edrp.problem.configurations import configurations_of
from leeward.policies.edrp.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell as printed; None where the paper has a dash: the model was not solved, or could not be built."""

    nodes: int
    k: int
    #: Thousands of variables and seconds of EDRP, then of the restricted rEDRP.
    variables_k: float | None
    seconds: float | None
    restricted_variables_k: float
    restricted_seconds: float


PAPER = tuple(
    Cell(nodes=n, k=k, variables_k=x, seconds=s, restricted_variables_k=rx, restricted_seconds=rs)
    for n, k, x, s, rx, rs in (
        (8, 2, 9.4, 3.7, 1.6, 0.8), (8, 3, 113.7, 298.0, 1.8, 0.7), (8, 4, 994.5, None, 1.8, 1.0),
        (12, 2, 37.3, 30.5, 2.8, 0.6), (12, 3, 848.7, None, 3.3, 0.9), (12, 4, None, None, 3.4, 0.8),
        (16, 2, 103.2, 122.6, 5.5, 1.1), (16, 3, None, None, 6.1, 1.2), (16, 4, None, None, 6.3, 1.2),
        (20, 2, 231.6, 415.2, 8.8, 1.6), (20, 3, None, None, 10.0, 1.9), (20, 4, None, None, 9.7, 2.5),
        (24, 2, 453.3, 593.7, 12.7, 3.1), (24, 3, None, None, 13.8, 3.9), (24, 4, None, None, 13.9, 4.2),
    )
)  # fmt: skip
COLUMNS = (
    "nodes", "k", "method", "paper_variables_k", "our_variables_k", "paper_seconds", "our_seconds",
    "status", "F", "gap", "peak_mb", "why",
)  # fmt: skip


def problem_of(cell: Cell, *, seed: int = 0) -> Problem:
    """The instance of a cell."""
    return counted_instance(cell.nodes, cell.k, current=one_each(cell.nodes, seed=seed), seed=seed)


def restricted_count(problem: Problem) -> int:
    """Variables of rEDRP for this present deployment."""
    counts = [len(c) for c in configurations_of(problem, restricted=True)]
    return sum(counts) + sum(counts[i] * counts[j] for i, j in problem.edges)


def key_of(cell: Cell, method: str) -> str:
    """The key of a cell's task."""
    return f"{cell.nodes} {cell.k} {method}"


def is_built(cell: Cell, method: str) -> bool:
    """Whether the method takes the cell: the literal programme has a limit, like the paper's solver."""
    return method != "ilp" or variable_count(problem_of(cell)) <= VARIABLE_LIMIT


def tasks(cells: Sequence[Cell], methods: Sequence[str], *, limit_s: float, seed: int = 0) -> list[Task]:
    """The cells to solve, method by method."""
    return [
        Task(key=key_of(cell, method), problem=problem_of(cell, seed=seed), method=method, limit_s=limit_s)
        for method in methods
        for cell in cells
        if is_built(cell, method)
    ]


def rows(
    cells: Sequence[Cell], methods: Sequence[str], measured: Sequence[Measured], *, seed: int = 0
) -> list[dict[str, Any]]:
    """One dictionary of `COLUMNS` for each cell and method; the paper's figures beside `ilp` and `restricted`."""
    by_key = {m.key: m for m in measured}
    found = []
    for cell in cells:
        problem = problem_of(cell, seed=seed)
        for method in methods:
            row: dict[str, Any] = {"nodes": cell.nodes, "k": cell.k, "method": method, "status": "not built"}
            m = by_key.get(key_of(cell, method))
            if m is not None:
                row |= {"status": m.status, "our_seconds": m.seconds, "F": m.F, "gap": m.gap}
                row |= {"peak_mb": m.peak_mb, "why": m.why}
                row["our_variables_k"] = None if m.variables is None else m.variables / 1000
            if method == "ilp":
                row |= {"paper_variables_k": cell.variables_k, "paper_seconds": cell.seconds}
                row["our_variables_k"] = variable_count(problem) / 1000
            elif method == "restricted":
                row |= {
                    "paper_variables_k": cell.restricted_variables_k,
                    "paper_seconds": cell.restricted_seconds,
                    "our_variables_k": restricted_count(problem) / 1000,
                }
            found.append(row)
    return found


def draw(path: Path, found: Sequence[dict[str, Any]], *, limit_s: float) -> None:
    """Seconds over nodes, one panel for each k, one line for each method; a cross where it was not finished."""
    from leeward.policies.edrp.experiments.pictures import COLOURS, figure_of, plain, save

    figure, axes = figure_of(1, 3, size=(13, 4.6), sharey=True)
    for axis, k in zip(axes.flat, (2, 3, 4), strict=True):
        mine = [row for row in found if row["k"] == k]
        paper = [(cell.nodes, cell.seconds) for cell in PAPER if cell.k == k and cell.seconds is not None]
        axis.plot(*zip(*paper, strict=True) if paper else ((), ()), "o--", color="#999999", label="CPLEX, paper")
        for method in dict.fromkeys(row["method"] for row in found):
            colour = COLOURS.get(method, "black")
            rows = [row for row in mine if row["method"] == method and row.get("our_seconds") is not None]
            ended = [row for row in rows if row["status"] in ("optimal", "infeasible") or method == "restricted"]
            axis.plot([r["nodes"] for r in ended], [r["our_seconds"] for r in ended], "o-", color=colour, label=method)
            open_ = [r["nodes"] for r in rows if r not in ended and r["status"] != "refused"]
            axis.plot(open_, [limit_s] * len(open_), "x", color=colour, markersize=9)
        axis.set(yscale="log", xlabel="nodes", xticks=(8, 12, 16, 20, 24), xlim=(7, 25))
        axis.set_title(f"k = {k}", fontsize=11)
        plain(axis)
    axes.flat[0].set_ylabel("seconds")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        f"EDRP, Table IV: seconds to solve (x: not finished within {limit_s:g} s; nothing: too large to build)",
        fontsize=12,
    )
    save(figure, path)
