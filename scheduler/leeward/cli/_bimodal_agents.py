"""The run of `leeward experiment bimodal-agents`: an agent for each server, as processes on this machine, and tasks."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from contextlib import ExitStack
from pathlib import Path

import typer

from leeward.cli._background import background, leeward_command
from leeward.cli._common import sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.cli.agent import LEASE_S, end_all, holding, map_all
from leeward.policies.bimodal.experiments import agents as study
from leeward.policies.bimodal.model.agents_file import Agents, agents_to_json, read_agents

NAME = "bimodal-agents"
METHODS = ("survey", "least-cost")
#: Gossip goes on for so long before tasks come, and between two looks for reservations after they have ended, s.
SETTLE_S = 5.0
#: For all tasks of a run to be decided, s.
WAIT_S = 300.0


def run_agents(*, quick: bool, seed: int, base_port: int, output: Output, out: Path) -> None:
    """The whole run, once with each method. Raises LeewardError."""
    sigterm_interrupts()
    servers, tasks = (study.QUICK_SERVERS, study.QUICK_TASKS) if quick else (study.SERVERS, study.TASKS)
    network, chosen = study.made(servers, tasks, seed)
    out.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []
    for number, method in enumerate(METHODS):
        addresses = {v: ("127.0.0.1", base_port + number * servers + v) for v in network.servers}
        file, key = out / f"{method}.agents.json", secrets.token_hex(32)
        file.write_text(json.dumps(agents_to_json(Agents(network=network, addresses=addresses, nodes={})), indent=1))
        (secret := out / "secret").write_text(key)
        secret.chmod(0o600)
        agents = read_agents(file)
        with ExitStack() as stack:
            arguments = ["agent", "run", str(file), "--all", "--secret", str(secret), "--method", method]
            stack.enter_context(background(leeward_command(arguments), out / f"{method}.log"))
            asyncio.run(holding(agents, key.encode()))  # all are there
            time.sleep(SETTLE_S)
            typer.echo(f"{method}: {servers} agents run, {tasks} tasks come", err=True)
            wanted = [study.task_of(task) for task in chosen]
            found = asyncio.run(map_all(agents, wanted, key.encode(), WAIT_S))
            asyncio.run(end_all(agents, {task.name: task.delivery for task in wanted}, key.encode()))
            left = len(asyncio.run(left_after(agents, key.encode(), LEASE_S)))
        rows += study.conclude(method, servers, found, left)
    command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}"
    seconds = time.monotonic() - began
    tell(NAME, study.finding(rows), command=command, seed=seed, seconds=seconds, output=output, out=out)


async def left_after(agents: Agents, key: bytes, seconds: float) -> list[int]:
    """Servers that hold reservations after so long; []: none does any more, and it may take less time to know that.

    Agents that share two processors still have thousands of messages of LeastCostMap to read when the tasks end.
    """
    until = time.monotonic() + seconds
    while True:
        await asyncio.sleep(SETTLE_S)
        held = await holding(agents, key)
        if not held or time.monotonic() >= until:
            return held
