"""Peers over UDP on loopback: packets are forwarded, faulty datagrams dropped, and frames that are too long counted."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from leeward.adapters.datagrams import LARGEST, DatagramProcess
from leeward.adapters.frames import LENGTH, Sealer
from leeward.adapters.peers import COMMON
from leeward.policies.agiledart.forwarding.forwarder import UNCONFIRMED, Forwarder, Limits
from leeward.policies.agiledart.forwarding.messages import KINDS, Ack, Name
from leeward.policies.agiledart.paths.routers import ThompsonRouter

KEY = b"0123456789abcdef0123456789abcdef"
HOPS = {0: (1, 2), 1: (3,), 2: (3,), 3: ()}
LIMITS = Limits(lifetime_s=1.0)


def addresses() -> dict[int, tuple[str, int]]:
    """Of ports that are free now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in HOPS]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = {v: one.getsockname() for v, one in enumerate(sockets)}
    for one in sockets:
        one.close()
    return found


def run(then: Callable[[dict[int, DatagramProcess]], Awaitable[None]], without: int = -1) -> None:
    """Start all, do that, and end all."""

    async def work() -> None:
        stop, known = asyncio.Event(), addresses()
        started = {
            v: DatagramProcess(
                Forwarder(v, 3, hops, ThompsonRouter(), limits=LIMITS, birth=1), KINDS, KEY, seed=v, tick_s=0.005,
                address=known.__getitem__,
            )
            for v, hops in HOPS.items() if v != without
        }  # fmt: skip
        tasks = [asyncio.create_task(process.run(stop)) for process in started.values()]
        try:
            await until(lambda: all(process.listening for process in started.values()))
            await then(started)
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(work(), 60))


async def until(true: Callable[[], bool], within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.01)


def submit(process: DatagramProcess, body: bytes) -> None:
    process.act(lambda now, rng: process.peer.submit(body, now, rng)[1])


def sealed(key: bytes, first: int, note: Ack) -> bytes:
    """A datagram of node 2: a frame without its length."""
    return Sealer((*COMMON, *KINDS), key, 2, first).seal(note)[LENGTH.size :]


def test_packets_are_delivered_and_confirmed():
    async def then(started: dict[int, DatagramProcess]) -> None:
        for number in range(100):
            submit(started[0], number.to_bytes(2, "big"))
        await until(lambda: len(started[0].peer.outcomes) == 100)
        assert {one.why for one in started[0].peer.outcomes} == {""}
        assert sorted(one.body for one in started[3].peer.deliveries) == [n.to_bytes(2, "big") for n in range(100)]
        assert started[0].traffic.sent >= 200 and not started[0].traffic.dropped

    run(then)


def test_without_the_sink_packets_are_reported():
    async def then(started: dict[int, DatagramProcess]) -> None:
        submit(started[0], b"x")
        await until(lambda: bool(started[0].peer.outcomes))
        assert started[0].peer.outcomes[0].why not in ("", UNCONFIRMED), "a node before the sink sends the end back"

    run(then, without=3)


def test_faulty_datagrams_are_dropped_and_counted_and_the_peer_serves_on():
    async def then(started: dict[int, DatagramProcess]) -> None:
        target = started[3]._address(3)
        note = Ack(name=Name(0, 1, 7), end=None, stamp_s=0.0, ahead_s=0.0)
        good, forged = sealed(KEY, 10, note), sealed(b"another key", 11, note)
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
            for datagram in (good, good, forged, b"", b"x", good + b"more"):
                stranger.sendto(datagram, target)
        await until(lambda: started[3].traffic.dropped.total() == 5)
        assert started[3].traffic.dropped == {"repeated": 1, "forged": 4}, "what is not sealed is forged, too"
        submit(started[1], b"x")
        await until(lambda: len(started[3].peer.deliveries) == 1)

    run(then)


def test_a_frame_that_no_datagram_carries_is_counted_and_its_packet_reported():
    async def then(started: dict[int, DatagramProcess]) -> None:
        submit(started[0], bytes(LARGEST))
        await until(lambda: bool(started[0].peer.outcomes))
        assert started[0].peer.outcomes[0].why and started[0].traffic.dropped["unsent"] >= 1

    run(then)


def test_an_address_that_is_taken_is_an_error():
    known = addresses()
    process = DatagramProcess(
        Forwarder(0, 3, (1,), ThompsonRouter()), KINDS, KEY, seed=0, tick_s=0.005, address=known.__getitem__
    )
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as taken:
        taken.bind(known[0])
        with pytest.raises(OSError, match="in use"):
            asyncio.run(process.run(asyncio.Event()))
