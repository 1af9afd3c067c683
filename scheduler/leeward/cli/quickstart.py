"""`leeward quickstart`: a small project to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(quickstart)


def quickstart(
    project: Annotated[Path, typer.Argument(help="A new folder; its last part is the project's name.")],
) -> None:
    """Write a project with a stateful topology, its tests and a README whose commands run and scale it.

    Example: leeward quickstart my_project
    """
    from leeward.local.quickstart import write_project

    for name in write_project(project):
        typer.echo(f"  {project / name}")
    typer.echo(f"Next: cd {project}, and the commands of its README.md")
