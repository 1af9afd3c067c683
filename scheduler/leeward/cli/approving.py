"""`leeward approve`, `freeze`, `rollback`, `apply`: decisions of people about one topology, left as requests.

The service that leads answers them; where none does, this command serves its own request. Exit codes: 0 done, 1 the
cluster refused or a reconfiguration did not come about, 2 bad input or a request that is refused, 130 Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._output import Output, OutputOption, show
from leeward.cli._service import (
    ClusterOption,
    ConfigOption,
    NimbusOption,
    RedisOption,
    Topology,
    ZooKeeperOption,
    addresses_of,
    request,
    settings_of,
)

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses

#: These commands decide nothing themselves.
NO_POLICY = ("policy=none",)

Timeout = Annotated[float, typer.Option(help="Seconds to wait for the end.")]
Force = Annotated[
    bool, typer.Option("--force", help="Also if state that a component keeps outside of self.state is lost.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the application."""
    app.command("approve")(approve)
    app.command("freeze")(freeze)
    app.command("rollback")(rollback)
    app.command("apply")(apply)


def approve(
    topology: Topology,
    plan: Annotated[int, typer.Option("--plan", metavar="ID", min=0, help="Its number; 0: the one that waits.")] = 0,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    timeout: Timeout = 180.0,
    output: OutputOption = Output.table,
) -> None:
    """Let the plan that waits be carried out (setting `approval`); `leeward diff` shows it.

    Example: leeward approve query1 --plan 3
    """
    with refusing():
        _decide(topology, {"approve": plan}, addresses_of(nimbus, zookeeper, redis, cluster), timeout, output)


def freeze(
    topology: Topology,
    undo: Annotated[bool, typer.Option("--undo", help="Plans are carried out again.")] = False,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Told wherever a plan is refused for it.")] = "",
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    timeout: Timeout = 60.0,
    output: OutputOption = Output.table,
) -> None:
    """Measure and plan, but carry nothing out except the recovery from losses.

    Example: leeward freeze query1 --why "release on Friday"
    """
    with refusing():
        body = {"freeze": not undo, "why": why}
        _decide(topology, body, addresses_of(nimbus, zookeeper, redis, cluster), timeout, output)


def rollback(
    topology: Topology,
    freeze_why: Annotated[
        str,
        typer.Option("--freeze", metavar="TEXT", help="Freeze it then, for this reason."),
    ] = "",
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    timeout: Timeout = 180.0,
    output: OutputOption = Output.table,
) -> None:
    """Go back to the deployment before the last reconfiguration; unless it is frozen, a policy may leave it again.

    Example: leeward rollback query1 --freeze "slower since 14:05"
    """
    with refusing():
        body = {"rollback": True, "freeze": freeze_why}
        _decide(topology, body, addresses_of(nimbus, zookeeper, redis, cluster), timeout, output)


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML or JSON: topology, and deployment by component.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would move; change nothing.")] = False,
    force: Force = False,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    config: ConfigOption = None,
    timeout: Timeout = 180.0,
    output: OutputOption = Output.table,
) -> None:
    """Carry out a deployment document, checked as `leeward reconfigure` checks.

    The service that leads goes by its own limits; a dry run by those of --config.

    Example: leeward apply query1.yaml --dry-run --config leeward.yaml
    """
    with refusing():
        topology, wanted = read_file(file)
        addresses = addresses_of(nimbus, zookeeper, redis, cluster)
        if dry_run:
            from leeward.cli._once import preview_once

            settings = settings_of(config, NO_POLICY).of(topology).service
            show(preview_once(topology, wanted, addresses, settings, timeout, force=force), output)
            return
        _decide(topology, {"replicas": wanted, "force": force}, addresses, timeout, output)


def _decide(topology: str, body: Mapping[str, Any], addresses: Addresses, timeout: float, output: Output) -> None:
    request(topology, body, addresses, settings_of(None, NO_POLICY).service, timeout=timeout, output=output)


def read_file(file: Path) -> tuple[str, dict[str, dict[str, int]]]:
    """Topology and replicas of a deployment document. Raises PlanError, and ConfigError for a file that is none."""
    import yaml

    from leeward.control.deployment_document import read_deployment
    from leeward.core.errors import ConfigError

    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.", remedy="Name a YAML or JSON file.") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        place = f", line {mark.line + 1}" if (mark := getattr(error, "problem_mark", None)) else ""
        raise ConfigError(f"{file}{place} is neither YAML nor JSON.", remedy="Write topology and deployment.") from None
    return read_deployment(document)
