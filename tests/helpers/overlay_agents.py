"""Agents of the overlay as people start them: `leeward overlay serve`, each a process in a group of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from leeward.adapters.datagrams import DatagramClient, address_of, number_of
from leeward.policies.agiledart.deployment.messages import KINDS, AskRooms, RoomsAre
from leeward.policies.agiledart.overlay.messages import AskState, StateIs

KEY = "0123456789abcdef0123456789abcdef"


def free_number() -> int:
    """The number of a free address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return number_of(*probe.getsockname())


class Agents:
    """By the numbers of their addresses."""

    def __init__(
        self, folder: Path, *, heartbeat_s: float = 1.0, secrets: Path | None = None, base_port: int = 0
    ) -> None:
        """`secrets`: a cluster's file; None: one of its own. `base_port`: of ports one after another, for agents that
        also listen by TCP; 0: any that is free for datagrams."""
        self.folder, self.heartbeat_s, self._ports = folder, heartbeat_s, count(base_port) if base_port else None
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.names: dict[int, str] = {}
        self.secrets = secrets or folder / "overlay-secrets.json"
        if secrets is None:
            self.secrets.write_text(json.dumps({"agent_secret": KEY}))
            self.secrets.chmod(0o600)
        self.key = json.loads(self.secrets.read_text())["agent_secret"]

    def start(self, name: str, *, capacity: int, zone: str = "north", options: Sequence[str] = ()) -> int:
        """One more, which joins by the first."""
        number = number_of("127.0.0.1", next(self._ports)) if self._ports else free_number()
        command = [str(Path(sys.executable).with_name("leeward")), "overlay", "serve", self.address(number)]
        command += ["--secrets", str(self.secrets), "--name", name, "--capacity", str(capacity), "--zone", zone]
        command += ["--heartbeat", str(self.heartbeat_s), *options]
        for seed in list(self.running)[:2]:
            command += ["--join", self.address(seed)]
        with (self.folder / f"{name}.log").open("w") as log:
            self.running[number] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.names[number] = name
        return number

    def address(self, number: int) -> str:
        """HOST:PORT."""
        return "{}:{}".format(*address_of(number))

    def end(self, number: int, sign: signal.Signals = signal.SIGKILL) -> int:
        """End one with all its children; its exit code."""
        process = self.running.pop(number)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def end_all(self) -> None:
        """After a test."""
        for number in list(self.running):
            self.end(number)

    def log(self, number: int) -> str:
        """All that it has printed."""
        return (self.folder / f"{self.names[number]}.log").read_text()

    def ask(self, work: Callable[[DatagramClient], Awaitable[Any]], wait_s: float = 60.0) -> Any:
        """A client's work."""

        async def run() -> Any:
            client = await DatagramClient(KINDS, self.key.encode()).open("127.0.0.1")
            try:
                return await work(client)
            finally:
                client.close()

        return asyncio.run(asyncio.wait_for(run(), wait_s))


async def told(client: DatagramClient, numbers: Sequence[int], message: object, kind: type, key: Any) -> dict[int, Any]:
    """The answer of each agent, asked again until all have answered.

    `key`: of an answer, the agent's number; None: it is not the answer.
    """
    found: dict[int, Any] = {}
    until = time.monotonic() + 30
    while missing := [number for number in numbers if number not in found]:
        assert time.monotonic() < until, f"{len(missing)} agents do not answer"
        for number in missing:
            client.send(number, message)
        with suppress(TimeoutError):
            while len(found) < len(numbers):
                answer = await asyncio.wait_for(client.received.get(), 0.5)
                if isinstance(answer, kind) and (number := key(answer)) is not None:
                    found[number] = answer
    return found


async def states(client: DatagramClient, numbers: Sequence[int]) -> dict[int, StateIs]:
    """Of agents."""
    return await told(client, numbers, AskState(), StateIs, lambda answer: answer.me.at)


async def rooms(client: DatagramClient, agents: Agents) -> dict[str, RoomsAre]:
    """Of all that run, by name."""
    found: dict[str, RoomsAre] = {}
    for number in agents.running:  # an answer has the name only
        answer = await told(client, [number], AskRooms(), RoomsAre, lambda answer, number=number: number)
        found[agents.names[number]] = answer[number]
    return found


async def joined(client: DatagramClient, agents: Agents, wait_s: float = 60.0) -> dict[int, StateIs]:
    """Their states, once all have joined, know each other and one is a scheduler."""
    until, leaves = time.monotonic() + wait_s, min(len(agents.running) - 1, 24)
    while True:
        found = await states(client, list(agents.running))
        ready = all(one.state == "joined" and len(one.leaves) >= leaves for one in found.values())
        if ready and any(one.schedules for one in found.values()):
            return found
        assert time.monotonic() < until, sorted((one.state, len(one.leaves)) for one in found.values())
        await asyncio.sleep(0.2)
