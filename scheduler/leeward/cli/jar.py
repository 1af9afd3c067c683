"""`leeward jar` and `leeward submit`: a jar for `sparse submit`, without Leiningen and ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR
from leeward.local.places import checkout, make_folder, written

OUT = Path("build/topology.jar") if Path.cwd() == checkout() else written("topology.jar", here=Path.cwd())


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(jar)
    app.command()(submit)


def jar(
    out: Annotated[Path, typer.Option(help="Jar to write.")] = OUT,
    src: Annotated[Path, typer.Option(help="Tree that becomes resources/ in it.")] = Path("src"),
) -> None:
    """Build the topology jar: Leeward's Java groupings and the Python tree of src/.

    Example: leeward jar --out build/topology.jar
    """
    count = build(out, src)
    typer.echo(f"{out}: {count} files, {out.stat().st_size / 1024:.0f} KiB")


def build(out: Path, src: Path) -> int:
    """Build with the worker jar that the package ships."""
    from leeward.local.install import shipped_jar
    from leeward.local.topology_jar import build_jar

    make_folder(out.parent)
    return build_jar(out, src=src, worker_jar=shipped_jar("worker"))


def submit(
    topology: Annotated[
        str | None,
        typer.Argument(metavar="[TOPOLOGY]", help="File in topologies/, without .py, if it has several."),
    ] = None,
    file: Annotated[str | None, typer.Option("-n", metavar="TOPOLOGY", help="The same, as sparse has it.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", "-N", "--override_name", help="Name on the cluster; default: the file's.")
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-e", help="Environment in config.json; default: the local cluster, in none."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", "-w", min=1, help="Number of workers.")] = None,
    config: Annotated[Path | None, typer.Option(help="The project's config.json, if it is elsewhere.")] = None,
    cluster: Annotated[Path, typer.Option(envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")] = DEFAULT_DIR,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="Setting, key=value.")] = None,
) -> None:
    """Build the jar and submit a topology: to a local cluster, or to an environment of the project's config.json.

    Example: leeward submit wordcount -w 2 -o topology.max.spout.pending=100
    """
    from leeward.core.errors import ConfigError
    from leeward.local import LocalCluster, submit_topology

    if topology and file and topology != file:
        raise ConfigError(f"topology: {topology!r} and -n {file!r}.", remedy="Name it once.")
    nimbus = None if environment else LocalCluster.attach(cluster).nimbus
    build(OUT, Path("src"))
    printed = submit_topology(
        topology or file, name=name, nimbus=nimbus, jar=OUT, project=Path.cwd(), options=option or [],
        workers=workers, config=config, environment_name=environment,
    )  # fmt: skip
    typer.echo(printed.rstrip())
