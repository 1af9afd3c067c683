"""`leeward fragments ...`: agents that keep fragments of other nodes' state, and the choice of their parameters."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli._common import refusing


def register(app: typer.Typer) -> None:
    """Adds `fragments` and its sub-commands to the command line."""
    fragments = typer.Typer(help="Keep checkpoints in erasure-coded fragments (AgileDART).", no_args_is_help=True)
    fragments.command("serve")(serve)
    fragments.command("tune")(tune_command)
    app.add_typer(fragments, name="fragments")


def serve(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where to listen; port 0: any free one.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the fragments; kept over a restart.")],
    secrets: Annotated[
        Path, typer.Option(envvar="LEEWARD_SECRETS", help="The cluster's secrets file, with agent_secret.")
    ],
    most_mb: Annotated[float, typer.Option(min=0.001, help="Keep at most so many MB.")] = 10_000.0,
) -> None:
    """Run the agent of this node until stopped. It stores and gives fragments, and knows nothing of their content.

    Example: leeward fragments serve 10.0.0.7:6700 --dir /var/lib/leeward --secrets secrets.json
    """
    from leeward.adapters.fragment_agent import FragmentAgent, FragmentFiles
    from leeward.core.errors import ConfigError
    from leeward.wire.fragments import split
    from leeward.wire.secrets import read_secrets

    with refusing():
        secret = read_secrets(secrets).agent_secret
        if not secret:
            raise ConfigError(f"secrets file {str(secrets)!r} has no agent_secret.", remedy="Put one into it.")
        host, port = split(address)
        agent = FragmentAgent(FragmentFiles(folder, int(most_mb * 1e6)), (host, port), secret.encode())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: agent.close())
    typer.echo(f"fragments are kept at {host}:{agent.port}")
    agent.run()


def tune_command(
    state_mb: Annotated[float, typer.Argument(metavar="MB", help="State of one task, MB.")],
    recover: Annotated[float, typer.Option(help="Seconds until state and input are to be back.")],
    neighbours: Annotated[int, typer.Option(min=1, help="Agents that may keep its fragments.")] = 24,
    uplink: Annotated[float, typer.Option(help="MB/s of a neighbour.")] = 10.0,
    download: Annotated[float, typer.Option(help="MB/s of a node that rebuilds.")] = 100.0,
    upload: Annotated[float, typer.Option(help="MB/s of a node that writes checkpoints.")] = 10.0,
    failures: Annotated[float, typer.Option(help="Failures of one neighbour in a day.")] = 1.0,
    loss: Annotated[float, typer.Option(help="Most probability that the state is lost when its node fails.")] = 1e-6,
) -> None:
    """Choose m, k and the period of checkpoints from state size, network and service level, as JSON.

    Example: leeward fragments tune 50 --recover 120
    """
    from leeward.core.options import read
    from leeward.policies.agiledart.recovery.settings import FragmentSettings
    from leeward.policies.agiledart.recovery.tuning import Wish, tune

    with refusing():
        values: dict[str, Any] = {"uplink": uplink, "download": download, "upload": upload, "failures": failures}
        settings = read(FragmentSettings, values)
        choice = tune(state_mb * 1e6, settings.facts(neighbours), Wish(recover_s=recover, loss=loss))
    names = ("m", "k", "period_s", "rebuild_s", "checkpoint_s", "loss")
    typer.echo(json.dumps({name: getattr(choice, name) for name in names}, indent=1))
