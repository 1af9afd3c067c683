"""Calls of servers beside the event loop: bounded, shared, and none that anybody may read holds up an act."""

from __future__ import annotations

import asyncio
import gc
import threading

import httpx
import pytest

from leeward.adapters.http.application import CALLS
from leeward.adapters.http.calls import Calls
from tests.helpers.http_api import ACTING, Stage

pytestmark = pytest.mark.timeout(60)
AT = "/api/topologies/taxi"


async def until(holds) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_those_that_ask_for_the_same_get_one_answer_and_the_next_one_asks_anew():
    asked, go = [], threading.Event()

    def deed():
        asked.append(1)
        go.wait(30)
        return len(asked)

    async def ask():
        calls = Calls(2)
        both = [asyncio.create_task(calls.shared("taxi", deed)) for _ in range(3)]
        await until(lambda: asked)
        go.set()
        return [*await asyncio.gather(*both), await calls.shared("taxi", deed)]

    assert asyncio.run(ask()) == [1, 1, 1, 2]


def test_a_refusal_is_told_to_all_that_asked_for_the_same():
    def deed():
        raise OSError("it is away")

    async def ask():
        calls = Calls(2)
        return await asyncio.gather(*(calls.shared("taxi", deed) for _ in range(2)), return_exceptions=True)

    assert [str(error) for error in asyncio.run(ask())] == ["it is away"] * 2


def answers(go):
    go.wait(30)


def fails(go):
    go.wait(30)
    raise OSError("it is away")


@pytest.mark.parametrize("ends_late", [answers, fails])
def test_a_call_that_nobody_waits_for_any_more_keeps_its_place_until_it_ends(ends_late, capfd, caplog):
    first, second, go, never = threading.Event(), threading.Event(), threading.Event(), []

    async def ask():
        calls = Calls(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(calls(lambda: first.set() or ends_late(go)), 0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(calls(lambda: never.append(1)), 0.05)
        waiting = asyncio.create_task(calls(second.set))
        await asyncio.sleep(0.05)
        assert first.is_set() and not second.is_set()
        go.set()
        await waiting

    asyncio.run(ask())
    gc.collect()
    assert second.is_set() and not never, "one that waited for a place, and waits no more, is not begun"
    assert capfd.readouterr().err == caplog.text == "", "a late end is no fault of a thread or of the loop"


def test_while_nimbus_and_zookeeper_hang_for_readers_a_topology_can_be_frozen():
    stage, hangs = Stage(), threading.Event()
    stage.desk.status = lambda name: hangs.wait(30) and {}
    stage.desk.history = lambda name: hangs.wait(30) and ()

    async def ask():
        transport = httpx.ASGITransport(stage.application())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600", timeout=50) as client:
            reading = [asyncio.create_task(client.get(f"{AT}/{name}")) for name in ["status", "history"] * (CALLS + 4)]
            await asyncio.sleep(0.1)
            frozen = await asyncio.wait_for(client.post(f"{AT}/freeze", json={}, headers=ACTING), 10)
            assert not hangs.is_set()
            hangs.set()
            return frozen.status_code, [answer.status_code for answer in await asyncio.gather(*reading)]

    assert asyncio.run(ask()) == (200, [200] * 2 * (CALLS + 4))
