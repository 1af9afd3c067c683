"""`leeward cluster up|status|down`: a whole Storm cluster on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli._common import BASE_PORT_VARIABLE, CLUSTER_VARIABLE, DEFAULT_DIR
from leeward.cli._output import Output, OutputOption, document_text

if TYPE_CHECKING:
    from leeward.core.network import Network
    from leeward.local.status import Status

DEFAULT_SUPERVISORS = 5
Folder = Annotated[Path, typer.Option("--dir", envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")]
SecretsOption = Annotated[
    Path | None,
    typer.Option("--secrets", metavar="FILE", envvar="LEEWARD_SECRETS", help="Secrets file, which holds the password."),
]
BasePort = Annotated[int, typer.Option(envvar=BASE_PORT_VARIABLE, help="First port of the cluster's block.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="A whole Storm cluster on this machine.")
    group.command()(install)
    group.command()(up)
    group.command()(status)
    group.command()(down)
    app.add_typer(group, name="cluster")


def up(
    folder: Folder = DEFAULT_DIR,
    base_port: BasePort = 6600,
    supervisors: Annotated[int | None, typer.Option(help="Number of supervisors; default: 5.")] = None,
    slots: Annotated[int, typer.Option(help="Worker slots of each supervisor.")] = 2,
    plugin: Annotated[bool, typer.Option(help="Leeward's scheduler plugin, or Storm's default.")] = True,
    storm_home: Annotated[Path | None, typer.Option(help="Storm install; default: set-up's.")] = None,
    loopback: Annotated[
        bool, typer.Option("--loopback/--any-address", help="Where Storm's servers listen; --any-address needs no cc.")
    ] = True,
    network: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Nodes, and the network between them, which is emulated.")
    ] = None,
) -> None:
    """Start ZooKeeper, Redis, Nimbus and the supervisors; wait until all are registered.

    Example: leeward cluster up --supervisors 3 --slots 4
    """
    from rich.console import Console

    from leeward.local import ClusterSpec, LocalCluster

    console, start = Console(highlight=False), time.monotonic()
    nodes, emulated = network_of(network, supervisors)

    def report(line: str) -> None:
        console.print(f"  {time.monotonic() - start:5.1f} s  {line}")

    with console.status("starting the cluster"):
        spec = ClusterSpec(
            dir=folder,
            base_port=base_port,
            supervisors=DEFAULT_SUPERVISORS if supervisors is None else supervisors,
            slots=slots,
            plugin=plugin,
            storm_home=storm_home,
            loopback=loopback,
            network=nodes,
            emulated=emulated,
        )
        cluster = LocalCluster(spec).up(report)
    line = f"Nimbus {cluster.nimbus}, ZooKeeper {cluster.zookeeper}, {spec.supervisors * slots} slots, {folder}"
    console.print(f"cluster up: {line}", soft_wrap=True)


def install(
    storm_version: Annotated[str | None, typer.Option(help="Release; default: the one that the jars are for.")] = None,
) -> None:
    """Fetch Storm's own jars through Maven, once, for the clusters on this machine.

    Not needed in a checkout after `make setup`, nor with STORM_HOME. Example: leeward cluster install
    """
    from rich.console import Console

    from leeward.local.places import kept
    from leeward.local.storm_home import default_version, fetch, make_current

    version, console, start = storm_version or default_version(), Console(highlight=False), time.monotonic()
    home = kept() / version
    if not (home / "lib-worker").is_dir():
        with console.status(f"Maven fetches Storm {version}"):
            fetch(version, home, kept() / "logs" / f"storm-{version}.log")
    make_current(home)
    console.print(f"Storm {version}: {home} ({time.monotonic() - start:.1f} s)", soft_wrap=True)


def network_of(file: Path | None, supervisors: int | None) -> tuple[Network | None, bool]:
    """The network of a file, and whether this machine can emulate it; says so in a sentence if it cannot."""
    from leeward.adapters.network_file import read_network
    from leeward.core.errors import ConfigError
    from leeward.local.network.namespaces import hindrance

    if file is None:
        return None, False
    if supervisors is not None:
        raise ConfigError(
            f"supervisors: {supervisors}, but {file} says which nodes there are.",
            remedy="Give --supervisors or --network, not both.",
        )
    network, why = read_network(file), hindrance()
    if why:
        typer.echo(
            f"The network is not emulated ({why}): all nodes are on loopback addresses, without delay.", err=True
        )
    return network, why is None


def status(
    folder: Folder = DEFAULT_DIR,
    output: OutputOption = Output.table,
) -> None:
    """Daemons, nodes, topologies and memory. Exit code 1 when something that should run does not.

    Example: leeward cluster status
    """
    from leeward.local import LocalCluster
    from leeward.local.status import observe

    seen = observe(LocalCluster.attach(folder))
    if output is Output.table:
        print_status(seen)
    else:
        typer.echo(document_text(seen.as_values(), output), nl=False)
    if not seen.healthy:
        raise typer.Exit(1)


def print_status(seen: Status) -> None:
    """Tables for a terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    daemons = Table("daemon", "port", "pid", "state", "MB", box=None)
    for row in seen.daemons:
        state = "[green]up[/]" if row.up else "[red]down[/]"
        daemons.add_row(row.name, str(row.port or ""), str(row.pid or ""), state, f"{row.memory_mb:.0f}")
    console.print(daemons)
    nodes = Table("node", "registered", "slots", "workers", box=None)
    for node in seen.nodes:
        ports, used = " ".join(map(str, node.ports)), " ".join(map(str, node.used))
        nodes.add_row(node.name, "yes" if node.registered else "[red]no[/]", ports, used or "-")
    console.print(nodes)
    if seen.topologies:
        table = Table("topology", "status", "workers", "executors", "tasks", box=None)
        for topology in seen.topologies:
            table.add_row(*map(str, topology))
        console.print(table)
    if seen.network != "none":
        no_delay = "" if seen.network == "emulated" else ": all nodes are on loopback addresses, without delay"
        console.print(f"network: {seen.network}{no_delay}")
    console.print(
        f"{seen.processes} processes, {seen.memory_mb:.0f} MB in all"
        f" ({seen.workers} workers, {seen.python_tasks} Python tasks)"
    )


def down(folder: Folder = DEFAULT_DIR) -> None:
    """End every process of the cluster, also after a crash of anything.

    Example: leeward cluster down
    """
    from leeward.local import end_cluster

    ended = end_cluster(folder)
    typer.echo(f"cluster down: {ended} processes ended ({folder})")
