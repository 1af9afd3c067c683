"""`leeward explain`: why a deployment is what it is, as text, JSON or a page of its own; of an instance, or of a
topology that runs.

The JSON is that of `leeward solve` and of `policies/edrp/questions/document.py`; the exit codes are the same.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from leeward.cli._common import EXIT_BAD_INPUT, EXIT_INTERRUPTED
from leeward.cli._output import Output, document_text
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    NimbusOption,
    RedisOption,
    SetOption,
    ZooKeeperOption,
    addresses_of,
    settings_of,
)
from leeward.cli.solve import EXIT_CODES, check_options

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.core.model import ClusterView
    from leeward.core.settings import Chosen
    from leeward.policies.edrp.problem.outcome import Infeasible, Unknown
    from leeward.policies.edrp.problem.problem import Problem
    from leeward.policies.edrp.questions.explain import Explanation


class View(StrEnum):
    """How the explanation is given."""

    text = "text"
    json = "json"
    yaml = "yaml"
    html = "html"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("explain", epilog="Example: leeward explain query1 --output html --out out/explain.html")(
        explain_command
    )


def explain_command(
    what: Annotated[str, typer.Argument(metavar="FILE.json|TOPOLOGY", help="An EDRP instance, or a running topology.")],
    output: Annotated[View, typer.Option(help="How to give it.")] = View.text,
    out: Annotated[Path | None, typer.Option(help="Write there instead of to standard output.")] = None,
    method: Annotated[str, typer.Option(help="How to solve it, as for `leeward solve`.")] = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds for everything; unanswered questions are marked.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the solver; a run with the same seed repeats.")] = 0,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    options: SetOption = None,
    timeout: Annotated[float, typer.Option(help="Of a topology: seconds until it is measured.")] = 120.0,
) -> None:
    """Say why the best deployment is what it is, and what any other would cost.

    Of a running topology: by its measurements and its present deployment, with the settings of -o and --config.
    """
    from leeward.core.errors import LeewardError
    from leeward.policies.edrp.problem.document import read_problem

    try:
        check_options(time_limit, 0.0, seed)
        told: dict[str, Any] = {}
        if what.endswith(".json") or Path(what).is_file():
            problem = read_problem(Path(what))
        else:
            addresses = addresses_of(nimbus, zookeeper, redis, cluster)
            problem, told = running_problem(what, addresses, settings_of(config, options or []).of(what), timeout)
        result = _explain(problem, method, time_limit, seed)
    except LeewardError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    from leeward.policies.edrp.questions.running import explanation_document

    document = explanation_document(problem, result) | told
    try:
        if out is None:
            write(document, output, sys.stdout)
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("w", encoding="utf-8") as stream:
                write(document, output, stream)
    except OSError as error:
        typer.echo(f"error: --out = {str(out)!r}: cannot be written: {error}. Name another file.", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None
    raise typer.Exit(EXIT_CODES[document["status"]])


def running_problem(
    topology: str, addresses: Addresses, chosen: Chosen, timeout: float
) -> tuple[Problem, dict[str, Any]]:
    """The problem that the policy of the papers would solve for it now, and what of it was learnt.

    Remarks go to standard error.

    Raises NotReadyError, ConfigError, ClusterRefusedError.
    """
    from leeward.cli._once import look_once
    from leeward.core.learnt_told import learnt_by
    from leeward.core.options import read
    from leeward.policies.edrp.questions.running import problem_of
    from leeward.policies.edrp.settings import EdrpSettings

    read(EdrpSettings, chosen.policies.get("edrp", {}), where="edrp.")  # refused before it is measured

    def made(view: ClusterView) -> dict[str, Any]:
        problem, remarks = problem_of(view, chosen)
        return {"problem": problem, "remarks": remarks, "learnt": learnt_by(view)}

    found = look_once(topology, addresses, chosen.service, timeout, made)
    for remark in found["remarks"]:
        typer.echo(f"{remark}", err=True)
    return found["problem"], found["learnt"]


def _explain(problem: Problem, method: str, time_limit: float, seed: int) -> Explanation | Infeasible | Unknown:
    from rich.console import Console
    from rich.markup import escape

    from leeward.policies.edrp.questions.explain import explain

    console, asked = Console(stderr=True), 0
    with console.status("solving") as status:

        def notify(question: str) -> None:
            nonlocal asked
            asked += 1
            status.update(f"question {asked}: {escape(question)}")

        return explain(problem, method=method, time_limit_s=time_limit, seed=seed, notify=notify)


def write(document: dict[str, Any], view: View, stream: TextIO) -> None:
    """Prints the document as asked for; without a deployment the text and the page say why there is none."""
    if view in (View.json, View.yaml):
        stream.write(document_text(document, Output(view)))
    elif view is View.html:
        from leeward.policies.edrp.views.explain_page import page

        stream.write(page(document))
    else:
        from leeward.policies.edrp.views.explain_text import print_explanation

        print_explanation(document, stream, width=None if stream.isatty() else 160)
