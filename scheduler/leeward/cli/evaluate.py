"""`leeward evaluate SYSTEM FILE`: a paper's quantities for one given instance and placement, and nothing else.

The JSON keys and the exit codes are stable: 0 with the quantities, 2 bad input.  A broken constraint is a quantity.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption, document_text, show

if TYPE_CHECKING:
    from leeward.policies.edge_cloud.model.document import Case


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    systems = typer.Typer(no_args_is_help=True, help="A paper's quantities for a given instance and placement.")
    systems.command("edge-cloud")(edge_cloud_command)
    systems.command("bimodal")(bimodal_command)
    systems.command("dssp")(dssp_command)
    systems.command("agiledart")(agiledart_command)
    app.add_typer(systems, name="evaluate")


def edge_cloud_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="An instance of edge and cloud, with placement.")],
    output: OutputOption = Output.table,
) -> None:
    """Makespans, rates, loads and broken constraints of dataflows on edges and cloud machines.

    Example: leeward evaluate edge-cloud case.json --output json
    """
    from leeward.policies.edge_cloud.model.document import read_case

    with refusing():
        case = read_case(file)
        document = edge_cloud_document(case)
    if output is Output.table:
        print_table(case, document)
    else:
        typer.echo(document_text(document, output), nl=False)


def bimodal_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="A network with dedicated links, and a task.")],
    output: OutputOption = Output.table,
) -> None:
    """The cheapest map of a task onto servers and dedicated links: by messages between them, and by a search.

    Example: leeward evaluate bimodal map.json --output json
    """
    from leeward.policies.bimodal.mapping.evaluate import evaluate
    from leeward.policies.bimodal.model.document import read_instance

    with refusing():
        document = evaluate(read_instance(file))
    if output is not Output.table:
        typer.echo(document_text(document, output), nl=False)
        return
    for name, found in document.items():
        typer.echo(f"{name.replace('_', ' ')}: " + (_map_line(found) if found else "no map"))


def dssp_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="A query, and the nodes of one of its tasks.")],
    output: OutputOption = Output.table,
) -> None:
    """Percentile, unloaded latency, queueing deadline and affordable execution time of a query that fans out.

    Example: leeward evaluate dssp case.json --output json
    """
    from leeward.policies.dssp.model.document import evaluate, read_case

    with refusing():
        document = evaluate(read_case(file))
    if output is not Output.table:
        typer.echo(document_text(document, output), nl=False)
        return
    for name, found in document.items():
        if name != "violations" and found is not None:
            unit = "%" if name == "task_percent" else "s"
            typer.echo(f"{name.removesuffix('_s').replace('_', ' ')}: {found:.6g} {unit}")
    for name in document["violations"]:
        typer.echo(f"broken: {name.replace('_', ' ')}")


def agiledart_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="Scaling, recovery, paths or placement.")],
    output: OutputOption = Output.table,
) -> None:
    """Health and instances of an operator, recovery times, costs of links, hops and schedulers of an overlay.

    Example: leeward evaluate agiledart case.json --output json
    """
    from leeward.policies.agiledart.document import read_case
    from leeward.policies.agiledart.evaluate import evaluate

    with refusing():
        document = evaluate(read_case(file))
    if output is not Output.table:
        typer.echo(document_text(document, output), nl=False)
        return
    for name, section in document.items():
        typer.echo(f"{name}:")
        show(_for_people(section), output)


def _for_people(value: Any) -> Any:
    """Numbers with six digits, and a dash for those that are infinite or undefined."""
    if isinstance(value, dict):
        return {name: _for_people(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_for_people(inner) for inner in value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else value


def _map_line(found: dict[str, Any]) -> str:
    paths = " | ".join(" ".join(f"{a}-{b}" for a, b in path) or "." for path in found["paths"])
    return f"cost {found['cost']:g}, services on servers {found['servers']}, hops {paths}"


def edge_cloud_document(case: Case) -> dict[str, Any]:
    """The stable JSON form: the format's `expected`, and `after` if the case has a change."""
    from leeward.policies.edge_cloud.model.document import change_to_json, evaluation_to_json
    from leeward.policies.edge_cloud.model.evaluate import change, evaluate

    document = evaluation_to_json(evaluate(case.instance, case.placement))
    if case.after is not None:
        price = change(case.instance, case.placement, case.after, case.migration_s)
        document["after"] = {
            "placement": [list(row) for row in case.after],
            "expected": evaluation_to_json(evaluate(case.instance, case.after)),
            "eta": case.migration_s,
            **change_to_json(price),
        }
    return document


def print_table(case: Case, document: dict[str, Any]) -> None:
    """The same for people: a line for each dataflow and each resource that has a load."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    _print_evaluation(console, case, document)
    if (after := document.get("after")) is not None:
        shared = after["stabilization_shared"]
        calm = "never stable again" if shared is None else f"stable after {shared:.3f} s"
        console.print(f"after {after['migrations']} migrations, {calm}:")
        _print_evaluation(console, case, after["expected"])


def _print_evaluation(console: Any, case: Case, found: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    dataflows = Table("dataflow", "queries", "makespan ms", "results/s", box=None)
    for dataflow, makespan, w_out in zip(case.instance.dataflows, found["makespans"], found["w_out"], strict=True):
        results = sum(w for query, w in zip(dataflow.queries, w_out, strict=True) if query.kind == "sink")
        dataflows.add_row(escape(dataflow.name), str(len(dataflow.queries)), f"{1000 * makespan:.3f}", f"{results:.1f}")
    console.print(dataflows)
    resources = Table("resource", "service time ms", "energy mAh", box=None)
    for r, (service, energy) in enumerate(zip(found["service_time"], found["energy_mAh"], strict=True)):
        if service > 0:
            resources.add_row(str(r), f"{1000 * service:.3f}", "" if energy is None else f"{energy:.1f}")
    console.print(resources)
    console.print(f"total {1000 * found['total']:.3f} ms")
    for name, *where in found["violations"]:
        places = ("resource",) if len(where) == 1 else ("dataflow", "query")
        at = ", ".join(f"{place} {number}" for place, number in zip(places, where, strict=True))
        console.print(f"broken: {name.replace('_', ' ')}: {at}")
