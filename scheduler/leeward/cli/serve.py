"""`leeward serve`, `drain`, `reconfigure`, `recover`, `status`: the scheduler service and what people ask of it.

Exit codes: 0 done, 1 the cluster refused or a reconfiguration did not come about, 2 bad input, 130 Ctrl-C.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli._beside import Beside
from leeward.cli._common import CLUSTER_VARIABLE, DEFAULT_DIR
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._signals import signals

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import Ports
    from leeward.core.outcome import Outcome
    from leeward.core.settings import Chosen, Settings

EXIT_REFUSED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130
DEFAULT_NIMBUS = "127.0.0.1:6627"

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
HttpOption = Annotated[
    str | None, typer.Option("--http", metavar="HOST:PORT", help="Answer HTTP here: page, API, live events, metrics.")
]
HttpNameOption = Annotated[
    list[str] | None,
    typer.Option("--http-name", metavar="NAME", help="With --http: a name by which browsers ask; repeat for more."),
]
OtlpOption = Annotated[
    str | None, typer.Option("--otlp", metavar="URL", help="Send traces of reconfigurations to this collector (OTLP).")
]
EventsOption = Annotated[Path | None, typer.Option("--events", metavar="FILE", help="Append decisions as JSON lines.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    app.command("serve")(serve)
    app.command("drain")(drain)
    app.command("reconfigure")(reconfigure)
    app.command("status")(status)
    app.command("recover")(recover)


def serve(
    topology: Annotated[
        str | None, typer.Argument(metavar="[TOPOLOGY]", help="Name of a topology; without one, all of Leeward's.")
    ] = None,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    options: SetOption = None,
    events: EventsOption = None,
    once: Annotated[bool, typer.Option("--once", help="Make one plan, print it (--output), change nothing.")] = False,
    timeout: Annotated[float, typer.Option(help="With --once: seconds until it ends with the reason.")] = 300.0,
    output: OutputOption = Output.table,
    settings_help: Annotated[bool, typer.Option("--settings", help="Print all settings and end.")] = False,
    http: HttpOption = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="With --http: PEM chain.")] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="With --http: its key, PEM.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="With --http: other machines may connect without TLS.")
    ] = False,
    http_name: HttpNameOption = None,
    otlp: OtlpOption = None,
) -> None:
    """Measure topologies, plan for them and reconfigure them, until stopped. Start it twice for a standby.

    Example: leeward serve query1 -o edrp.r_max_s=0.2 --http 127.0.0.1:8600
    """
    from leeward.core.errors import ConfigError

    with _errors():
        if settings_help:
            from leeward.control.registry import describe_all

            typer.echo(describe_all())
            return
        settings = _settings(config, options or [])
        addresses = _addresses(nimbus, zookeeper, redis, cluster)
        if once and topology is None:
            raise ConfigError("--once is given without a topology.", remedy="Name one: leeward serve TOPOLOGY --once.")
        if once and topology:
            from leeward.cli._once import plan_once

            show(plan_once(topology, addresses, settings.of(topology), timeout), output)
            code = 0
        else:
            beside = Beside(http, tls_cert, tls_key, insecure, tuple(http_name or ()), otlp)
            code = _serve(topology, addresses, settings, events, beside, reread=_rereading(config, options or []))
    raise typer.Exit(code)


def _rereading(config: Path | None, options: Sequence[str]) -> tuple[Callable[[], str], Callable[[str], Chosen]]:
    """How a file of settings is read again: its text, and the settings of a text."""
    from leeward.cli._settings_file import parse_document, read_text
    from leeward.control.registry import setting_names
    from leeward.core.settings import settings_from

    if config is None:
        return str, lambda _: settings_from({}, options, more=setting_names)
    return (
        lambda: read_text(config),
        lambda text: settings_from(parse_document(config, text), options, more=setting_names),
    )


def _serve(
    topology: str | None, addresses: Addresses, chosen: Chosen, events: Path | None, beside: Beside, *,
    reread: tuple[Callable[[], str], Callable[[str], Chosen]],
) -> int:  # fmt: skip
    """Until stopped. One topology: also until it is gone and does not run under another id either."""
    from leeward.adapters.clock import SystemClock
    from leeward.adapters.events import configure_logs
    from leeward.adapters.network_file import network_named
    from leeward.adapters.post import PeerPost
    from leeward.adapters.reloading import Reloading
    from leeward.adapters.serving import serve_all, serve_one
    from leeward.adapters.wiring import sink_of
    from leeward.cli._tracing import traced
    from leeward.control.registry import Policies

    def prepared(chosen: Chosen) -> tuple[Chosen, Policies]:
        policies = Policies(chosen, PeerPost)
        for name in (topology, *chosen.topologies):
            policy = policies.of(name or "")  # imports the solver before anything waits, and refuses wrong settings
            if (prepare := getattr(policy, "prepare", None)) is not None:
                prepare()
            network_named(chosen.of(name or "").service.network)
        return chosen, policies

    configure_logs()
    first, (text, read) = prepared(chosen), reread
    with (
        signals() as (stop, interrupted),
        traced(beside.otlp, sink_of(events, SystemClock())) as sink,
        beside.answering(addresses, sink) as (sink, desk),
    ):
        opened = None if desk is None else desk.serving

        def serve(made: tuple[Chosen, Policies], over: threading.Event) -> None:
            if desk is not None:
                desk.choose(made[0])
            if topology is None:
                serve_all(addresses, *made, sink, over, opened=opened)
            else:
                serve_one(topology, addresses, *made, sink, over, opened=opened)

        Reloading(first, text=text, read=lambda text: prepared(read(text)), sink=sink).run(serve, stop)
    return EXIT_INTERRUPTED if interrupted.is_set() else 0


def drain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Host name of the supervisor, as Storm knows it.")],
    topology: Annotated[str, typer.Option("--topology", help="A running topology, to find ZooKeeper by.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="The node may be used again.")] = False,
    zookeeper: ZooKeeperOption = None,
    nimbus: NimbusOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Empty a node: its replicas leave with the next plan."""
    with _errors():
        from leeward.adapters.wiring import DEFAULT_ROOT, known_secrets, root_of, zookeeper_of
        from leeward.adapters.zookeeper import ZooClusterStore, connect
        from leeward.control.snapshot import nodes_of
        from leeward.core.errors import ConfigError

        addresses = _addresses(nimbus, zookeeper, None, cluster)
        conf = _conf(topology, addresses) if topology else {}
        client = connect(addresses.zookeeper or zookeeper_of(conf), secrets=known_secrets(conf, addresses))
        try:
            store = ZooClusterStore(client, root_of(conf) if conf else DEFAULT_ROOT)
            known = nodes_of(store.snapshot(lambda: None))
            if node not in known and not undo:
                raise ConfigError(f"node {node!r} has no supervisor.", remedy=f"Name one of {known}.")
            store.set_draining(node, not undo)
        finally:
            client.stop()
            client.close()
    typer.echo(f"{node} {'may be used again' if undo else 'drains'}")


