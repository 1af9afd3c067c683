"""A UDP socket of the loop: all datagrams that are there are taken, and timers do not wait for the end of them."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from leeward.adapters.datagrams import AT_ONCE, LARGEST, Endpoint


def waiting(endpoint: Endpoint, count: int) -> None:
    """So many datagrams that the kernel has taken in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(count):
            sender.sendto(number.to_bytes(2, "big"), endpoint.address)


async def until(taken: list[bytes], count: int) -> None:
    end = time.monotonic() + 10
    while len(taken) < count:
        assert time.monotonic() < end, f"{len(taken)} of {count} were taken"
        await asyncio.sleep(0.001)


def test_all_that_wait_are_taken_in_their_order_and_the_loop_has_its_turns_between():
    async def work() -> None:
        taken: list[bytes] = []
        endpoint = Endpoint(("127.0.0.1", 0), taken.append, lambda: None)
        waiting(endpoint, 2 * AT_ONCE + 1)
        seen = []
        while len(taken) <= 2 * AT_ONCE and len(seen) < 1000:
            await asyncio.sleep(0)
            seen.append(len(taken))
        endpoint.close()
        assert {AT_ONCE, 2 * AT_ONCE} <= set(seen)
        assert taken == [number.to_bytes(2, "big") for number in range(2 * AT_ONCE + 1)]

    asyncio.run(work())


def test_one_that_ends_the_socket_is_the_last():
    async def work() -> None:
        taken: list[bytes] = []

        def take(datagram: bytes) -> None:
            taken.append(datagram)
            endpoint.close()

        endpoint = Endpoint(("127.0.0.1", 0), take, lambda: pytest.fail("nothing has failed"))
        waiting(endpoint, 3)
        await until(taken, 1)
        await asyncio.sleep(0.01)
        assert len(taken) == 1
        endpoint.close()  # once more is no error

    asyncio.run(work())


def test_the_largest_datagram_is_taken_whole_and_a_larger_one_is_not_sent():
    async def work() -> None:
        taken: list[bytes] = []
        failed: list[bool] = []
        endpoint = Endpoint(("127.0.0.1", 0), taken.append, lambda: failed.append(True))
        assert endpoint.send(bytes(LARGEST), endpoint.address)
        await until(taken, 1)
        endpoint.send(bytes(LARGEST + 1), endpoint.address)
        endpoint.close()
        assert taken == [bytes(LARGEST)] and failed == [True]

    asyncio.run(work())
