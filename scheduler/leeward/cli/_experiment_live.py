"""The commands of `leeward experiment` that start processes on this machine; heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption
from leeward.local.places import written

OUT = written("experiments", here=Path.cwd())


def register(experiment: typer.Typer) -> None:
    """Adds them to `experiment`."""
    experiment.command("agiledart-latency")(agiledart_latency)
    experiment.command("agiledart-live-deployment")(agiledart_live_deployment)
    experiment.command("agiledart-live-paths")(agiledart_live_paths)
    experiment.command("agiledart-recovery")(agiledart_recovery)
    experiment.command("bimodal-agents")(bimodal_agents)
    experiment.command("bimodal-live")(bimodal_live)
    experiment.command("dssp-live")(dssp_live)
    experiment.command("edge-cloud-live")(edge_cloud_live)


def agiledart_latency(
    scenario: Annotated[
        Path | None, typer.Option(help="Scenario file. [default: storm_conf/scenarios/agiledart-latency.toml]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One topology at one rate on four nodes, in two to three minutes.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TOPOLOGY", help="One of the scenario's topologies; repeat for more.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of network and rows, instead of the scenario's.")] = None,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the cluster that is started.")] = OUT
    / "agiledart-latency-cluster",
    base_port: Annotated[int, typer.Option(help="First port of the cluster's block.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, events and the sinks' lines.")] = OUT
    / "agiledart-latency",
) -> None:
    """AgileDART, Fig. 9: latency of three applications on a real Storm, beside plain Storm's on the same network.

    Needs root and a checkout. A full run takes half an hour, and goes on where it was broken off.
    Example: leeward experiment agiledart-latency --quick
    """
    from leeward.cli._agiledart_latency import run_latency

    with refusing(1):
        run_latency(
            scenario, quick=quick, seed=seed, topologies=only or [], folder=cluster, base_port=base_port,
            output=output, out=out,
        )  # fmt: skip


def agiledart_live_deployment(
    quick: Annotated[bool, typer.Option("--quick", help="12 agents, and 1 and 10 applications, a minute.")] = False,
    network: Annotated[
        bool, typer.Option("--network/--no-network", help="Also over emulated networks, which needs root.")
    ] = True,
    nimbus: Annotated[
        bool, typer.Option("--nimbus/--no-nimbus", help="Also submit them to a real Nimbus, on this machine.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of delays, sensors, actuators and owners.")] = 0,
    cluster: Annotated[Path, typer.Option("--dir", help="Folder for Nimbus' cluster and the emulated networks.")] = OUT
    / "agiledart-live-deployment-cluster",
    base_port: Annotated[int, typer.Option(help="First port of the agents; Nimbus' cluster is above them.")] = 7200,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture and logs.")] = OUT
    / "agiledart-live-deployment",
) -> None:
    """AgileDART, Fig. 8(b): 60 agents as processes on this machine place 1, 10 and 100 applications at once.

    So does a real Nimbus. Emulated networks need root. A full run takes eleven minutes.
    Example: leeward experiment agiledart-live-deployment --quick
    """
    from leeward.cli._agiledart_live_deployment import run_live

    with refusing(1):
        run_live(
            quick=quick, nimbus=nimbus, network=network, seed=seed, base_port=base_port, folder=cluster,
            output=output, out=out,
        )  # fmt: skip


def agiledart_live_paths(
    quick: Annotated[bool, typer.Option("--quick", help="9 sites and 30 packets, half a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Of links, losses and routers.")] = 0,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the emulated network.")] = OUT
    / "agiledart-live-paths-network",
    base_port: Annotated[int, typer.Option(help="Chooses the subnet of the network.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, and the sites' lines.")] = OUT
    / "agiledart-live-paths",
) -> None:
    """AgileDART: processes forward packets over an emulated network that loses them, while their routers learn.

    Needs root. A full run takes ten minutes. Example: leeward experiment agiledart-live-paths --quick
    """
    from leeward.cli._agiledart_live_paths import run_live

    with refusing(1):
        run_live(quick=quick, seed=seed, folder=cluster, base_port=base_port, output=output, out=out)


def agiledart_recovery(
    quick: Annotated[
        bool, typer.Option("--quick", help="32 MiB, and one and eight failures, in half a minute.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the states' bytes.")] = 0,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture.")] = OUT / "agiledart-recovery",
) -> None:
    """AgileDART, Fig. 11: state rebuilt from fragments at agents, as processes on this machine, under emulated rates.

    A full run takes three minutes. Example: leeward experiment agiledart-recovery --quick
    """
    from leeward.cli._recovery_live import run_recovery

    with refusing(1):
        run_recovery(quick=quick, seed=seed, output=output, out=out)


def bimodal_agents(
    quick: Annotated[bool, typer.Option("--quick", help="20 agents and 10 tasks.")] = False,
    seed: Annotated[int, typer.Option(help="Of network and tasks.")] = 0,
    base_port: Annotated[int, typer.Option(help="First port of the agents.")] = 7000,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, and the agents' files.")] = OUT / "bimodal-agents",
) -> None:
    """Bi-modal links: 120 agents as processes on this machine map 100 tasks; time, frames and bytes.

    Example: leeward experiment bimodal-agents --quick
    """
    from leeward.cli._bimodal_agents import run_agents

    with refusing(1):
        run_agents(quick=quick, seed=seed, base_port=base_port, output=output, out=out)


def bimodal_live(
    scenario: Annotated[
        Path | None, typer.Option(help="Scenario file. [default: storm_conf/scenarios/bimodal.toml]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three streams on four nodes, in some two minutes.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of network and streams, instead of the scenario's.")] = None,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the cluster that is started.")] = OUT
    / "bimodal-live-cluster",
    base_port: Annotated[int, typer.Option(help="First port of the cluster's block.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, events and the sinks' lines.")] = OUT
    / "bimodal-live",
) -> None:
    """Bi-modal links on a real Storm: agents map streams and re-allocate links; delivered rates beside the agreed ones.

    Needs root and a checkout. Example: leeward experiment bimodal-live --quick
    """
    from leeward.cli._bimodal_live import run_live

    with refusing(1):
        run_live(scenario, quick=quick, seed=seed, folder=cluster, base_port=base_port, output=output, out=out)


def dssp_live(
    quick: Annotated[bool, typer.Option("--quick", help="A few queries at one rate, half a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Of arrivals, fan-outs and execution times.")] = 78,
    base_port: Annotated[int, typer.Option(help="First port of the organisations.")] = 18400,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, files and logs.")] = OUT / "dssp-live",
) -> None:
    """DSSP: the testbed as processes, HTTP and WebSocket between them; loads by discipline beside the model's.

    A full run takes half an hour. Example: leeward experiment dssp-live --quick
    """
    from leeward.cli._dssp_live import run_live

    with refusing(1):
        run_live(quick=quick, seed=seed, base_port=base_port, output=output, out=out)


def edge_cloud_live(
    scenario: Annotated[
        Path | None, typer.Option(help="Scenario file. [default: storm_conf/scenarios/edge-cloud.toml]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three dataflows on four nodes, in some two minutes.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of network and dataflows, instead of the scenario's.")] = None,
    cluster: Annotated[Path, typer.Option("--dir", help="Run folder of the cluster that is started.")] = OUT
    / "edge-cloud-live-cluster",
    base_port: Annotated[int, typer.Option(help="First port of the cluster's block.")] = 6600,
    output: OutputOption = Output.table,
    out: Annotated[Path, typer.Option(help="Folder for JSON, CSV, picture, events and the sinks' lines.")] = OUT
    / "edge-cloud-live",
) -> None:
    """Dataflows of edge and cloud on a real Storm over an emulated network: measured makespans beside the model's.

    Needs root and a checkout. Example: leeward experiment edge-cloud-live --quick
    """
    from leeward.cli._edge_cloud_live import run_live

    with refusing(1):
        run_live(scenario, quick=quick, seed=seed, folder=cluster, base_port=base_port, output=output, out=out)
