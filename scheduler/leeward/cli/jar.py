"""`leeward jar` and `leeward submit`: a jar for `sparse submit`, without Leiningen and ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR

OUT = Path("build/topology.jar")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(jar)
    app.command()(submit)


def jar(
    out: Annotated[Path, typer.Option(help="Jar to write.")] = OUT,
    src: Annotated[Path, typer.Option(help="Tree that becomes resources/ in it.")] = Path("src"),
) -> None:
    """Build the topology jar: Leeward's Java groupings and the Python tree of src/."""
    count = build(out, src)
    typer.echo(f"{out}: {count} files, {out.stat().st_size / 1024:.0f} KiB")


def build(out: Path, src: Path) -> int:
    """Build with the worker jar of this checkout."""
    from leeward.local.install import checkout
    from leeward.local.topology_jar import build_jar

    return build_jar(out, src=src, worker_jar=checkout() / "build" / "jars" / "leeward-worker.jar")


def submit(
    topology: Annotated[str, typer.Argument(help="File in topologies/, without .py.")],
    name: Annotated[str | None, typer.Option(help="Name on the cluster; default: the file's.")] = None,
    cluster: Annotated[Path, typer.Option(envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")] = DEFAULT_DIR,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="Setting, key=value.")] = None,
) -> None:
    """Build the jar and submit a topology to a local cluster."""
    from leeward.local import LocalCluster, submit_topology

    found = LocalCluster.attach(cluster)
    build(OUT, Path("src"))
    printed = submit_topology(
        topology, name=name, nimbus=found.nimbus, jar=OUT, project=Path.cwd(), options=option or []
    )
    typer.echo(printed.rstrip())
