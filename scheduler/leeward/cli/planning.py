"""`leeward plan` and `leeward diff`: tell a change before it is made, and make none.

Exit codes are those of a comparison: 0 nothing would change, 2 something would, 1 it could not be found out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    NimbusOption,
    RedisOption,
    SetOption,
    Topology,
    ZooKeeperOption,
    addresses_of,
    settings_of,
)

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.cli._once import Tell
    from leeward.core.settings import Chosen

EXIT_FAILED, EXIT_CHANGE = 1, 2
#: Raised for words that a command does not take; Typer has no name of its own for it.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    app.command("plan", cls=_Comparison)(plan_command)
    app.command("diff", cls=_Comparison)(diff_command)


class _Comparison(TyperCommand):
    """Words that it does not take end it with 1, as 2 tells of a change."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            error.exit_code = EXIT_FAILED  # type: ignore[attr-defined]
            raise


def plan_command(
    topology: Topology,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    options: SetOption = None,
    timeout: Annotated[float, typer.Option(help="Seconds until it ends with the reason.")] = 300.0,
    output: OutputOption = Output.table,
) -> None:
    """The plan that the policy would make now, how it would be carried out, and the guard that refuses it, if one does.

    It goes by what the running service has learnt, and tells how old that is. Exit code 0: no change; 2: a change. The
    delays of a running service (cool-down, scale_down_s, no_return_s) are not known here.

    Example: leeward plan query1 -o edrp.r_max_s=0.2 --output json
    """
    with refusing(EXIT_FAILED):
        document = planned(
            topology, addresses_of(nimbus, zookeeper, redis, cluster), settings_of(config, options or []), timeout
        )
    show(document, output)
    raise typer.Exit(EXIT_CHANGE if document["change"] else 0)


def planned(topology: str, addresses: Addresses, chosen: Chosen, timeout: float) -> dict[str, Any]:
    """The document of `leeward plan`. Raises LeewardError."""
    from leeward.cli._once import in_time

    settings = chosen.of(topology).service

    def work(tell: Tell) -> dict[str, Any]:
        from leeward.adapters.post import PeerPost
        from leeward.adapters.wiring import open_ports
        from leeward.cli._once import _view
        from leeward.control.dry_run import dry_run
        from leeward.control.observe import standing_of

        tell(f"{topology}: a plan by {settings.policy}, or why there is none, within {timeout:g} s")
        with open_ports(topology, addresses, quiet=True, network=settings.network) as ports:
            standing = standing_of(topology, ports)
            view = _view(topology, ports, settings, tell)
            tell("planning; the first plan on a machine compiles the solver, about two minutes")
            frozen = bool(standing and standing.frozen)
            return dry_run(view, chosen, now=ports.clock.now(), frozen=frozen, post=PeerPost)

    return in_time(work, timeout)


def diff_command(
    topology: Topology,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="A deployment document, in place of the plan that waits."),
    ] = None,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    output: OutputOption = Output.table,
) -> None:
    """The present deployment against the one that waits for approval, or against a document's.

    Exit code 0: they are the same, or no plan waits; 2: they differ.

    Example: leeward diff query1 --file query1.yaml
    """
    with refusing(EXIT_FAILED):
        from leeward.adapters.wiring import open_ports
        from leeward.cli.approving import read_file
        from leeward.control.deployment_document import diff_document
        from leeward.control.observe import status_of
        from leeward.core.errors import ConfigError

        wanted = None
        if file is not None:
            named, wanted = read_file(file)
            if named != topology:
                raise ConfigError(f"--file is about {named!r}, not {topology!r}.", remedy="Name the same topology.")
        with open_ports(topology, addresses_of(nimbus, zookeeper, redis, cluster), quiet=True) as ports:
            status = status_of(topology, ports)
    document = diff_document(status, wanted)
    show(document, output)
    raise typer.Exit(EXIT_CHANGE if document["changes"] else 0)
