"""Commands that ask something of a cluster or of its service: their options, addresses, requests and answers."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR, EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_REFUSED
from leeward.cli._output import Output, show
from leeward.cli._signals import signals

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import Ports
    from leeward.core.outcome import Outcome
    from leeward.core.settings import Chosen, Settings

DEFAULT_NIMBUS = "127.0.0.1:6627"

#: A request is a znode, and a leader that is busy carries it out later.
LEFT = "The request stays, and is carried out when its turn comes: see leeward status before you repeat it."

Topology = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="Name of a running topology.")]
NimbusOption = Annotated[
    list[str] | None, typer.Option("--nimbus", metavar="HOST:PORT", help="Nimbus; repeat for more.")
]
ZooKeeperOption = Annotated[
    str | None, typer.Option("--zookeeper", metavar="HOST:PORT", help="ZooKeeper; default: as the conf says.")
]
RedisOption = Annotated[str | None, typer.Option("--redis", metavar="URL", help="Redis; default: as the conf says.")]
ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster", metavar="DIR", envvar=CLUSTER_VARIABLE, help="Run folder of a local cluster (leeward cluster up)."
    ),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings: TOML, YAML or JSON.")]
SetOption = Annotated[list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="One setting; repeat for more.")]
EventsOption = Annotated[Path | None, typer.Option("--events", metavar="FILE", help="Append decisions as JSON lines.")]


def settings_of(config: Path | None, options: Sequence[str]) -> Chosen:
    """Those of the file, and the options over them. Raises ConfigError."""
    from leeward.cli._settings_file import read_document
    from leeward.control.registry import setting_names
    from leeward.core.settings import settings_from

    document = {} if config is None else read_document(config)
    return settings_from(document, options, more=setting_names)


def addresses_of(nimbus: list[str] | None, zookeeper: str | None, redis: str | None, cluster: Path | None) -> Addresses:
    """From the options, else from the local cluster that runs, else Storm's defaults on this machine.

    A cluster that the environment alone names is none of these if `nimbus` is given. Raises ConfigError.
    """
    from leeward.adapters.wiring import Addresses
    from leeward.core.errors import ConfigError
    from leeward.core.secrets import FILE_VARIABLE, refuse_password

    refuse_password("--redis", redis)
    if nimbus and cluster is not None and str(cluster) == os.environ.get(CLUSTER_VARIABLE):
        cluster = None
    folder = cluster or DEFAULT_DIR
    file = folder / "cluster.json"
    found: dict[str, str] = {}
    if cluster is not None or (file.exists() and not nimbus):
        try:
            found = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"--cluster {folder}: {file} cannot be read ({error}).", remedy=f"leeward cluster up --dir {folder}"
            ) from None
    secrets = found.get("secrets") or os.environ.get(FILE_VARIABLE)  # a local cluster has secrets of its own
    return Addresses(
        nimbus=nimbus or [found.get("nimbus", DEFAULT_NIMBUS)],
        zookeeper=zookeeper or found.get("zookeeper"),
        redis_url=redis or found.get("redis_url"),
        secrets=Path(secrets) if secrets else None,
    )


def conf_of(topology: str, addresses: Addresses) -> dict[str, object]:
    """Of this topology, or, for "", of the cluster, as Nimbus tells it. Raises LeewardError."""
    from leeward.adapters.nimbus import NimbusClient

    client = NimbusClient(addresses.nimbus)
    try:
        return dict(client.structure(topology).conf if topology else client.conf())
    finally:
        client.close()


def request(
    topology: str, body: Mapping[str, Any], addresses: Addresses, settings: Settings, *, timeout: float, output: Output,
    events: Path | None = None,
) -> None:  # fmt: skip
    """Leave it, wait for the answer, print it; the exit code says how it ended."""
    from leeward.adapters.wiring import open_ports

    with (
        signals() as (stop, interrupted),
        open_ports(topology, addresses, events=events, quiet=True, session_s=settings.session_s) as ports,
    ):
        answer = _ask(topology, ports, settings, body, stop, timeout)
    if answer is None:
        why = "interrupted" if interrupted.is_set() else f"error: no answer after {timeout:g} s"
        typer.echo(f"{why}. {LEFT}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED if interrupted.is_set() else EXIT_REFUSED)
    _tell(topology, answer, output)


def _tell(topology: str, answer: Outcome, output: Output) -> None:
    from leeward.core.outcome import Ending

    if output is not Output.table:
        show({"topology": topology, "ending": str(answer.ending), "why": answer.why}, output)
    elif answer.ending is Ending.REFUSED:
        typer.echo(f"error: {answer.why}", err=True)
    else:
        typer.echo(str(answer))
    codes = {Ending.DONE: 0, Ending.REFUSED: EXIT_BAD_INPUT}
    raise typer.Exit(codes.get(answer.ending, EXIT_REFUSED))


def _ask(
    topology: str,
    ports: Ports,
    settings: Settings,
    body: Mapping[str, object],
    stop: threading.Event,
    timeout: float,
) -> Outcome | None:
    """Leave the request; serve it here if nobody leads."""
    from leeward.control.service import Service

    mine = ports.open_topology(ports.nimbus.structure(topology))
    name = mine.requests.ask(body)
    timer = threading.Timer(timeout, stop.set)
    timer.daemon = True
    timer.start()
    try:
        while not stop.is_set():
            answer = mine.requests.answer_to(name)
            if answer is not None:
                return answer
            if mine.lock.acquire(0.0):  # it does not queue for it: a standby is to lead first
                mine.lock.release()
                return Service(topology=topology, ports=ports, settings=settings, policy=None).run(stop, until=name)
            stop.wait(0.2)
        return None
    finally:
        timer.cancel()