def reconfigure(
    topology: Topology,
    replicas: Annotated[
        list[str], typer.Option("--replicas", metavar="COMPONENT=NODE:COUNT,...", help="Repeat for more components.")
    ],
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    options: SetOption = None,
    events: EventsOption = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the end.")] = 180.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would move and its price; change nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also if state that a component keeps outside of self.state is lost.")
    ] = False,
    output: OutputOption = Output.table,
) -> None:
    """Scale or move components by hand: by the service that leads, or here if none does.

    Example: leeward reconfigure query1 --replicas route=node1:1,node2:2 --dry-run
    """
    with _errors():
        from leeward.adapters.wiring import open_ports
        from leeward.control.guard import parse_replicas

        wanted = parse_replicas(replicas)
        settings = _settings(None, [*(options or []), "policy=none"]).service
        addresses = _addresses(nimbus, zookeeper, redis, cluster)
        if dry_run:
            from leeward.cli._once import preview_once

            show(preview_once(topology, wanted, addresses, settings, timeout, force=force), output)
            return
        with (
            signals() as (stop, interrupted),
            open_ports(topology, addresses, events=events, quiet=True, session_s=settings.session_s) as ports,
        ):
            answer = _ask(topology, ports, settings, {"replicas": wanted, "force": force}, stop, timeout)
    _tell(answer, interrupted, timeout)


