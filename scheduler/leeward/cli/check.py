"""`leeward check`: finds inputs that no table routes, and state that would be lost, before a topology is submitted.

Exit codes: 0 nothing is wrong, 1 something is, 2 bad input.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._output import Output, OutputOption, show

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_WRONG = 1
ERROR, WARNING = "error", "warning"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("check")(check)


def check(
    topology: Annotated[
        str | None,
        typer.Argument(metavar="[TOPOLOGY]", help="Name in the project, or a file; without one, the only one."),
    ] = None,
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="config.json of the streamparse project.")
    ] = Path("config.json"),
    output: OutputOption = Output.table,
) -> None:
    """Find what a topology would be refused for, or lose, before it is submitted. Nothing is sent anywhere.

    Example: leeward check wordcount --output json
    """
    file = _file(topology, config)
    problems = list(_problems(file))
    if output is Output.table:  # sentences: too long for columns
        for row in problems:
            typer.echo(": ".join(filter(None, (row["where"], row["level"], f"{row['problem']} {row['remedy']}"))))
        typer.echo(f"{file.stem}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}")
    wrong = any(problem["level"] == ERROR for problem in problems)
    if output is not Output.table:
        show({"topology": file.stem, "file": str(file), "ok": not wrong, "problems": problems}, output)
    raise typer.Exit(EXIT_WRONG if wrong else 0)


def _file(topology: str | None, config: Path) -> Path:
    from leeward.local.environment import choose_topology, read_config

    if topology is not None and topology.endswith(".py") and Path(topology).is_file():
        return Path(topology).resolve()
    folder = config.resolve().parent / str(read_config(config).get("topology_specs", "topologies/"))
    return folder / f"{choose_topology(topology, folder)}.py"


def _problems(file: Path) -> Iterator[dict[str, Any]]:
    from leeward.core.errors import LeewardError

    with warnings.catch_warnings(action="ignore"):  # of the ssh library that streamparse imports
        from streamparse.util import get_topology_from_file

    try:
        found = get_topology_from_file(str(file))
    except LeewardError as error:
        yield _problem(ERROR, "", str(file), error.message, error.remedy)
        return
    except Exception as error:  # of the user's module: any
        yield _problem(ERROR, "", str(file), f"{type(error).__name__}: {error}", "Correct the module.")
        return
    for spec in found.specs:
        yield from _of_component(spec.name, spec.component_cls)


def _of_component(name: str, component: type) -> Iterator[dict[str, Any]]:
    from leeward.core.outside import (
        REMEDY,
        STATELESS_REMEDY,
        UNUSED_REMEDY,
        kept_by_stateless,
        kept_outside,
        state_unused,
    )
    from leeward.runtime.state.outside import uses_state
    from leeward.runtime.state.written import written_outside

    kind = getattr(component, "kind", "")
    if kind not in ("stateless", "stateful", "source"):
        return
    written = written_outside(component)
    if kind == "stateless":
        for entry in written:  # a warning only: it may be a cache
            yield _problem(WARNING, name, entry.where, kept_by_stateless(name, [entry.attribute]), STATELESS_REMEDY)
        return
    for entry in written:
        yield _problem(ERROR, name, entry.where, kept_outside(name, [entry.attribute]), REMEDY)
    if not written and not uses_state(component):
        yield _problem(ERROR, name, "", state_unused(name), UNUSED_REMEDY)


def _problem(level: str, component: str, where: str, problem: str, remedy: str) -> dict[str, Any]:
    return {"level": level, "component": component, "where": where, "problem": problem, "remedy": remedy}
