"""`leeward pareto`: the exact trade-off of response time against cost, as table, JSON, CSV and picture.

Exit codes: 0 with a curve, 3 infeasible, 4 unknown, 2 bad input, 130 when stopped (what was found is printed).
JSON keys (stable): name, method, status (complete | unfinished | stopped | infeasible | unknown), why, seconds,
curves [{T_D_max, complete, points [{R, C, T_D, F, replicas, proven, deployment}]}], and `present` and `optimum`
(what the problem's own weights choose) as points without `proven`, or null.
"""

from __future__ import annotations

import csv
import math
import sys
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import EXIT_BAD_INPUT, refusing
from leeward.cli._output import Output, document_text
from leeward.cli.solve import check_options

if TYPE_CHECKING:
    from leeward.policies.edrp.problem.evaluate import Metrics
    from leeward.policies.edrp.problem.outcome import Infeasible, Unknown
    from leeward.policies.edrp.problem.problem import Problem
    from leeward.policies.edrp.problem.values import Deployment
    from leeward.policies.edrp.questions.pareto import Point

EXIT_CODES = {"complete": 0, "unfinished": 0, "infeasible": 3, "unknown": 4, "stopped": 130}
COLUMNS = ("T_D_max", "R", "C", "T_D", "F", "replicas", "proven")
PICTURES = (".png", ".svg")
#: Seconds for each solve at first, and at most that share of the time limit.
FIRST_S, SHARE = 3.0, 0.05


class Form(StrEnum):
    """How the curves are printed."""

    table = "table"
    json = "json"
    yaml = "yaml"
    csv = "csv"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("pareto", epilog="Example: leeward pareto instance.json --downtime 1 --picture out/pareto.svg")(
        pareto_command
    )


def pareto_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="An EDRP instance.")],
    points: Annotated[int | None, typer.Option(help="At most so many points: both ends, then the widest gaps.")] = None,
    downtime: Annotated[
        list[float] | None, typer.Option(help="A curve for this T_D,max in s (repeat it); else the problem's own.")
    ] = None,
    output: Annotated[Form, typer.Option(help="How to print the curves.")] = Form.table,
    picture: Annotated[Path | None, typer.Option(help="Also draw them: a .png or .svg file.")] = None,
    method: Annotated[str, typer.Option(help="How to solve, as for `leeward solve`.")] = "auto",
    time_limit: Annotated[float | None, typer.Option(help="Seconds for everything.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the solver; a run with the same seed repeats.")] = 0,
) -> None:
    """Show every deployment that no other beats in both response time and cost."""
    from leeward.policies.edrp.problem.document import read_problem

    with refusing():
        check_options(time_limit, 0.0, seed)
        _check_own_options(points, downtime, picture)
        problem = read_problem(file)
        levels = list(downtime or [problem.bounds.d])
        document = _trace(problem, levels, points, method, time_limit, seed)
    _print(document, output)
    if picture is not None and any(curve["points"] for curve in document["curves"]):
        from leeward.policies.edrp.views.pareto_picture import draw

        try:
            draw(document, picture)
        except OSError as error:
            typer.echo(f"error: --picture = {str(picture)!r}: cannot be written: {error}. Name another.", err=True)
            raise typer.Exit(EXIT_BAD_INPUT) from None
        typer.echo(f"written: {picture}", err=True)
    raise typer.Exit(EXIT_CODES[document["status"]])


def _check_own_options(points: int | None, downtime: list[float] | None, picture: Path | None) -> None:
    from leeward.core.fields import FieldError

    if points is not None and points < 2:
        raise FieldError("--points", points, "must be 2 or more", remedy="a curve has two ends")
    for level in downtime or ():
        if not (math.isfinite(level) and level > 0):
            raise FieldError("--downtime", level, "must be more than 0", remedy="give seconds")
    if picture is not None and picture.suffix not in PICTURES:
        raise FieldError(
            "--picture", str(picture), "is neither a PNG nor an SVG", remedy=f"end it in {' or '.join(PICTURES)}"
        )  # fmt: skip


