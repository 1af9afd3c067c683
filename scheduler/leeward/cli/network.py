"""`leeward network check|measure`: the figures of a network file, and those of the emulated network.

Exit codes: 0 done, 1 there is no emulated network to measure, 2 bad input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from leeward.adapters.network_file import read_network
from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR, EXIT_REFUSED
from leeward.cli._output import Output, OutputOption, document_text

if TYPE_CHECKING:
    from leeward.core.network import Link
    from leeward.local.network.measure import Measurement
    from leeward.local.network.statistics import Statistics


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="The emulated network of a local cluster.")
    group.command()(check)
    group.command("measure")(measure_command)
    app.add_typer(group, name="network")


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A network file (TOML).")],
    output: OutputOption = Output.table,
) -> None:
    """Check a network file, and print the round trips and rates between its nodes.

    Example: leeward network check storm_conf/networks/three_sites.toml
    """
    network = read_network(file)
    nodes = [network.nimbus.id, *(node.id for node in network.workers)]
    if output is not Output.table:
        pairs = [
            {"from": a, "to": b, "round_trip_ms": network.round_trip_ms(a, b), **asdict(network.pair(a, b))}
            for a in nodes
            for b in nodes
            if a != b
        ]
        typer.echo(document_text({"nodes": nodes, "pairs": pairs}, output), nl=False)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("from \\ to", *nodes, box=None)
    for a in nodes:
        table.add_row(a, *("-" if a == b else cell(network.round_trip_ms(a, b), network.pair(a, b)) for b in nodes))
    console = Console(highlight=False)
    console.print(table, soft_wrap=True)
    console.print("round trip in ms; rate of the direction in Mbit/s; loss of the direction", style="dim")


def cell(round_trip_ms: float, link: Link) -> str:
    """One direction for the table."""
    rate = "" if link.rate_mbps is None else f" {link.rate_mbps:g}M" + ("/site" if link.shared else "")
    return f"{round_trip_ms:g}{rate}" + (f" {link.loss:.3g}" if link.loss else "")


def measure_command(
    folder: Annotated[
        Path, typer.Option("--cluster", metavar="DIR", envvar=CLUSTER_VARIABLE, help="Run folder of the cluster.")
    ] = DEFAULT_DIR,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Probes of each round trip.")] = 7,
    trains: Annotated[int, typer.Option(min=1, max=100, help="Packet trains of each rate, 0.2 s each.")] = 3,
    most: Annotated[int, typer.Option(min=0, help="Rates to measure, at most; drawn by the file's seed.")] = 60,
    output: OutputOption = Output.table,
) -> None:
    """Measure round trips and rates between the nodes of a running cluster. Its own traffic shares the links.

    Example: leeward network measure
    """
    from rich.console import Console

    from leeward.local import LocalCluster, processes
    from leeward.local.layout import RELAY
    from leeward.local.network.measure import measure
    from leeward.local.network.namespaces import hindrance

    cluster = LocalCluster.attach(folder)
    network, relay = cluster.spec.network, cluster.daemons.get(RELAY)
    if cluster.network is None or network is None:
        refuse(f"The cluster in {folder} has no emulated network: its nodes are on loopback addresses.")
    if relay is None or not processes.is_alive(relay):
        refuse(f"The relay of the cluster in {folder} has ended. Start the cluster anew: leeward cluster up")
    if why := hindrance():
        refuse(f"The emulated network cannot be entered: {why}.")
    with Console(stderr=True).status("measuring") as shown:
        found = measure(network, cluster.network.ends, rounds=rounds, trains=trains, most=most, report=shown.update)
    counted = cluster.network.statistics(relay)
    if output is not Output.table:
        typer.echo(document_text(document(found, counted), output), nl=False)
    else:
        print_measurement(found, counted)


def refuse(why: str) -> NoReturn:
    """Say why, and end with exit code 1."""
    typer.echo(why, err=True)
    raise typer.Exit(EXIT_REFUSED)


def document(found: Measurement, counted: Statistics) -> dict[str, object]:
    """Plain values; None for what could not be measured."""
    pairs = [{"from": a, "to": b, **asdict(pair)} for (a, b), pair in counted.pairs.items()]
    relay = {**asdict(counted), "microseconds_per_packet": round(counted.microseconds, 2), "pairs": pairs}
    return {**asdict(found), "relay": relay}


def print_measurement(found: Measurement, counted: Statistics) -> None:
    """Tables for a terminal: beside each figure of the file the measured one."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    trips = Table("between", "and", "round trip, ms", "least", "median", box=None)
    for trip in found.round_trips:
        trips.add_row(trip.a, trip.b, f"{trip.expected_ms:g}", *texts(trip.least_ms, trip.median_ms))
    console.print(trips)
    if found.rates:
        rates = Table("from", "to", "rate, Mbit/s", "measured", box=None)
        for rate in found.rates:
            rates.add_row(rate.source, rate.target, f"{rate.expected_mbps:g}", *texts(rate.mbps))
        console.print(rates)
    console.print(
        f"relay: {counted.packets} packets so far, {counted.processor_s:.2f} s of processor,"
        f" {counted.microseconds:.0f} us a packet"
    )


def texts(*values: float | None) -> Sequence[str]:
    """Figures to three places; a dash for what could not be measured."""
    return [f"{value:.3f}" if value is not None else "-" for value in values]
