"""EDRP solved: our search against the paper's programme, on the same instances, in one run.

    python tests/bench/edrp.py [--quick] [--only sizes,large] [--resume] [--date 2026-01-31]

Groups, in this order: `sizes` (8 to 24 nodes, k = 2, 3, 4, with and without traffic cost and present deployment), then
`ilp` and `compact` on the same instances (one seed of each unless --all-seeds), `large` (50 to 200 nodes, k = 4),
`huge` (500 and 1,000 nodes, what a minute gives) and `operators` (3 to 40 as chain, tree and dense graph, 24 nodes).
Every solve is in another process, which is ended when it overruns; a group that has used up its budget skips the rest
and says so.  Prints tables and writes `out/bench/edrp.json` and `edrp.png` as it goes; --resume keeps what is there.
Exit code 1 if two methods disagree on an optimum; speed is reported only.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edrp_tables import draw, print_tables, summaries
from rich.console import Console

from leeward.policies.edrp.experiments.instances import SHAPES, graph_instance, reference_instance
from leeward.policies.edrp.experiments.isolated import Measured, Task, measure
from leeward.policies.edrp.milp.ilp import VARIABLE_LIMIT, variable_count
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.settings import METHODS

ROOT = Path(__file__).resolve().parents[2]
AGREE = 3e-6
GROUPS = ("sizes", "ilp", "compact", "large", "huge", "operators")
VARIANTS = tuple((traffic, present) for traffic in (False, True) for present in (False, True))
NOTES = (
    "seconds: of the solve alone, in a process whose code is loaded",
    "instances: scheduler/leeward/policies/edrp/experiments/instances.py",
    "sizes, large, huge: the reference application at 200 tuples/s, source and sink pinned at random",
    "ilp and compact: one seed for each cell and variant unless --all-seeds; cheapest cells first; a cell is skipped "
    "when a smaller one of its k and variant overran the limit, or when the group's budget was used up",
    "operators: two seeds; larger ones of a shape and variant are skipped once two overran the limit",
    "ilp is not built above the model's variable limit: status 'not built'",
    "peak_mb: highest resident memory of the process so far; a process solves the seeds and variants of one cell",
    "limit: a solve that was ended, or that stopped there with a gap",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance and one method; its key names it in the results."""

    group: str
    method: str
    nodes: int
    limit_s: float
    seed: int = 0
    k: int = 3
    traffic: bool = False
    present: bool = False
    shape: str = "reference"
    operators: int = 8

    @property
    def key(self) -> str:
        variant = f"{'traffic' if self.traffic else '-'} {'present' if self.present else '-'}"
        what = f"{self.shape} {self.operators} n{self.nodes} k{self.k}"
        return f"{self.group} {self.method} {what} {variant} s{self.seed}"

    @property
    def line(self) -> tuple[object, ...]:
        """Cases that differ in size alone."""
        variant = (self.traffic, self.present)
        return (self.method, self.shape, *variant) if self.group == "operators" else (self.method, self.k, *variant)

    def problem(self) -> Problem:
        if self.shape == "reference":
            return reference_instance(self.nodes, self.k, traffic=self.traffic, present=self.present, seed=self.seed)
        return graph_instance(self.shape, self.operators, self.nodes, traffic=self.traffic, seed=self.seed)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sizes of a run."""

    nodes: tuple[int, ...] = (8, 12, 16, 20, 24)
    ks: tuple[int, ...] = (2, 3, 4)
    seeds: int = 5
    large: tuple[int, ...] = (50, 100, 200)
    large_seeds: int = 5
    huge: tuple[int, ...] = (500, 1000)
    operators: tuple[int, ...] = (3, 5, 8, 12, 16, 20, 25, 30, 40)
    ilp_limit_s: float = 300.0
    limit_s: float = 60.0
    operators_limit_s: float = 10.0
    #: Seconds for each group, after which what is left of it is skipped.
    budget_s: dict[str, float] = field(
        default_factory=lambda: {
            "sizes": 600.0,
            "ilp": 900.0,
            "compact": 300.0,
            "large": 480.0,
            "huge": 600.0,
            "operators": 300.0,
        }
    )


QUICK = Plan(
    nodes=(8, 12), ks=(2, 3), seeds=2, large=(50,), large_seeds=1, huge=(200,), operators=(3, 8, 16),
    ilp_limit_s=20.0, limit_s=10.0, operators_limit_s=5.0,
    budget_s={"sizes": 60.0, "ilp": 40.0, "compact": 30.0, "large": 30.0, "huge": 30.0, "operators": 30.0},
)  # fmt: skip


def main() -> None:
    options = _options()
    plan = QUICK if options.quick else Plan()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 118)
    out = options.out
    results: dict[str, dict[str, Any]] = {}
    if options.resume and out.exists():
        results = {r["key"]: r for r in json.loads(out.read_text())["results"]}
    header = _header(options)
    for group in options.only:
        budget = float("inf") if options.all_seeds else plan.budget_s[group]
        for result in _run_group(cases(group, plan, options), budget, results, console):
            results[result["key"]] = result
            _write(out, header, results)
    _write(out, header, results)
    print_tables(console, list(results.values()))
    draw(out.with_suffix(".png"), list(results.values()))
    console.print(f"{out}, {out.with_suffix('.png').name}")
    wrong = disagreements(results.values())
    for line in wrong:
        console.print(f"[red]{line}[/red]")
    raise SystemExit(1 if wrong else 0)


def cases(group: str, plan: Plan, options: argparse.Namespace) -> list[Case]:
    """A group's cases in the order in which they run."""
    own, grid = options.method, [(n, k, *variant) for n in plan.nodes for k in plan.ks for variant in VARIANTS]
    if group == "sizes":
        return [
            Case(group=group, method=own, nodes=n, k=k, traffic=t, present=p, seed=seed, limit_s=plan.limit_s)
            for n, k, t, p in grid
            for seed in range(plan.seeds)
        ]
    if group in ("ilp", "compact"):
        if group not in METHODS:
            return []
        limit = options.ilp_limit or plan.ilp_limit_s
        found = [
            Case(group=group, method=group, nodes=n, k=k, traffic=t, present=p, seed=seed, limit_s=limit)
            for n, k, t, p in grid
            for seed in range(plan.seeds if options.all_seeds else 1)
        ]
        return sorted(found, key=lambda case: (variable_count(case.problem()), case.key))
    if group == "large":
        return [
            Case(group=group, method=own, nodes=n, k=4, traffic=t, present=p, seed=seed, limit_s=plan.limit_s)
            for seed in range(plan.large_seeds)  # outermost: a budget that runs out leaves all sizes covered
            for n in plan.large
            for t, p in VARIANTS
        ]
    if group == "huge":
        return [
            Case(group=group, method=own, nodes=n, k=4, traffic=t, present=p, limit_s=plan.limit_s)
            for n in plan.huge
            for t, p in VARIANTS
        ]
    return [
        Case(group=group, method=own, shape=shape, operators=m, nodes=24, traffic=t, seed=seed,
             limit_s=plan.operators_limit_s)
        for m in plan.operators for shape in SHAPES for t in (False, True) for seed in range(2)
    ]  # fmt: skip