def _tell(answer: Outcome | None, interrupted: threading.Event, timeout: float) -> None:
    """Print the answer; the exit code says whether it was done."""
    from leeward.core.outcome import Ending

    if interrupted.is_set():
        raise typer.Exit(EXIT_INTERRUPTED)
    if answer is None:
        typer.echo(f"no answer after {timeout:g} s")
        raise typer.Exit(EXIT_REFUSED)
    if answer.ending is Ending.REFUSED:
        typer.echo(f"error: {answer.why}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT)
    typer.echo(str(answer))
    raise typer.Exit(0 if answer.ending is Ending.DONE else EXIT_REFUSED)


def recover(
    topology: Topology,
    from_cut: Annotated[int | None, typer.Option("--from-cut", metavar="N", help="Restore this cut.")] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with empty state; sources read from their beginning.")
    ] = False,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the answer.")] = 60.0,
) -> None:
    """Decide from where a topology goes on that is held because no cut can be read (see `leeward status`).

    Example: leeward recover query1 --from-cut 41
    """
    with _errors():
        from leeward.adapters.wiring import open_ports
        from leeward.core.errors import ConfigError

        if (from_cut is None) != from_start or (from_cut is not None and from_cut < 1):
            raise ConfigError(
                f"--from-cut is {from_cut}, --from-start is {from_start}.",
                remedy="Give one of them: --from-cut N with N of `leeward status`, or --from-start.",
            )
        settings = _settings(None, ["policy=none"]).service
        addresses = _addresses(nimbus, zookeeper, redis, cluster)
        with (
            signals() as (stop, interrupted),
            open_ports(topology, addresses, quiet=True, session_s=settings.session_s) as ports,
        ):
            answer = _ask(topology, ports, settings, {"recover": from_cut or 0}, stop, timeout)
    _tell(answer, interrupted, timeout)


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


def status(
    topology: Topology,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    wait: Annotated[float, typer.Option(min=0.0, help="Seconds to wait until all its tasks run.")] = 0.0,
    output: OutputOption = Output.table,
) -> None:
    """Phase, epoch, replicas and places of a topology, and why it has none.

    Example: leeward status query1 --output json
    """
    with _errors():
        from leeward.adapters.wiring import open_ports
        from leeward.control.observe import status_of

        with open_ports(topology, _addresses(nimbus, zookeeper, redis, cluster), quiet=True) as ports:
            if wait:
                from leeward.cli._once import await_running

                await_running(topology, ports, wait)
            show(status_of(topology, ports), output)


# --- the edge


@contextmanager
def _errors() -> Iterator[None]:
    """Errors for people: one line, and an exit code that says whose fault it is."""
    from leeward.core.errors import ClusterRefusedError, LeewardError, NotReadyError

    try:
        yield
    except (ClusterRefusedError, NotReadyError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except LeewardError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None


def _settings(config: Path | None, options: Sequence[str]) -> Chosen:
    from leeward.cli._settings_file import read_document
    from leeward.control.registry import setting_names
    from leeward.core.settings import settings_from

    document = {} if config is None else read_document(config)
    return settings_from(document, options, more=setting_names)


def _addresses(nimbus: list[str] | None, zookeeper: str | None, redis: str | None, cluster: Path | None) -> Addresses:
    """From the options, else from the local cluster that runs, else Storm's defaults on this machine."""
    from leeward.adapters.wiring import Addresses
    from leeward.core.errors import ConfigError
    from leeward.core.secrets import FILE_VARIABLE, refuse_password

    refuse_password("--redis", redis)
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


def _conf(topology: str, addresses: Addresses) -> dict[str, object]:
    from leeward.adapters.nimbus import NimbusClient

    client = NimbusClient(addresses.nimbus)
    try:
        return dict(client.structure(topology).conf)
    finally:
        client.close()
