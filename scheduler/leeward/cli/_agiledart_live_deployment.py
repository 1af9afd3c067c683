"""The run of `leeward experiment agiledart-live-deployment`: a process for each agent, and applications at once.

The part at a real Nimbus is in `_agiledart_live_nimbus.py`.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import typer

from leeward.adapters.datagrams import DatagramClient, number_of
from leeward.cli._background import forked
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.cli._overlay_serve import Node, run
from leeward.cli.overlay import _ask, place_all
from leeward.core.errors import LeewardError
from leeward.policies.agiledart.deployment.messages import KINDS, AskRooms, Over, PlacementIs, RoomsAre
from leeward.policies.agiledart.experiments import live_deployment as study
from leeward.policies.agiledart.overlay.messages import AskState, StateIs

NAME, HOST = "agiledart-live-deployment", "127.0.0.1"
#: Until all agents have joined, until all applications of a run are decided, and until all rooms are free again, s.
JOIN_S, DECIDE_S, FREE_S = 120.0, 120.0, 60.0
#: Agents that join at a time, and between two looks, s.
AT_ONCE, LOOK_S = 10, 0.5


def run_live(*, quick: bool, nimbus: bool, seed: int, base_port: int, folder: Path, output: Output, out: Path) -> None:
    """The whole run; `folder`: of Nimbus' cluster. Raises LeewardError and OSError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends everything, as Ctrl-C does
    scale = study.QUICK if quick else study.FULL
    out.mkdir(parents=True, exist_ok=True)
    began, centre = time.monotonic(), None
    if nimbus:  # before the agents, as it may be that no Storm is installed
        from leeward.cli._agiledart_live_nimbus import measure_nimbus

        centre = measure_nimbus(scale, folder=folder, base_port=base_port + scale.agents, seed=seed)
    documents, over = _agents(scale, base_port, seed, out)
    command = f"leeward experiment {NAME} --seed {seed}{' --quick' if quick else ''}{'' if nimbus else ' --no-nimbus'}"
    finding = study.conclude(scale, documents, over, centre)
    tell(NAME, finding, command=command, seed=seed, seconds=time.monotonic() - began, output=output, out=out)


def _agents(scale: study.Scale, base_port: int, seed: int, out: Path) -> tuple[dict[int, list[dict[str, Any]]], int]:
    """Of the agents; see `_measure`."""
    key = secrets.token_hex(32).encode()
    with ExitStack() as stack:
        for agent in range(scale.agents):
            node = Node(
                address=(HOST, base_port + agent), key=key, seeds=((HOST, base_port),) if agent else (),
                zone=study.ZONE, name=study.name_of(agent), capacity=study.CAPACITY, heartbeat_s=study.HEARTBEAT_S,
            )  # fmt: skip
            stack.enter_context(forked(_call(node), out / f"{node.name}.log"))
            if agent % AT_ONCE == AT_ONCE - 1 or agent == scale.agents - 1:
                asyncio.run(_joined(key, base_port, agent + 1))
        typer.echo(f"{scale.agents} agents have joined", err=True)
        return asyncio.run(_measure(scale, key, base_port, seed))


def _call(node: Node) -> Callable[[], None]:
    return lambda: run(node, None, None)


async def _joined(key: bytes, base_port: int, count: int) -> None:
    """Wait until so many have joined, know as many others as they can, and one of them is a scheduler."""
    client, until = await DatagramClient(KINDS, key).open(HOST), time.monotonic() + JOIN_S
    try:
        while True:
            told = [await _ask(client, number_of(HOST, base_port + at), AskState(), StateIs) for at in range(count)]
            leaves = min(count - 1, 24)
            ready = all(one.state == "joined" and len(one.leaves) >= leaves for one in told)
            if ready and any(one.schedules for one in told):
                return
            if time.monotonic() > until:
                raise LeewardError(f"{count} agents have not joined in {JOIN_S:g} s.", remedy="See their logs.")
            await asyncio.sleep(LOOK_S)
    finally:
        client.close()


async def _measure(
    scale: study.Scale, key: bytes, base_port: int, seed: int
) -> tuple[dict[int, list[dict[str, Any]]], int]:
    """Results of all runs, and how often an agent held more than it can."""
    rng, found, over = Random(seed), dict[int, list[dict[str, Any]]](), 0
    client = await DatagramClient(KINDS, key).open(HOST)
    numbers = [number_of(HOST, base_port + agent) for agent in range(scale.agents)]
    try:
        for concurrent, runs in scale.runs.items():
            for number in range(runs):
                owners = {one: numbers[at] for one, at in study.batch(scale, concurrent, number, rng)}
                document = await place_all(client, owners, DECIDE_S)
                found.setdefault(concurrent, []).append(document)
                typer.echo(f"{concurrent} at once: {document['seconds']:.3f} s", err=True)
                over += sum(one.held > one.capacity for one in await _rooms(client, numbers))
                for one, to in owners.items():
                    await _ask(client, to, Over(application=one.application), PlacementIs)
                await _free(client, numbers)
    finally:
        client.close()
    return found, over


async def _rooms(client: DatagramClient, numbers: list[int]) -> list[RoomsAre]:
    return [await _ask(client, number, AskRooms(), RoomsAre) for number in numbers]


async def _free(client: DatagramClient, numbers: list[int]) -> None:
    """Wait until no agent holds anything, and its heartbeat has said so."""
    until = time.monotonic() + FREE_S
    while any(one.held for one in await _rooms(client, numbers)):
        if time.monotonic() > until:
            raise LeewardError(
                f"rooms are held {FREE_S:g} s after the end of all applications.", remedy="See the logs of the agents."
            )
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(1.5 * study.HEARTBEAT_S)
