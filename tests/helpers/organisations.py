"""Organisations over real sockets within one process: a member that answers calls, and its process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect

from leeward.adapters.organisations.frames import Codec
from leeward.adapters.organisations.links import LINK_PATH, Address
from leeward.adapters.organisations.process import MemberProcess
from leeward.adapters.organisations.serving import caller
from leeward.adapters.organisations.tokens import Tokens
from leeward.core.errors import LeewardError
from leeward.core.members import To

NORTH, SOUTH, CLIENT = "north-0123456789abcdef", "south-0123456789abcdef", "client-0123456789abcde"
TOKENS = {"north": NORTH, "south": SOUTH, "client": CLIENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Wants an echo."""

    number: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The answer."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise LeewardError("an echo below 0.")


class Note(msgspec.Struct, frozen=True):
    """Is not answered."""

    text: str


KINDS = (Call, Echo, Note)
CODEC = Codec(KINDS)


@dataclass(frozen=True, slots=True)
class Heard:
    """An effect: a message has come."""

    sender: str
    message: Any


class Echoing:
    """A member that answers calls, and tells of all that it hears."""

    def __init__(self, name: str) -> None:
        self.name, self.ticks = name, 0

    def receive(self, sender: str, message: Any, now: float, rng: Random) -> Sequence[Any]:
        if isinstance(message, Note) and message.text == "fault":
            raise ZeroDivisionError
        answer = [To(sender, Echo(number=message.number))] if isinstance(message, Call) else []
        return [*answer, Heard(sender, message)]

    def tick(self, now: float, rng: Random) -> Sequence[Any]:
        self.ticks += 1
        return []


class Effects:
    """Effects that a process gave to the wiring, to wait for."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._more = asyncio.Event()

    def __call__(self, effect: Any) -> None:
        self.all.append(effect)
        self._more.set()

    async def until(self, count: int) -> list[Any]:
        async with asyncio.timeout(10):
            while len(self.all) < count:
                self._more.clear()
                await self._more.wait()
        return self.all


class Running:
    """A process of a member, and its effects."""

    def __init__(self, name: str, **options: Any) -> None:
        self.effects = Effects()
        self.process = MemberProcess(
            Echoing(name), KINDS, on_effect=self.effects, seed=1, **{"tokens": TOKENS, "tick_s": 0.01, **options}
        )
        self.traffic = self.process.traffic


@asynccontextmanager
async def running(name: str, **options: Any) -> AsyncIterator[Running]:
    one, stop = Running(name, **options), asyncio.Event()
    task = asyncio.create_task(one.process.run(stop))
    started = asyncio.create_task(one.process.started.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if started.done():
            yield one
    finally:
        started.cancel()
        stop.set()
        await task


def run(work: Callable[[], Awaitable[None]]) -> None:
    """In a loop of its own; at the end no task of the processes may be left."""

    async def watched() -> None:
        async with asyncio.timeout(20):
            await work()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left: {left}"

    asyncio.run(watched())


async def eventually(true: Callable[[], bool]) -> None:
    """For counts that no event tells of."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


def at(other: Running, token: str = SOUTH) -> Address:
    return Address(url=other.process.url, token=token)


async def dial(other: Running, token: str | None = CLIENT, **options: Any) -> ClientConnection:
    """A link by hand."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = other.process.url.replace("http", "ws", 1) + LINK_PATH
    return await connect(url, additional_headers=headers, proxy=None, **options)


async def _length(request: Request) -> JSONResponse:
    return JSONResponse({"length": len(await request.body())})


async def _name(request: Request) -> JSONResponse:
    return JSONResponse({"name": caller(request, Tokens(TOKENS))})


async def _refuses(request: Request) -> JSONResponse:
    raise LeewardError("field rate is -1.", remedy="Give a rate above 0.")


async def _fails(request: Request) -> JSONResponse:
    raise ZeroDivisionError


ROUTES = [
    Route("/length", _length, methods=["POST"]),
    Route("/name", _name),
    Route("/refuses", _refuses),
    Route("/fails", _fails),
]