def _trace(
    problem: Problem, levels: list[float], points: int | None, method: str, time_limit: float | None, seed: int
) -> dict[str, Any]:
    """All curves; Ctrl-C ends it with what there is."""
    from rich.console import Console

    from leeward.policies.edrp.methods import solve
    from leeward.policies.edrp.questions.pareto import Point, Tracer, unbeaten

    started = time.monotonic()
    deadline = math.inf if time_limit is None else started + time_limit
    each_s = min(FIRST_S, SHARE * (deadline - started))
    curves: list[dict[str, Any]] = [{"T_D_max": level, "complete": False, "points": []} for level in levels]
    document: dict[str, Any] = {"name": problem.name, "method": method, "why": None}
    optimum, stopped, found = None, False, 0
    with Console(stderr=True).status("solving") as status:

        def notify(step: str) -> None:
            status.update(f"{found} points; {step}")

        try:
            for curve in curves:
                bounded = replace(problem, bounds=replace(problem.bounds, d=curve["T_D_max"]))
                tracer = Tracer(
                    problem=bounded, method=method, seed=seed, deadline=deadline, each_s=each_s, notify=notify
                )
                unsolved, seen = None, []
                for one in tracer.trace(points):
                    if isinstance(one, Point):
                        seen.append(one)
                        found += 1
                        curve["points"] = [_point(problem, point) for point in unbeaten(seen)]
                    else:
                        unsolved = one
                        document["why"] = [one.why] if isinstance(one.why, str) else list(one.why)
                curve["complete"] = _settle(curve["points"], unsolved, whole=points is None)
            left = None if time_limit is None else max(each_s, deadline - time.monotonic())
            notify("the optimum under the problem's own weights")
            chosen = solve(problem, method=method, time_limit_s=left, seed=seed)
            optimum = getattr(chosen, "deployment", None)
        except KeyboardInterrupt:
            stopped = True
    return document | {
        "status": _status(curves, stopped),
        "seconds": time.monotonic() - started,
        "curves": curves,
        "present": _at(problem, problem.current),
        "optimum": _at(problem, optimum),
    }


def _settle(points: list[dict[str, Any]], unsolved: Infeasible | Unknown | None, *, whole: bool) -> bool:
    """Whether a curve is complete; if every gap of a whole one was searched to the end, its points are proven."""
    from leeward.policies.edrp.problem.outcome import Infeasible

    if unsolved is not None:
        return isinstance(unsolved, Infeasible)
    for point in points:
        point["proven"] = point["proven"] or whole
    return all(point["proven"] for point in points)


def _status(curves: list[dict[str, Any]], stopped: bool) -> str:
    if stopped:
        return "stopped"
    complete = all(curve["complete"] for curve in curves)
    if any(curve["points"] for curve in curves):
        return "complete" if complete else "unfinished"
    return "infeasible" if complete else "unknown"


def _values(metrics: Metrics, deployment: Deployment) -> dict[str, Any]:
    replicas = sum(sum(placed.values()) for placed in deployment.values())
    return {"R": metrics.R, "C": metrics.C, "T_D": metrics.T_D, "F": metrics.F, "replicas": replicas}


def _point(problem: Problem, point: Point) -> dict[str, Any]:
    from leeward.policies.edrp.problem.evaluate import evaluate

    metrics = evaluate(problem, point.deployment)  # F under the problem's own T_D,max
    return _values(metrics, point.deployment) | {
        "proven": point.proven,
        "deployment": {name: dict(placed) for name, placed in point.deployment.items()},
    }


def _at(problem: Problem, deployment: Deployment | None) -> dict[str, Any] | None:
    """Where a deployment stands; None without one, or where a replica cannot keep up."""
    from leeward.policies.edrp.problem.evaluate import evaluate

    if deployment is None:
        return None
    metrics = evaluate(problem, deployment)
    if math.isinf(metrics.R):
        return None
    return _values(metrics, deployment) | {"deployment": {name: dict(placed) for name, placed in deployment.items()}}


def _print(document: dict[str, Any], form: Form) -> None:
    if form is Form.csv:
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(COLUMNS)
        for curve in document["curves"]:
            for point in curve["points"]:
                values = curve | point
                rows.writerow([str(values[key]).lower() if key == "proven" else values[key] for key in COLUMNS])
    elif form is Form.table:
        _print_table(document)
    else:
        sys.stdout.write(document_text(document, Output(form)))


def _print_table(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{document['status']}[/bold]  {escape(document['name'])}", highlight=False)
    for reason in document["why"] or ():
        console.print(f"  {reason}", highlight=False, markup=False)
    for curve in document["curves"]:
        if not curve["points"]:
            continue
        end = "" if curve["complete"] else ", not complete"
        table = Table(title=f"T_D up to {curve['T_D_max']:g} s{end}", title_justify="left")
        for name in ("R", "C", "T_D", "F", "replicas", ""):
            table.add_column(name, justify="right")
        for point in curve["points"]:
            table.add_row(*_cells(point), "" if point["proven"] else "not proven")
        console.print(table)
    for key, name in (("optimum", "chosen by the problem's weights"), ("present", "present deployment")):
        if document[key] is not None:
            r, c, d, f, replicas = _cells(document[key])
            console.print(f"{name}: R {r}  C {c}  T_D {d}  F {f}, {replicas} replicas", highlight=False)
    console.print(f"{document['method']}: {document['seconds']:.2f} s", highlight=False)


def _cells(point: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{1000 * point['R']:.3f} ms", f"{point['C']:.3f} $/h", f"{point['T_D']:.3f} s", f"{point['F']:.6f}",
        str(point["replicas"]),
    )  # fmt: skip
