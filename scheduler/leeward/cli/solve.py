"""`leeward solve`: one instance in, one verified deployment (or the reason why there is none) out.

The JSON keys and the exit codes are stable: 0 with a deployment, 3 infeasible, 4 unknown, 2 bad input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption, document_text
from leeward.policies.edrp.settings import METHODS

EXIT_CODES = {"optimal": 0, "feasible": 0, "infeasible": 3, "unknown": 4}


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("solve")(solve_command)


def solve_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="An EDRP instance.")],
    method: Annotated[str, typer.Option(help=f"How to solve it: {', '.join(METHODS)}.")] = "auto",
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which the best so far is given; 60 for auto, else none, if not set."),
    ] = None,
    gap: Annotated[float, typer.Option(help="Relative gap at which a result counts as optimal.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the solver; a run with the same seed repeats.")] = 0,
    solver: Annotated[
        str | None, typer.Option(help="MILP solver of ilp, compact, restricted, as cvxpy names it (HIGHS).")
    ] = None,
    output: OutputOption = Output.table,
) -> None:
    """Find the best placement and number of replicas of each operator.

    Example: leeward solve instance.json --time-limit 10 --gap 0.01 --output json
    """
    from leeward.policies.edrp.methods import solve
    from leeward.policies.edrp.problem.document import read_problem
    from leeward.policies.edrp.problem.outcome_document import outcome_document

    with refusing():
        check_options(time_limit, gap, seed)
        problem = read_problem(file)
        with _busy(f"{method}: {problem.name or file.name}"):
            outcome = solve(problem, method=method, time_limit_s=time_limit, seed=seed, gap=gap, solver=solver)
    document = outcome_document(problem, outcome)
    if output is Output.table:
        print_table(document)
    else:
        typer.echo(document_text(document, output), nl=False)
    raise typer.Exit(EXIT_CODES[document["status"]])


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Shows what is going on and for how long, on a terminal's stderr; clears it at the end."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(what, total=None)
        yield


def check_options(time_limit: float | None, gap: float, seed: int) -> None:
    """Raises `FieldError` for an option that makes no sense."""
    from leeward.core.fields import FieldError

    if time_limit is not None and not (math.isfinite(time_limit) and time_limit > 0):
        raise FieldError("--time-limit", time_limit, "must be more than 0", remedy="give seconds")
    if not 0 <= gap < 1:
        raise FieldError("--gap", gap, "must be 0 or more and less than 1", remedy="0.01 means one per cent")
    if not 0 <= seed < 2**31:
        raise FieldError("--seed", seed, "must be from 0 to 2147483647", remedy="give such a number")


def print_table(document: dict[str, Any]) -> None:
    """The same for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{document['status']}[/bold]  {document['name']}", highlight=False)
    for reason in document["why"] or ():
        console.print(f"  {reason}", highlight=False, markup=False)
    if document["deployment"] is not None:
        table = Table("operator", "replicas", "nodes")
        for operator, placed in document["deployment"].items():
            where = ", ".join(node if count == 1 else f"{node} x{count}" for node, count in placed.items())
            table.add_row(operator, str(sum(placed.values())), where)
        console.print(table)
        gap = "unknown" if document["gap"] is None else f"{100 * document['gap']:.4g} %"
        console.print(
            f"F {document['F']:.6f} (gap {gap})   R {1000 * document['R']:.1f} ms   "
            f"C {document['C']:.2f} $/h   T_D {document['T_D']:.3f} s",
            highlight=False,
        )
    size = "" if document["variables"] is None else f", {document['variables']} binary variables"
    console.print(f"{document['method']}: {document['seconds']:.2f} s{size}", highlight=False)
