"""`leeward approve`, `freeze`, `rollback`, `apply`: decisions of people about one topology, left as requests.

The service that leads answers them; where none does, this command serves its own request. Exit codes: 0 done, 1 the
cluster refused or a reconfiguration did not come about, 2 bad input or a request that is refused, 130 Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._output import Output, OutputOption, show
from leeward.cli._signals import signals
from leeward.cli.serve import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    ClusterOption,
    NimbusOption,
    RedisOption,
    Topology,
    ZooKeeperOption,
    _addresses,
    _ask,
    _errors,
    _settings,
)

if TYPE_CHECKING:
    from leeward.adapters.wiring import Addresses
    from leeward.core.outcome import Outcome

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
    with _errors():
        _request(topology, {"approve": plan}, _addresses(nimbus, zookeeper, redis, cluster), timeout, output)


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
    with _errors():
        body = {"freeze": not undo, "why": why}
        _request(topology, body, _addresses(nimbus, zookeeper, redis, cluster), timeout, output)


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
    with _errors():
        body = {"rollback": True, "freeze": freeze_why}
        _request(topology, body, _addresses(nimbus, zookeeper, redis, cluster), timeout, output)


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML or JSON: topology, and deployment by component.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would move; change nothing.")] = False,
    force: Force = False,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
    timeout: Timeout = 180.0,
    output: OutputOption = Output.table,
) -> None:
    """Carry out a deployment document, checked as `leeward reconfigure` checks.

    Example: leeward apply query1.yaml --dry-run
    """
    with _errors():
        topology, wanted = read_file(file)
        addresses = _addresses(nimbus, zookeeper, redis, cluster)
        if dry_run:
            from leeward.cli._once import preview_once

            settings = _settings(None, ["policy=none"]).service
            show(preview_once(topology, wanted, addresses, settings, timeout, force=force), output)
            return
        _request(topology, {"replicas": wanted, "force": force}, addresses, timeout, output)


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


def _request(topology: str, body: Mapping[str, Any], addresses: Addresses, timeout: float, output: Output) -> None:
    """Leave it, wait for the answer, print it; the exit code says how it ended."""
    from leeward.adapters.wiring import open_ports

    settings = _settings(None, ["policy=none"]).service
    with (
        signals() as (stop, interrupted),
        open_ports(topology, addresses, quiet=True, session_s=settings.session_s) as ports,
    ):
        answer = _ask(topology, ports, settings, body, stop, timeout)
    if interrupted.is_set():
        raise typer.Exit(EXIT_INTERRUPTED)
    if answer is None:
        typer.echo(f"error: no answer after {timeout:g} s. See leeward status, or give more --timeout.", err=True)
        raise typer.Exit(EXIT_REFUSED)
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
