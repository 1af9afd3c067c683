"""Limits, faults and the end of organisations over real sockets within one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from random import Random

import httpx
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from websockets.exceptions import ConnectionClosed

from leeward.adapters.organisations import channels, links, serving
from leeward.adapters.organisations.frames import VERSION
from leeward.adapters.organisations.links import Rules
from leeward.core.errors import LeewardError
from leeward.core.members import To
from tests.helpers.organisations import (
    CODEC,
    ROUTES,
    SOUTH,
    Call,
    Echo,
    Heard,
    Note,
    Running,
    at,
    dial,
    eventually,
    run,
    running,
)


def test_an_oversized_frame_ends_its_link_with_1009():
    async def work() -> None:
        async with running("north", rules=Rules(largest=10_000)) as north:
            link = await dial(north)
            await link.send(b"x" * 10_001)
            with pytest.raises(ConnectionClosed) as closed:
                await link.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
            await eventually(lambda: not north.process.links.open_links())

    run(work)


def test_malformed_frames_are_counted_and_the_link_goes_on():
    async def work() -> None:
        async with running("north") as north:
            link = await dial(north)
            pack = msgspec.msgpack.encode
            good = CODEC.pack(Note("good"))
            for frame in (
                b"", b"\xc1", b"\x91" * 5_000, pack([VERSION + 1, []]), pack([VERSION, [[99, {}]]]),
                pack([VERSION, [[-1, {"text": ""}]]]), pack([VERSION, [[0, {"number": "x"}]]]),
                pack([VERSION, [[1, {"number": -1}]]]), "text",
            ):  # fmt: skip
                await link.send(frame)
            await link.send(pack([VERSION, [[0, 7], msgspec.Raw(good), [2, {"text": "fault"}], msgspec.Raw(good)]]))
            assert await north.effects.until(2) == [Heard("client", Note("good"))] * 2
            assert north.traffic.dropped == {"malformed": 10, "failed": 1} and north.traffic.links_opened == 1
            await link.close()

    run(work)


def test_routes_answer_errors_in_one_shape_and_refuse_large_bodies():
    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 600

    async def work() -> None:
        async with (
            running("north", routes=ROUTES, largest_body=1_000) as north,
            httpx.AsyncClient(base_url=north.process.url, trust_env=False) as client,
        ):
            assert (await client.post("/length", content=b"x" * 1_000)).json() == {"length": 1_000}
            assert (await client.post("/length", content=chunks(1))).json() == {"length": 600}
            assert (await client.get("/name", headers={"Authorization": f"Bearer {SOUTH}"})).json() == {"name": "south"}
            answers = {
                413: [await client.post("/length", content=body) for body in (b"x" * 1_001, chunks(2), chunks(50))],
                401: [await client.get("/name")],
                400: [await client.get("/refuses")],
                404: [await client.get("/nowhere")],
                405: [await client.get("/length")],
                500: [await client.get("/fails")],
            }
            for status, all_of_it in answers.items():
                for answer in all_of_it:
                    assert answer.status_code == status
                    assert answer.json().keys() == {"error", "remedy"} and answer.json()["remedy"]
            assert answers[400][0].json() == {"error": "field rate is -1.", "remedy": "Give a rate above 0."}
            assert answers[405][0].headers["allow"] == "POST"

    run(work)


def test_events_are_posted_from_threads_and_messages_to_oneself_stay_at_home():
    async def work() -> None:
        async with running("north") as north:
            post = north.process.post
            await asyncio.to_thread(post, lambda now, rng: [To("north", Call(number=3)), rng.random()])
            heard = await north.effects.until(3)
            assert heard[:2] == [Heard("north", Echo(number=3)), Heard("north", Call(number=3))]
            assert heard[2] == Random(1).random() and north.traffic.sent == 0
            post(lambda now, rng: 1 / 0)
            await eventually(lambda: north.traffic.dropped["failed"] == 1 and north.process.member.ticks > 2)
        post(lambda now, rng: ["nothing happens"])

    with pytest.raises(LeewardError, match="has not begun"):
        Running("north").process.post(lambda now, rng: [])
    run(work)


def test_the_end_closes_links_with_1001_and_sends_what_waits():
    async def work() -> None:
        async with running("north", rules=Rules(gather_s=5.0)) as north:
            link = await dial(north)
            await eventually(lambda: north.process.links.open_links() == {"client": 1})
            north.process.take([To("client", Note("farewell"))])
        assert CODEC.open(await link.recv()).messages == [Note("farewell")]
        with pytest.raises(ConnectionClosed) as closed:
            await link.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001

    run(work)


def test_requests_in_progress_are_answered_at_the_end_and_deaf_peers_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "GRACE_S", 0.1)
    monkeypatch.setattr(links, "FLUSH_S", 0.1)
    monkeypatch.setattr(channels, "CLOSE_S", 0.1)

    async def work() -> None:
        asked = asyncio.Event()

        async def hangs(_: Request) -> JSONResponse:
            asked.set()
            return await asyncio.Future()

        async with httpx.AsyncClient(trust_env=False) as client:
            async with running("north", routes=[Route("/hangs", hangs)]) as north:
                answer = asyncio.create_task(client.get(f"{north.process.url}/hangs"))
                await asked.wait()
                deaf = await dial(north, ping_interval=None)
                deaf.transport.pause_reading()
                await eventually(lambda: north.process.links.open_links() == {"client": 1})
                large = [To("client", Note("x" * 900_000)) for _ in range(20)]
                north.process.take(large)
            assert (await answer).status_code == 503 and (await answer).json()["error"] == "the organisation ends."
            dropped = north.traffic.dropped
            assert dropped["lost"] and north.traffic.sent + dropped["lost"] + dropped["unsent"] == len(large)
            deaf.transport.abort()
            await deaf.wait_closed()

    run(work)


def test_a_fault_of_a_tick_and_an_address_that_is_taken_end_the_process():
    async def work() -> None:
        async with running("north") as north:
            with pytest.raises(LeewardError, match=r"address 127\.0\.0\.1:\d+ cannot be used: .*in use"):
                async with running("south", port=north.process.port):
                    pass
        broken = Running("north")
        broken.process.member.tick = lambda now, rng: 1 / 0
        with pytest.raises(ZeroDivisionError):
            await broken.process.run(asyncio.Event())

    run(work)


def test_the_logs_of_a_quiet_life_are_empty_and_show_no_token(caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        async with running("north") as north, running("south", addresses={"north": at(north)}) as south:
            south.process.take([To("north", Call(number=1))])
            await south.effects.until(1)

    run(work)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert SOUTH not in caplog.text
