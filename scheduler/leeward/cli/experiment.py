"""`leeward experiment ...`: the papers' tables from our code, beside the figures that were printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli import _edrp_table5_commands, _experiment_live, _experiment_service
from leeward.cli._common import refusing
from leeward.cli._experiment_live import OUT
from leeward.cli._output import Output, OutputOption
from leeward.local.places import checkout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leeward.policies.edrp.experiments.isolated import Measured, Task
    from leeward.policies.edrp.experiments.network import Network
    from leeward.policies.edrp.experiments.table3 import Assumptions, Row
    from leeward.policies.edrp.experiments.table3_report import Hours
    from leeward.policies.edrp.experiments.table4 import Cell

QUICK_STEP = 15  # minutes from plan to plan
QUICK_LIMIT_S = 5.0
TABLE4_METHODS = ("exact", "compact", "restricted", "ilp")

#: Experiments in simulators (entry points `leeward.experiments`), with their help.
SIMULATED = {
    "agiledart-deployment": "AgileDART, Fig. 8(b): time until applications are placed, by dataflows and by a centre.",
    "agiledart-paths": "AgileDART, Figs. 14 and 16: delays of packets, and when the best of 70 paths is first taken.",
    "agiledart-placement": "AgileDART, Fig. 10: operators of up to 1,000 applications on each of 10,000 nodes.",
    "agiledart-regret": "AgileDART, Fig. 17: the delay that packets lose while planners learn the links.",
    "agiledart-replicas": "AgileDART, ours: routers among the replicas of a bolt, against even rotation.",
    "agiledart-schedulers": "AgileDART, Fig. 10(c): schedulers of zones, hops to one, and the overlay under churn.",
    "agiledart-secant": "AgileDART, Fig. 22: evaluations until the number of instances is found, and rates served.",
    "bimodal-acceptance": "Bi-modal links, Fig. 9(b): tasks accepted, with the public network and without.",
    "bimodal-deviation": "Bi-modal links, Figs. 9(g) to 9(i): deviation from the agreed rate, and longer execution.",
    "bimodal-mapping": "Bi-modal links, Fig. 7: cost and messages of the rules of mapping, and of ours.",
    "bimodal-reallocation": "Bi-modal links, Fig. 8: the platform with re-allocation of links, and without.",
    "dssp-scale": "DSSP, Table VI: the load that each order of queues sustains, up to 18,000 nodes.",
    "dssp-testbed": "DSSP, Table IV: the same on the testbed of 4 domains with 8 nodes.",
    "edge-cloud-makespan": "Edge and cloud, Fig. 3: the sum of makespans of each strategy, without rebalance.",
    "edge-cloud-rebalance": "Edge and cloud, Figs. 4 and 6: the gain of rebalancing, and the moves for it.",
    "edge-cloud-stabilization": "Edge and cloud, Fig. 7: how long moved queries take to catch up.",
    "edge-cloud-time": "Edge and cloud, Fig. 5: planning time of each strategy, up to 10,000 resources.",
}

Method = Annotated[str, typer.Option(help="How to solve: see `leeward solve --help`.")]
Quick = Annotated[bool, typer.Option("--quick", help="A few seconds' worth of it.")]


def register(app: typer.Typer) -> None:
    """Adds `experiment` and its sub-commands to the command line."""
    experiment = typer.Typer(help="The papers' experiments, our figures beside theirs.", no_args_is_help=True)
    experiment.command("edrp-table3")(edrp_table3)
    experiment.command("edrp-table4")(edrp_table4)
    _edrp_table5_commands.register(experiment)
    for name, about in SIMULATED.items():
        experiment.command(name, help=f"{about}\n\nExample: leeward experiment {name} --quick")(_simulated(name))
    _experiment_live.register(experiment)
    _experiment_service.register(experiment)
    app.add_typer(experiment, name="experiment")


def _simulated(name: str) -> Callable[..., None]:
    def command(
        quick: Quick = False,
        seed: Annotated[int, typer.Option(help="Of clusters, dataflows, arrivals and policies.")] = 0,
        output: OutputOption = Output.table,
        out: Annotated[Path, typer.Option(help="Folder for JSON, CSV and picture.")] = OUT,
    ) -> None:
        from leeward.cli._experiment import run_experiment

        with refusing():
            run_experiment(name, seed=seed, quick=quick, output=output, out=out)

    return command


def edrp_table3(
    graph: Annotated[
        Path | None,
        typer.Option(help="GraphML with coordinates. [default: Ans.graphml in $LEEWARD_SHARED or ../shared]"),
    ] = None,
    quick: Quick = False,
    sensitivity: Annotated[bool, typer.Option(help="Also change one assumption at a time.")] = True,
    method: Method = "exact",
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for one plan.")] = 30.0,
    out: Annotated[Path, typer.Option(help="Folder for CSV, JSON and pictures.")] = OUT / "edrp-table3",
) -> None:
    """Table III: one hour of a plan a minute on ANSNET, for four objectives.

    Example: leeward experiment edrp-table3 --graph path/to/Ans.graphml
    """
    from leeward.policies.edrp.experiments import table3, table3_report
    from leeward.policies.edrp.experiments.network import read_graphml

    console = _console()
    with refusing():
        network = read_graphml(graph or default_graph())
        chosen = [v for v in table3.variations() if not quick or v.name in table3.QUICK_VARIATIONS]
        todo = [table3.Assumptions(), *(chosen if sensitivity else ())]
        reference, *varied = _run_all(network, todo, method, time_limit, QUICK_STEP if quick else 1)
    _print_table3(console, reference, varied, method)
    files = table3_report.write(out, reference, varied, network, method=method)
    console.print(f"{', '.join(file.name for file in files)} in {out}", highlight=False)


def edrp_table4(
    quick: Quick = False,
    limit: Annotated[float, typer.Option(min=0.1, help="Seconds for one solve; a longer one is ended.")] = 60.0,
    methods: Annotated[
        str, typer.Option(help="Methods, with commas between. [default: exact, compact, restricted and ilp]")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of the random clusters.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for CSV and picture.")] = OUT / "edrp-table4",
) -> None:
    """Table IV: variables and solving times over nodes and k, ours beside those of CPLEX.

    Example: leeward experiment edrp-table4 --limit 10
    """
    from leeward.policies.edrp.experiments import table4
    from leeward.policies.edrp.experiments.csv_file import write_csv

    cells = [cell for cell in table4.PAPER if not quick or (cell.nodes == 8 and cell.k <= 3)]
    limit = min(limit, QUICK_LIMIT_S) if quick else limit
    with refusing():
        chosen = _methods(methods)
        measured = _measure_all(table4.tasks(cells, chosen, limit_s=limit, seed=seed))
    rows = table4.rows(cells, chosen, measured, seed=seed)
    _print_table4(_console(), cells, chosen, rows, limit)
    write_csv(out / "table4.csv", table4.COLUMNS, rows)
    table4.draw(out / "table4.png", rows, limit_s=limit)
    _console().print(f"table4.csv, table4.png in {out}", highlight=False)


def _methods(text: str) -> list[str]:
    from leeward.core.errors import ConfigError
    from leeward.policies.edrp.settings import METHODS

    if not text:
        return [method for method in TABLE4_METHODS if method in METHODS]
    chosen = [word.strip() for word in text.split(",")]
    for word in chosen:
        if word not in METHODS:
            raise ConfigError(f"--methods: {word!r} is not a method.", remedy=f"Choose of {', '.join(METHODS)}.")
    return chosen


def _measure_all(tasks: list[Task]) -> list[Measured]:
    """All results, `ilp` in a process for each as it needs memory, with progress on standard error."""
    from itertools import chain

    from rich.console import Console
    from rich.progress import Progress

    from leeward.policies.edrp.experiments.isolated import measure

    found = []
    together = [task for task in tasks if task.method != "ilp"]
    alone = [task for task in tasks if task.method == "ilp"]
    tasks = together + alone
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(tasks[0].key, total=len(tasks))
        for measured in chain(measure(together), measure(alone, each_alone=True)):
            found.append(measured)
            after = f"after {measured.key}" if len(found) == len(tasks) else tasks[len(found)].key
            progress.update(bar, advance=1, description=after)
    return found


def default_graph() -> Path:
    """ANSNET as the Internet Topology Zoo has it, beside the checkout or where LEEWARD_SHARED says."""
    from leeward.core.errors import ConfigError

    beside = (checkout() or Path.cwd()).parent / "shared"
    path = Path(os.environ.get("LEEWARD_SHARED", beside)) / "data" / "topologies" / "Ans.graphml"
    if not path.is_file():
        raise ConfigError(
            f"There is no {path}.",
            remedy="Name the graph with --graph; the Internet Topology Zoo has it as Ans.graphml.",
        )
    return path


def _run_all(network: Network, todo: list[Assumptions], method: str, time_limit_s: float, step: int) -> list[Hours]:
    """The four hours of each of `todo`, with progress on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    from leeward.policies.edrp.experiments.instances import toy
    from leeward.policies.edrp.experiments.table3 import MINUTES, OBJECTIVES, run_hour, summarise
    from leeward.policies.edrp.experiments.table3_report import Hours
    from leeward.policies.edrp.methods import solve

    solver = partial(solve, method=method, time_limit_s=time_limit_s)
    solver(toy())  # compiling or loading compiled code is not solving
    done: list[Any] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(todo) * len(OBJECTIVES) * (MINUTES // step + 1))
        for assumptions in todo:
            plans = []
            for at, objective in enumerate(OBJECTIVES):
                progress.update(bar, description=f"{assumptions.name}: {objective.name}")
                for plan in run_hour(network, assumptions, objective, solver, step=step):
                    plans.append(plan)
                    progress.advance(bar)
                whole = (len(done) * len(OBJECTIVES) + at + 1) * (MINUTES // step + 1)
                progress.update(bar, completed=whole)
            rows = tuple(summarise(objective, plans) for objective in OBJECTIVES)
            done.append(Hours(assumptions=assumptions, rows=rows, plans=tuple(plans)))
    return done


def _print_table3(console: Console, reference: Hours, varied: list[Hours], method: str) -> None:
    from leeward.policies.edrp.experiments.table3 import OBJECTIVES
    from leeward.policies.edrp.experiments.table3_report import dependence

    assumed = reference.assumptions
    ratios = assumed.ratios
    console.print("[bold]EDRP, Table III[/bold]: paper / ours", highlight=False)
    table = _table("objective", "R, ms", "C, $/h", "downtime, s", "changes", "replicas", "solving")
    for objective, row in zip(OBJECTIVES, reference.rows, strict=True):
        table.add_row(objective.name, *_cells(row))
    console.print(table)
    console.print(
        f"Assumed, as the paper does not say: {assumed.source} and {assumed.sink} host the pinned operators; "
        f"{', '.join(assumed.without)} of the graph's nodes host nothing; tuples out per tuple in: parser "
        f"{ratios.parser:g}, filter_by_coordinates {ratios.filter_by_coordinates:g}, compute_route_id "
        f"{ratios.compute_route_id:g}, metronome {ratios.metronome:g}; count_by_window {ratios.count_by_window:g} and "
        f"partial_rank {ratios.partial_rank:g} per routed tuple; no traffic cost (the printed 0.02 $/h per tuple/s "
        "cannot give the printed costs: see the last variations).",
        highlight=False,
    )
    if varied:
        console.print("\n[bold]How far the figures hang on it[/bold]: mean R (ms), mean C ($/h), downtime (s)")
        table = _table("one assumption changed", *(objective.name for objective in OBJECTIVES))
        for hours in (reference, *varied):
            table.add_row(hours.assumptions.name, *(_short(row) for row in hours.rows))
        console.print(table)
        for sentence in dependence(reference, varied):
            console.print(sentence, highlight=False)
        if any(row.failed for hours in varied for row in hours.rows if row is not None):
            console.print(
                "(n): n minutes had no deployment within the bounds; the present one stayed.", highlight=False
            )
    unproven = sum(row.unproven + row.failed for row in reference.rows if row is not None)
    console.print(
        f"reference run: {len(reference.plans)} plans solved in {reference.seconds:.2f} s by {method}, the slowest in "
        f"{max((plan.seconds for plan in reference.plans), default=0.0):.2f} s, {unproven} not proven optimal",
        highlight=False,
    )


def _console() -> Console:
    """As wide as the terminal; where there is none, wide enough for the tables."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=118)


def _table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for header in headers:
        table.add_column(header)
    return table


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return ["infeasible", *[""] * 5]
    theirs = row.objective
    return [
        f"{theirs.paper_response_ms:.1f} / {row.response_ms:.1f}",
        f"{theirs.paper_cost:.1f} / {row.cost:.1f}",
        f"{theirs.paper_downtime_s:.1f} / {row.downtime_s:.1f}",
        str(row.reconfigurations),
        str(row.most_replicas),
        f"{row.seconds:.2f} s",
    ]


def _short(row: Row | None) -> str:
    if row is None:
        return "infeasible"
    left = f" ({row.failed})" if row.failed else ""
    return f"{row.response_ms:.1f} {row.cost:4.1f} {row.downtime_s:4.1f}{left}"


def _print_table4(
    console: Console, cells: list[Cell], methods: list[str], rows: list[dict[str, Any]], limit_s: float
) -> None:
    by_key = {(row["nodes"], row["k"], row["method"]): row for row in rows}
    console.print(
        "[bold]EDRP, Table IV[/bold]: thousands of variables and seconds to solve, as printed (CPLEX 12.6.3) / ours",
        highlight=False,
    )
    headers = [f"{method}, s" for method in methods]
    table = _table("nodes", "k", "EDRP vars", "rEDRP vars", *headers)
    for cell in cells:
        full, few = (by_key.get((cell.nodes, cell.k, method)) for method in ("ilp", "restricted"))
        table.add_row(
            str(cell.nodes),
            str(cell.k),
            f"{_number(cell.variables_k)} / {_number(full['our_variables_k'] if full else None, 2)}",
            f"{_number(cell.restricted_variables_k)} / {_number(few['our_variables_k'] if few else None, 2)}",
            *(_seconds(by_key[cell.nodes, cell.k, method], limit_s) for method in methods),
        )
    console.print(table)
    console.print(
        "-: not solved, or not built (of ours: more variables than `ilp` builds). rEDRP's variables depend on the "
        "present deployment, which the paper does not give; ours is random. 200 tuples/s, balanced objective, nobody "
        "pinned.",
        highlight=False,
    )


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _seconds(row: dict[str, Any], limit_s: float) -> str:
    paper = row.get("paper_seconds")
    printed = f"{'-' if paper is None else paper} / " if "paper_seconds" in row else ""
    done = row["status"] in ("optimal", "infeasible") or (row["method"] == "restricted" and row.get("F") is not None)
    if done:
        return f"{printed}{row['our_seconds']:.2f}"
    return f"{printed}{'-' if row['status'] in ('refused', 'not built') else f'> {limit_s:g}'}"
