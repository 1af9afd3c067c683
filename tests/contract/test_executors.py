"""Workers as child processes: results, failures, a worker that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time

from leeward.adapters.executors import Done, Executors


async def work(number, order):
    if order == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if order == "fail":
        raise ValueError(order)
    await asyncio.sleep(order)
    return float(number)


def run(body):
    executors = Executors(2, work)

    async def all_of_it():
        async with executors:
            return await body(executors)

    return asyncio.run(all_of_it())


async def executed(executors, number, order) -> Done:
    future = asyncio.get_running_loop().create_future()
    executors.execute(number, order, future.set_result)
    return await asyncio.wait_for(future, 10)


def test_a_worker_does_several_pieces_at_a_time():
    async def body(executors):
        began = asyncio.get_running_loop().time()
        done = await asyncio.gather(*(executed(executors, number, 0.2) for number in (0, 0, 0, 1)))
        return done, asyncio.get_running_loop().time() - began

    done, seconds = run(body)
    assert [one.value for one in done] == [0.0, 0.0, 0.0, 1.0]
    assert all(one.seconds >= 0.2 for one in done) and seconds < 0.6


def test_work_that_raises_has_failed():
    assert run(lambda executors: executed(executors, 0, "fail")).value is None


def test_a_worker_that_dies_fails_what_it_had_and_is_replaced():
    async def body(executors):
        lost = asyncio.create_task(executed(executors, 0, 30))
        await asyncio.sleep(0.05)
        dead = await executed(executors, 0, "die")
        return dead, await lost, await executed(executors, 0, 0.01), await executed(executors, 1, 0.01)

    dead, lost, again, other = run(body)
    assert dead.value is None and lost.value is None
    assert again.value == 0.0 and other.value == 1.0


def test_no_worker_is_left():
    async def body(executors):
        return [pid for pid, _ in executors._workers]

    for pid in run(body):
        assert not os.path.exists(f"/proc/{pid}")


def test_a_worker_keeps_no_connection_of_its_parent_open():
    async def body(executors):
        here, there = socket.socketpair()
        await executed(executors, 0, "die")  # another one is forked, now that the two are there
        assert (await executed(executors, 0, 0.01)).value == 0.0
        there.close()
        here.settimeout(5)
        with here:
            return here.recv(1)

    assert run(body) == b""


def test_results_wait_for_a_parent_that_is_busy():
    async def body(executors):
        futures = [asyncio.get_running_loop().create_future() for _ in range(600)]
        for future in futures:
            executors.execute(0, 0.05, future.set_result)
        time.sleep(0.5)  # nobody reads meanwhile
        return await asyncio.wait_for(asyncio.gather(*futures), 20)

    assert sum(one.value is not None for one in run(body)) > 200
