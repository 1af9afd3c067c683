"""The `leeward` command. Each module of this package registers its part; heavy imports wait until a command runs."""

from __future__ import annotations

import importlib
import pkgutil

import typer

from leeward import __version__
from leeward.core.errors import LeewardError


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leeward {__version__}")
        raise typer.Exit


def _build() -> typer.Typer:
    typer_app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Elastic, stateful Python topologies on Apache Storm. Try: leeward cluster up; leeward submit query1",
    )

    @typer_app.callback()
    def main(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print it."),
    ) -> None:
        """Elastic, stateful Python topologies on Apache Storm."""

    for part in sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")):
        importlib.import_module(f"leeward.cli.{part}").register(typer_app)
    return typer_app


def app() -> None:
    """Entry point: an error made on purpose, or of the machine, is one line and exit code 2."""
    try:
        _build()()
    except (LeewardError, OSError) as error:
        typer.secho(f"error: {error}", err=True, fg="red")
        raise SystemExit(2) from None