def _run_group(todo: list[Case], budget_s: float, known: dict[str, Any], console: Console) -> Iterator[dict[str, Any]]:
    """Runs what is not known yet; cases of one cell share a process, those of `ilp` do not."""
    began = time.monotonic()
    overran: Counter[tuple[object, ...]] = Counter()
    for cell in _cells([case for case in todo if case.key not in known or known[case.key]["status"] == "skipped"]):
        run = []
        for case in cell:
            reason = _reason_to_skip(case, overran, time.monotonic() - began > budget_s)
            if reason is None:
                run.append(case)
            else:
                yield _as_result(case, Measured(key=case.key, status=reason[0], seconds=0.0, why=reason[1]))
        tasks = [Task(key=c.key, problem=c.problem(), method=c.method, limit_s=c.limit_s) for c in run]
        for case, measured in zip(run, measure(tasks, each_alone=cell[0].group == "ilp"), strict=True):
            if measured.status not in ("optimal", "infeasible"):
                overran[case.line] += 1
            console.print(f"{case.key}: {measured.status} {measured.seconds:.2f} s", style="dim")
            yield _as_result(case, measured)


def _cells(todo: list[Case]) -> Iterable[list[Case]]:
    """Cases that share a process: one seed and variant of `ilp`, else all of one size."""
    cells: dict[object, list[Case]] = {}
    for case in todo:
        alone = case.group in ("ilp", "large", "huge")
        cells.setdefault(case.key if alone else (case.nodes, case.k, case.operators, case.shape), []).append(case)
    return cells.values()


