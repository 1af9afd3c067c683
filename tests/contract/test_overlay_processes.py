"""The overlay over real sockets: one process for each of 60 nodes, of which 18 are killed at once; bad frames."""

from __future__ import annotations

import asyncio
import hmac
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leeward.adapters.datagrams import LARGEST, DatagramClient, DatagramProcess, address_of, number_of
from leeward.adapters.frames import LENGTH, VERSION, Sealer
from leeward.adapters.peers import COMMON, AskTraffic, TrafficIs
from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import BITS, id_of, nearness, to_bytes
from leeward.policies.agiledart.overlay.messages import (
    KINDS,
    Arrived,
    AskState,
    Carry,
    Contact,
    Heartbeat,
    Known,
    StateIs,
    contact,
)
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer

ROOT = Path(__file__).parents[2]
KEY = "0123456789abcdef0123456789abcdef"
HEARTBEAT_S, NODES, KILLED = 2.0, 60, 18
#: Keys that are looked up from a living node each time.
KEYS = 40


class Nodes:
    """Processes by the numbers of their addresses, each in a group of its own."""

    def __init__(self) -> None:
        self.running: dict[int, subprocess.Popen[str]] = {}
        self.ids: dict[int, int] = {}

    def start(self, names: list[str], zone: str, seeds: list[int]) -> None:
        command = [sys.executable, "-m", "tests.contract.overlay_node"]
        started = [
            subprocess.Popen(
                [*command, name, KEY, str(HEARTBEAT_S), zone, *map(str, seeds)], cwd=ROOT, text=True,
                stdout=subprocess.PIPE, start_new_session=True,
            )
            for name in names
        ]  # fmt: skip
        for name, process in zip(names, started, strict=True):
            assert process.stdout
            number = int(process.stdout.readline())
            self.running[number], self.ids[number] = process, id_of(name)

    def kill(self, numbers: list[int]) -> None:
        for number in numbers:
            with suppress(ProcessLookupError):
                os.killpg(self.running[number].pid, signal.SIGKILL)
        for number in numbers:
            process = self.running.pop(number)
            process.wait(10)
            assert process.stdout
            process.stdout.close()

    def root(self, key: int) -> int:
        return min(self.running, key=lambda number: nearness(self.ids[number], key))


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    started = Nodes()
    yield started
    started.kill(list(started.running))


def with_client(work: Callable[[DatagramClient], Awaitable[None]], wait_s: float) -> None:
    async def run() -> None:
        client = await DatagramClient(KINDS, KEY.encode()).open("127.0.0.1")
        try:
            await work(client)
        finally:
            client.close()

    asyncio.run(asyncio.wait_for(run(), wait_s))


async def gather(
    client: DatagramClient, kind: type, count: int, wait_s: float, counts: Callable[[Any], bool] = lambda answer: True
) -> list:
    """Answers of a kind that count, until there are so many or time is over."""
    found, until = [], time.monotonic() + wait_s
    while len(found) < count and time.monotonic() < until:
        with suppress(TimeoutError):
            answer = await asyncio.wait_for(client.received.get(), until - time.monotonic())
            if isinstance(answer, kind) and counts(answer):
                found.append(answer)
    return found


async def until_joined(client: DatagramClient, nodes: Nodes, leaves: int, wait_s: float) -> None:
    """All have joined, and each has so many nodes in its leaf set."""
    until = time.monotonic() + wait_s
    while True:
        for number in nodes.running:
            client.send(number, AskState())
        told = await gather(client, StateIs, len(nodes.running), HEARTBEAT_S)
        if len(told) == len(nodes.running) and all(one.state == "joined" and len(one.leaves) == leaves for one in told):
            return
        assert time.monotonic() < until, sorted((one.state, len(one.leaves)) for one in told)


async def wrong(client: DatagramClient, nodes: Nodes, rng: random.Random, numbers: Iterator[int]) -> list[str]:
    """Keys that were not answered by the living node next to them, each asked from a node drawn by chance."""
    asked = {}
    me = Contact(node=bytes(16), at=client.number)
    for _ in range(KEYS):
        number, key = next(numbers), rng.getrandbits(BITS)
        asked[number] = key
        carry = Carry(key=to_bytes(key), origin=me, number=number, lookup=number, subject="")
        client.send(rng.choice(sorted(nodes.running)), carry)
    # not late answers to the keys before: on a busy machine each round would end with those of the round before it
    found = await gather(client, Arrived, KEYS, HEARTBEAT_S / 2, lambda answer: answer.lookup in asked)
    answers = {one.lookup: one.path[-1].at for one in found}
    return [f"{key:032x}" for number, key in asked.items() if answers.get(number) != nodes.root(key)]


async def until_reached(client: DatagramClient, nodes: Nodes, rng: random.Random, numbers: Iterator[int]) -> None:
    """Every key that is looked up is answered by the living node next to it; within ten heartbeats."""
    began, missing = time.monotonic(), ["not asked yet"]
    while missing:
        missing = await wrong(client, nodes, rng, numbers)
        took = (time.monotonic() - began) / HEARTBEAT_S
        assert not missing or took < 10, f"after {took:.1f} heartbeats {len(missing)} keys are not reached"


