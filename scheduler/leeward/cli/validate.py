"""`leeward validate`: a settings file, checked as `leeward serve` checks it; nothing is asked, nothing is started.

Exit codes: 0 nothing is wrong, 2 something is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._common import refusing

EXIT_BAD_INPUT = 2


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
) -> None:
    """Check a settings file, policies and networks that it names included, without a cluster.

    Example: leeward validate leeward.yaml
    """
    with refusing(EXIT_BAD_INPUT):
        if schema:
            from leeward.control.settings_schema import schema as schema_of

            typer.echo(json.dumps(schema_of(), indent=1))
            return
        if file is None and not options:
            raise typer.BadParameter("Name a file, or give -o key=value.", param_hint="FILE")
        typer.echo(f"{file or 'the options'}: {_checked(file, options or [])}")


def _checked(file: Path | None, options: list[str]) -> str:
    """Which policies it chooses. Raises ConfigError for the first wrong setting."""
    from leeward.adapters.network_file import network_named
    from leeward.cli._settings_file import read_document
    from leeward.control.registry import make_policy, policy_of, setting_names
    from leeward.core.settings import settings_from

    chosen = settings_from({} if file is None else read_document(file), options, more=setting_names)
    said = []
    for name in ("", *sorted(chosen.topologies)):
        one = chosen.of(name)
        policy_of(one)
        for policy, values in one.policies.items():  # also of those that are not chosen
            make_policy(policy, values)
        network_named(one.service.network)
        said.append(f"{name or 'all topologies'} by {one.service.policy}")
    return f"nothing is wrong ({'; '.join(said)})"
