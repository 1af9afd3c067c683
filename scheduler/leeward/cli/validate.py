"""`leeward validate`: a settings file, checked as `leeward serve` checks it; nothing is asked, nothing is started.

Exit codes: 0 nothing is wrong, 2 something is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli._common import EXIT_BAD_INPUT, refusing
from leeward.cli._output import Output, OutputOption, show


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("validate")(validate)


def validate(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Settings: TOML, YAML or JSON.")] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE", help="One setting, over the file's; repeat for more."),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of such a file, and end.")] = False,
    output: OutputOption = Output.table,
) -> None:
    """Check a settings file, policies and networks that it names included, without a cluster.

    Example: leeward validate leeward.yaml
    """
    with refusing():
        if schema:
            from leeward.control.settings_schema import schema as schema_of

            typer.echo(json.dumps(schema_of(), indent=1))
            return
        if file is None and not options:
            raise typer.BadParameter("Name a file, or give -o key=value.", param_hint="FILE")
        from leeward.adapters.network_file import network_named
        from leeward.cli._settings_file import read_document
        from leeward.control.settings_check import checked

        told = checked({} if file is None else read_document(file), options or [], network=network_named)
    if output is Output.table:
        _tell(str(file or "the options"), told)
    else:
        show(told, output)
    raise typer.Exit(EXIT_BAD_INPUT if told["wrong"] else 0)


def _tell(what: str, told: Mapping[str, Any]) -> None:
    """For people: each fault, or which policies are chosen."""
    for wrong in told["wrong"]:
        typer.echo(f"error: {wrong['error']} {wrong['remedy']}".rstrip(), err=True)
    if not told["wrong"]:
        said = (f"{one['topology'] or 'all topologies'} by {one['policy']}" for one in told["chosen"])
        typer.echo(f"{what}: nothing is wrong ({'; '.join(said)})")