def _reason_to_skip(case: Case, overran: Counter[tuple[object, ...]], out_of_budget: bool) -> tuple[str, str] | None:
    if case.group == "ilp" and variable_count(case.problem()) > VARIABLE_LIMIT:
        return "not built", "more variables than the model may have"
    if overran[case.line] >= {"ilp": 1, "compact": 1, "operators": 2}.get(case.group, math.inf):
        return "skipped", "smaller ones overran the limit"
    return ("skipped", "the group's budget was used up") if out_of_budget else None


def _as_result(case: Case, measured: Measured) -> dict[str, Any]:
    limited = measured.status in ("feasible", "unknown") and measured.seconds >= 0.9 * case.limit_s
    result = asdict(case) | asdict(measured) | {"proven": measured.status in ("optimal", "infeasible")}
    return result | {"limited": limited or measured.status == "limit"}


def disagreements(results: Iterable[dict[str, Any]]) -> list[str]:
    """Instances for which two methods have proven different optima."""
    seen: dict[tuple[object, ...], tuple[str, float | None]] = {}
    wrong = []
    for r in (r for r in results if r["proven"] and r["shape"] == "reference"):
        instance = (r["nodes"], r["k"], r["traffic"], r["present"], r["seed"])
        method, value = seen.setdefault(instance, (r["method"], r["F"]))
        if (value is None) != (r["F"] is None) or (value is not None and abs(value - r["F"]) > AGREE):
            wrong.append(f"{r['key']}: F = {r['F']}, but {method} says {value}")
    return wrong


def _write(path: Path, header: dict[str, Any], results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = header | {"summary": summaries(list(results.values())), "results": list(results.values())}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document, indent=1) + "\n")
    part.replace(path)


def _header(options: argparse.Namespace) -> dict[str, Any]:
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "what": "EDRP: seconds, proof and memory of each method",
        "command": " ".join(["python", "tests/bench/edrp.py", *sys.argv[1:]]),
        "date": options.date or datetime.now(UTC).date().isoformat(),
        "seed": "instances are made from their size, variant and seed 0, 1, ...; the methods take seed 0",
        "machine": {"cpu": cpu[0].partition(": ")[2] if cpu else platform.machine(), "cores": os.cpu_count()},
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "numba", "cvxpy", "highspy")},
        "notes": NOTES,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, short limits: two or three minutes")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(GROUPS), help=f"of {GROUPS}")
    parser.add_argument("--method", default="exact", choices=METHODS, help="our own method")
    parser.add_argument("--all-seeds", action="store_true", help="ilp and compact on every seed, no budgets: hours")
    parser.add_argument("--ilp-limit", type=float, help="seconds for one solve of ilp or compact")
    parser.add_argument("--resume", action="store_true", help="keep the results that the file has")
    parser.add_argument("--date", help="for the file; today if not given")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench" / "edrp.json")
    options = parser.parse_args()
    if unknown := set(options.only) - set(GROUPS):
        parser.error(f"--only: no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    return options


if __name__ == "__main__":
    main()
