"""The run of `leeward experiment agiledart-live-deployment`: a process for each agent, and applications at once.

The part at a real Nimbus is in `_agiledart_live_nimbus.py`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import typer

from leeward.adapters.datagrams import Address, DatagramClient, number_of
from leeward.cli._background import forked
from leeward.cli._common import sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.cli._overlay_serve import Node, run
from leeward.cli.overlay import _ask, place_all
from leeward.core.errors import LeewardError
from leeward.core.network_document import parse_network
from leeward.local.network.alone import NetworkAlone
from leeward.local.network.namespaces import check_possible
from leeward.local.network.plan import OUTSIDE, End
from leeward.local.network.sockets import enter
from leeward.policies.agiledart.deployment.messages import KINDS, AskRooms, Over, PlacementIs, RoomsAre
from leeward.policies.agiledart.experiments import live_deployment as study
from leeward.policies.agiledart.overlay.messages import AskState, StateIs

NAME, HOST = "agiledart-live-deployment", "127.0.0.1"
#: Of each agent that has a namespace of its own.
PORT = 7200
#: Until all agents have joined, until all applications of a run are decided, and until all rooms are free again, s.
JOIN_S, DECIDE_S, FREE_S = 120.0, 120.0, 60.0
#: Agents that join at a time, and between two looks, s.
AT_ONCE, LOOK_S = 10, 0.5
#: Applications at once -> the result of each run.
Documents = dict[int, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where agents and client are. `ends`: the namespaces of the agents; none: all are on loopback."""

    client: str
    agents: tuple[Address, ...]
    ends: tuple[End, ...] = ()

    @property
    def numbers(self) -> list[int]:
        """Of the agents, as messages are sent to them."""
        return [number_of(*address) for address in self.agents]


def run_live(
    *, quick: bool, nimbus: bool, network: bool, seed: int, base_port: int, folder: Path, output: Output, out: Path
) -> None:
    """The whole run; `folder`: for Nimbus' cluster and the networks. Raises LeewardError and OSError.

    Raises NotInstalledError before anything is measured where no network can be emulated.
    """
    sigterm_interrupts()
    scale = study.QUICK if quick else study.FULL
    out.mkdir(parents=True, exist_ok=True)
    began, centre = time.monotonic(), None
    if network:
        check_possible()
    if nimbus:  # before the agents, as it may be that no Storm is installed
        from leeward.cli._agiledart_live_nimbus import measure_nimbus

        centre = measure_nimbus(scale, folder=folder / "nimbus", base_port=base_port + scale.agents, seed=seed)
    documents, over = dict[str, Documents](), 0
    for between in [one for one in scale.between if network or not one.emulated]:
        with _places(scale, between, base_port, folder / "network", seed) as places:
            documents[between.name], more = _agents(scale, between, places, seed, out)
        over += more
    options = {" --quick": quick, " --no-nimbus": not nimbus, " --no-network": not network}
    command = f"leeward experiment {NAME} --seed {seed}{''.join(name for name, given in options.items() if given)}"
    finding = study.conclude(scale, documents, over, centre)
    tell(NAME, finding, command=command, seed=seed, seconds=time.monotonic() - began, output=output, out=out)


@contextmanager
def _places(scale: study.Scale, between: study.Between, base_port: int, folder: Path, seed: int) -> Iterator[Places]:
    """Raises NotInstalledError where no network can be emulated, PortsTakenError and StartError."""
    if not between.emulated:
        yield Places(client=HOST, agents=tuple((HOST, base_port + agent) for agent in range(scale.agents)))
        return
    network = NetworkAlone(folder, parse_network(between.document(scale.agents, seed)), base_port=base_port)
    with network.running():
        ends = tuple(network.emulation.end(study.name_of(agent)) for agent in range(scale.agents))
        agents = tuple((end.address, PORT) for end in ends)
        yield Places(client=network.emulation.end(OUTSIDE).address, agents=agents, ends=ends)


def _agents(scale: study.Scale, between: study.Between, places: Places, seed: int, out: Path) -> tuple[Documents, int]:
    """Of the agents; see `_measure`."""
    key = secrets.token_hex(32).encode()
    with ExitStack() as stack:
        for agent, address in enumerate(places.agents):
            node = Node(
                address=address, key=key, seeds=places.agents[:1] if agent else (), zone=study.ZONE,
                name=study.name_of(agent), capacity=study.CAPACITY, heartbeat_s=between.heartbeat_s,
            )  # fmt: skip
            end = places.ends[agent] if places.ends else None
            stack.enter_context(forked(_call(node, end), out / f"{node.name}.log"))
            if agent % AT_ONCE == AT_ONCE - 1 or agent == scale.agents - 1:
                asyncio.run(_joined(key, places, agent + 1))
        typer.echo(f"{scale.agents} agents have joined, {between.name}", err=True)
        return asyncio.run(_measure(scale, between, key, places, seed))


def _call(node: Node, end: End | None) -> Callable[[], None]:
    def call() -> None:
        if end is not None:
            enter(end)
        run(node, None, None)

    return call


async def _joined(key: bytes, places: Places, count: int) -> None:
    """Wait until so many have joined, know as many others as they can, and one of them is a scheduler."""
    client, until = await DatagramClient(KINDS, key).open(places.client), time.monotonic() + JOIN_S
    try:
        while True:
            told = [await _ask(client, number, AskState(), StateIs) for number in places.numbers[:count]]
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
    scale: study.Scale, between: study.Between, key: bytes, places: Places, seed: int
) -> tuple[Documents, int]:
    """Results of all runs, and how often an agent held more than it can."""
    rng, found, over = Random(seed), Documents(), 0
    client, numbers = await DatagramClient(KINDS, key).open(places.client), places.numbers
    try:
        for concurrent, runs in scale.runs.items():
            for number in range(runs):
                owners = {one: numbers[at] for one, at in study.batch(scale, concurrent, number, rng)}
                document = await place_all(client, owners, DECIDE_S)
                found.setdefault(concurrent, []).append(document)
                typer.echo(f"{concurrent} at once, {between.name}: {document['seconds']:.3f} s", err=True)
                over += sum(one.held > one.capacity for one in await _rooms(client, numbers))
                for one, to in owners.items():
                    await _ask(client, to, Over(application=one.application), PlacementIs)
                await _free(client, numbers, 1.5 * between.heartbeat_s)
    finally:
        client.close()
    return found, over


async def _rooms(client: DatagramClient, numbers: list[int]) -> list[RoomsAre]:
    return [await _ask(client, number, AskRooms(), RoomsAre) for number in numbers]


async def _free(client: DatagramClient, numbers: list[int], told_s: float) -> None:
    """Wait until no agent holds anything, and `told_s` more, in which heartbeats say so."""
    until = time.monotonic() + FREE_S
    while any(one.held for one in await _rooms(client, numbers)):
        if time.monotonic() > until:
            raise LeewardError(
                f"rooms are held {FREE_S:g} s after the end of all applications.", remedy="See the logs of the agents."
            )
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(told_s)