@pytest.mark.long
def test_sixty_processes_reach_every_key_again_after_eighteen_are_killed(nodes: Nodes):
    rng, numbers = random.Random(1), iter(range(1, 10**9))
    nodes.start(["node-0"], "zone-0", [])
    (first,) = nodes.running
    for at in range(1, NODES, 12):  # as many at once as import Python in a few seconds
        nodes.start([f"node-{number}" for number in range(at, min(at + 12, NODES))], "zone-0", [first])

    async def work(client: DatagramClient) -> None:
        await until_joined(client, nodes, 24, 60)
        await until_reached(client, nodes, rng, numbers)  # 24 leaves may not be the nearest ones yet
        nodes.kill(rng.sample(sorted(nodes.running), KILLED))
        await until_reached(client, nodes, rng, numbers)
        await until_joined(client, nodes, 24, 10 * HEARTBEAT_S)

    with_client(work, 110)


def free_number() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return number_of(*probe.getsockname())


def shells(count: int) -> list[DatagramProcess]:
    """So many nodes for one process, as of a machine that joins as several logical ones."""
    numbers = [free_number() for _ in range(count)]
    times = Times(heartbeat=0.5, ack=0.1)
    return [
        DatagramProcess(
            Peer(contact(id_of(str(at)), me), times=times, seeds=numbers[:at][:1]), KINDS, KEY.encode(), seed=at,
            tick_s=0.025,
        )
        for at, me in enumerate(numbers)
    ]  # fmt: skip


def run(processes: list[DatagramProcess], then: Callable[[DatagramClient], Awaitable[None]]) -> None:
    async def work(client: DatagramClient) -> None:
        stop = asyncio.Event()
        tasks = [asyncio.create_task(process.run(stop)) for process in processes]
        try:
            await until(lambda: all(process.peer.state != "joining" for process in processes))
            await then(client)
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    with_client(work, 30)


async def until(condition: Callable[[], bool], wait_s: float = 15.0) -> None:
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end, "it has not come about"
        await asyncio.sleep(0.02)


def test_bad_frames_are_dropped_and_counted_and_the_node_goes_on():
    processes = shells(3)
    target = processes[0].peer.me

    async def then(client: DatagramClient) -> None:
        def sealed(message: object, key: str = KEY) -> bytes:
            return Sealer((*COMMON, *KINDS), key.encode(), client.number, 1).seal(message)[LENGTH.size :]

        heartbeat = Heartbeat(me=contact(id_of("stranger"), free_number()))
        body = msgspec.msgpack.encode((VERSION, 7, 1, 1, len(COMMON), {"me": {"node": b"short", "at": 1}}))
        short = hmac.digest(KEY.encode(), body, "sha256") + body
        fresh = sealed(AskState())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bad:
            for frame in (b"", b"noise", sealed(heartbeat, KEY[::-1]), short, fresh, fresh, fresh[:-3]):
                bad.sendto(frame, address_of(target))
        await until(lambda: sum(processes[0].traffic.dropped.values()) >= 6)
        assert dict(processes[0].traffic.dropped) == {"forged": 4, "malformed": 1, "repeated": 1}
        client.send(target, AskTraffic())
        (counts,) = await gather(client, TrafficIs, 1, 5)
        assert counts.dropped["malformed"] == 1
        assert id_of("stranger") not in processes[0].peer.neighbours.contacts
        client.send(target, Known(contacts=(contact(id_of("nowhere"), 5),)))
        await until(lambda: processes[0].traffic.dropped["unaddressed"] > 0)
        assert [process.peer.state for process in processes] == ["joined"] * 3

    run(processes, then)


def test_an_id_that_is_taken_is_refused_over_sockets():
    processes = shells(3)
    twin = Peer(
        contact(processes[1].peer.contact.id, free_number()), times=Times(heartbeat=0.5, ack=0.1),
        seeds=[processes[0].peer.me],
    )  # fmt: skip
    processes.append(DatagramProcess(twin, KINDS, KEY.encode(), seed=9, tick_s=0.025))

    async def then(client: DatagramClient) -> None:
        """All join at once, so that either of the two may be the first."""
        await until(lambda: any(process.peer.state == "refused" for process in processes))
        states = []
        for number in (processes[1].peer.me, twin.me):
            client.send(number, AskState())
            (told,) = await gather(client, StateIs, 1, 5)
            states.append(told.state)
        assert sorted(states) == ["joined", "refused"]

    run(processes, then)


def test_an_address_that_is_taken_is_an_error():
    process = shells(1)[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(address_of(process.peer.me))
        with pytest.raises(OSError, match="in use"):
            asyncio.run(process.run(asyncio.Event()))


def test_a_message_that_does_not_fit_a_datagram_is_not_sent():
    process = shells(1)[0]

    async def then(client: DatagramClient) -> None:
        contacts = (contact(id_of("a"), client.number),) * (LARGEST // 30)
        process.send([(client.number, Known(contacts=contacts))])
        assert process.traffic.dropped == {"unsent": 1}

    run([process], then)


def test_numbers_are_addresses():
    assert address_of(number_of("127.0.0.1", 4711)) == ("127.0.0.1", 4711)
    assert number_of("255.255.255.255", 65535) < 1 << 63, "a frame carries 64 bits"
    for host, port in (("::1", 1), ("nowhere", 1), ("127.0.0.1", 0), ("127.0.0.1", 65536)):
        with pytest.raises(LeewardError):
            number_of(host, port)
    for number in (-1, 0, 5, 1 << 60):
        with pytest.raises(LeewardError):
            address_of(number)
