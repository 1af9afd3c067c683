"""`leeward serve`, `drain`, `reconfigure`, `recover`, `status`: the scheduler service and what people ask of it.

Exit codes: 0 done, 1 the cluster refused or a reconfiguration did not come about, 2 bad input or a request that is
refused, 130 Ctrl-C.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from leeward.cli._beside import Beside
from leeward.cli._common import EXIT_INTERRUPTED, refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    EventsOption,
    NimbusOption,
    RedisOption,
    SetOption,
    Topology,
    ZooKeeperOption,
    addresses_of,
    conf_of,
    request,
    settings_of,
)
from leeward.cli._signals import signals

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.core.settings import Chosen

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

    with refusing():
        if settings_help:
            from leeward.control.registry import describe_all

            typer.echo(describe_all())
            return
        reread = _rereading(config, options or [])
        settings = settings_of(config, options or [])
        addresses = addresses_of(nimbus, zookeeper, redis, cluster)
        if once and topology is None:
            raise ConfigError("--once is given without a topology.", remedy="Name one: leeward serve TOPOLOGY --once.")
        if once and topology:
            from leeward.cli._once import plan_once

            show(plan_once(topology, addresses, settings.of(topology), timeout), output)
            code = 0
        else:
            beside = Beside(http, tls_cert, tls_key, insecure, tuple(http_name or ()), otlp)
            code = _serve(topology, addresses, settings, events, beside, reread)
    raise typer.Exit(code)


class _Reread(NamedTuple):
    """How a file of settings is read again."""

    seen: str  #: its text now
    text: Callable[[], str]
    read: Callable[[str], Chosen]


def _rereading(config: Path | None, options: Sequence[str]) -> _Reread:
    from leeward.cli._settings_file import parse_document, read_text
    from leeward.control.registry import setting_names
    from leeward.core.settings import settings_from

    if config is None:
        return _Reread("", str, lambda _: settings_from({}, options, more=setting_names))
    return _Reread(
        read_text(config),
        lambda: read_text(config),
        lambda text: settings_from(parse_document(config, text), options, more=setting_names),
    )


def _serve(
    topology: str | None, addresses: Addresses, chosen: Chosen, events: Path | None, beside: Beside, reread: _Reread
) -> int:
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
    from leeward.control.settings_check import names_files

    def prepared(chosen: Chosen) -> tuple[Chosen, Policies]:
        policies = Policies(chosen, PeerPost)
        for name in (topology, *chosen.topologies):
            policy = policies.of(name or "")  # imports the solver before anything waits, and refuses wrong settings
            if (prepare := getattr(policy, "prepare", None)) is not None:
                prepare()
            network_named(chosen.of(name or "").service.network)
        return chosen, policies

    configure_logs()
    first = prepared(chosen)
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

        reloading = Reloading(
            first, seen=reread.seen, text=reread.text, read=lambda text: prepared(reread.read(text)), sink=sink,
            same=lambda old, new: old[0] == new[0] and not names_files(new[0]),
        )  # fmt: skip
        reloading.run(serve, stop)
    return EXIT_INTERRUPTED if interrupted.is_set() else 0


def drain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Host name of the supervisor, as Storm knows it.")],
    topology: Annotated[
        str, typer.Option("--topology", help="A running topology, to find ZooKeeper by; default: Nimbus' conf.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="The node may be used again.")] = False,
    zookeeper: ZooKeeperOption = None,
    nimbus: NimbusOption = None,
    cluster: ClusterOption = None,
    output: OutputOption = Output.table,
) -> None:
    """Empty a node: its replicas leave with the next plan.

    Example: leeward drain node2 --nimbus nimbus.example.org:6627
    """
    with refusing():
        from leeward.adapters.wiring import DEFAULT_ROOT, known_secrets, root_of, zookeeper_of
        from leeward.adapters.zookeeper import ZooClusterStore, connect
        from leeward.control.snapshot import nodes_of
        from leeward.core.errors import ConfigError

        addresses = addresses_of(nimbus, zookeeper, None, cluster)
        known_place = addresses.zookeeper and not (topology or nimbus)  # a local cluster has the usual root
        conf = {} if known_place else conf_of(topology, addresses)
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
    if output is Output.table:
        typer.echo(f"{node} {'may be used again' if undo else 'drains'}")
    else:
        show({"node": node, "draining": not undo}, output)


def reconfigure(
    topology: Topology,
    replicas: Annotated[
        list[str], typer.Option("--replicas", metavar="COMPONENT=NODE:COUNT,...", help="Repeat for more components.")
    ],
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
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

    The service that leads goes by its own limits; a dry run by those of --config and -o.

    Example: leeward reconfigure query1 --replicas route=node1:1,node2:2 --dry-run
    """
    with refusing():
        from leeward.control.guard import parse_replicas

        wanted = parse_replicas(replicas)
        settings = settings_of(config, [*(options or []), "policy=none"]).of(topology).service
        addresses = addresses_of(nimbus, zookeeper, redis, cluster)
        if dry_run:
            from leeward.cli._once import preview_once

            show(preview_once(topology, wanted, addresses, settings, timeout, force=force), output)
            return
        request(
            topology, {"replicas": wanted, "force": force}, addresses, settings, timeout=timeout, output=output,
            events=events,
        )  # fmt: skip


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
    output: OutputOption = Output.table,
) -> None:
    """Decide from where a topology goes on that is held because no cut can be read (see `leeward status`).

    Example: leeward recover query1 --from-cut 41
    """
    with refusing():
        from leeward.core.errors import ConfigError

        if (from_cut is None) != from_start or (from_cut is not None and from_cut < 1):
            raise ConfigError(
                f"--from-cut is {from_cut}, --from-start is {from_start}.",
                remedy="Give one of them: --from-cut N with N of `leeward status`, or --from-start.",
            )
        settings = settings_of(None, ["policy=none"]).service
        addresses = addresses_of(nimbus, zookeeper, redis, cluster)
        body = {"recover": from_cut or 0}
        request(topology, body, addresses, settings, timeout=timeout, output=output)


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
    with refusing():
        from leeward.adapters.wiring import open_ports
        from leeward.control.observe import status_of

        with open_ports(topology, addresses_of(nimbus, zookeeper, redis, cluster), quiet=True) as ports:
            if wait:
                from leeward.cli._once import await_running

                await_running(topology, ports, wait)
            show(status_of(topology, ports), output)
