"""A Starlette application in the running event loop, until it is told to stop; errors as JSON; limits of bodies.

Every error of a route is `{"error": ..., "remedy": ...}`: a LeewardError as 400, those of HTTP under their own number.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from leeward.adapters.organisations.channels import CLOSE_S, PING_S
from leeward.adapters.organisations.frames import LARGEST
from leeward.adapters.organisations.tokens import Tokens
from leeward.core.errors import LeewardError

#: Bytes of a request's body.
LARGEST_BODY = 1 << 20
#: Of a body that is refused so many bytes are still read, for so long, s.
LINGER, LINGER_S = 16 << 20, 2.0
#: A connection on which the head of a request has not come for so long is closed, s; the same of a part of a body.
HEAD_S, BODY_S = 10.0, 30.0
#: Requests that are being answered at the end have so long, s.
GRACE_S = 5
#: Tasks and connections that uvicorn takes at a time, links included; more are answered 503.
CONNECTIONS = 4096

CLOSES = {"Connection": "close"}
REMEDIES = {
    401: "Send the header Authorization: Bearer TOKEN, with a token that this organisation knows.",
    403: "Use a token that is allowed to do this.",
    404: "Check the path and what it names.",
    408: "Send the whole body that Content-Length tells of.",
    405: "Use one of the methods in the header Allow.",
    413: "Send less in one request.",
    503: "Try again later.",
}

_log = logging.getLogger(__name__)


# --- errors


def error(status: int, text: str, remedy: str = "", headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer in the one shape of errors; without a remedy, that of the status."""
    content = {"error": text, "remedy": remedy or REMEDIES.get(status, "")}
    return JSONResponse(content, status_code=status, headers=headers)


async def _http_error(_: Request, raised: Exception) -> Response:
    assert isinstance(raised, HTTPException)
    return error(raised.status_code, raised.detail, headers=dict(raised.headers or {}))


async def _our_error(_: Request, raised: Exception) -> Response:
    assert isinstance(raised, LeewardError)
    return error(400, raised.message, raised.remedy)


async def _fault(_: Request, raised: Exception) -> Response:
    return error(500, "the organisation failed to answer.", "Read its log.")


def caller(connection: HTTPConnection, tokens: Tokens) -> str:
    """The name that a request's token proves. Raises HTTPException (401) without a token that is known."""
    name = tokens.name_of(connection.headers.get("authorization"))
    if name is None:
        raise HTTPException(401, "the token is missing or unknown.", headers={"WWW-Authenticate": "Bearer"})
    return name


class LimitBodies:
    """Refuses requests whose body is over a limit, with 413; chunked ones when the limit is reached.

    One of which no more comes is given up with 408.
    """

    def __init__(self, app: ASGIApp, largest: int = LARGEST_BODY) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = HTTPException(413, f"the body has more than {self._largest} bytes.", headers=CLOSES)
        headers = Headers(scope=scope)
        told = headers.get("content-length", "")
        if told.isdigit() and int(told) > self._largest:
            if "expect" not in headers:  # otherwise the client waits to be told whether to send it
                await _discard(receive)
            await (await _http_error(Request(scope), refused))(scope, receive, send)
            return
        taken, whole = 0, False

        async def counted() -> Message:
            nonlocal taken, whole
            try:
                message = await asyncio.wait_for(receive(), None if whole else BODY_S)
            except TimeoutError:
                raise HTTPException(408, "the rest of the body has not come.", headers=CLOSES) from None
            taken, whole = taken + len(message.get("body", b"")), not message.get("more_body")
            if taken > self._largest:
                if message.get("more_body"):
                    await _discard(receive)
                raise refused  # in the route, which reads its body; Starlette answers
            return message

        await self._app(scope, counted, send)


class EndWithAnswer:
    """A request that is cancelled because the organisation ends is told so, with 503."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except asyncio.CancelledError:  # by the server, and this is the whole of its task
            if begun or scope["type"] != "http":
                raise
            await error(503, "the organisation ends.")(scope, receive, send)


async def _discard(receive: Receive) -> None:
    """The rest of a body, within limits: a connection that is closed before is reset, and the answer lost with it."""
    left = LINGER
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def application(routes: Sequence[BaseRoute], largest_body: int = LARGEST_BODY) -> Starlette:
    """With the one shape of errors, and the limit of bodies."""
    return Starlette(
        routes=routes,
        middleware=[Middleware(EndWithAnswer), Middleware(LimitBodies, largest=largest_body)],
        exception_handlers={HTTPException: _http_error, LeewardError: _our_error, Exception: _fault},
    )


# --- the server


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one. Raises LeewardError if the address cannot be used."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, OverflowError) as raised:
        raise LeewardError(
            f"address {host}:{port} cannot be used: {getattr(raised, 'strerror', None) or raised}.",
            remedy="Name an address of this machine and a port that is free, or port 0.",
        ) from None
    # asyncio sets it on sockets that name their protocol, and these do not; connections have it of the listener
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class _Prompt(H11Protocol):
    """Closes a connection on which no whole head of a request comes: uvicorn would wait for ever, and a thousand
    connections that say nothing are all that a process may have open.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As uvicorn does."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """As uvicorn does, which waits for the rest of a later head for ever, too."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._heard()
        elif before is not None and before.response_complete:
            self._wait()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """As uvicorn does."""
        self._heard()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn does."""
        self._heard()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _heard(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """Leaves signals to the command that runs it, and tells when it listens."""

    def __init__(self, config: uvicorn.Config, started: asyncio.Event) -> None:
        super().__init__(config)
        self._started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None of them."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does."""
        await super().startup(sockets)
        self._started.set()


async def serve(
    app: ASGIApp, listener: socket.socket, stop: asyncio.Event, *, tls: ssl.SSLContext | None = None,
    started: asyncio.Event | None = None, before_end: Callable[[], Awaitable[None]] | None = None,
    largest_frame: int = LARGEST,
) -> None:  # fmt: skip
    """Answer until `stop`; then await `before_end`, end all connections, and return with no task left.

    Logs warnings and errors through the logger `uvicorn.error`, whose handlers are the command's own.
    """
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, lifespan="off", http=_Prompt,
        ws="websockets-sansio", ws_max_size=largest_frame, ws_per_message_deflate=False, ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S, proxy_headers=False, server_header=False, limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE_S,
    )  # fmt: skip
    config.load()
    config.ssl = tls  # a context, checked before; uvicorn would take the names of files
    server = _Server(config, started or asyncio.Event())
    serving = asyncio.create_task(server.serve([listener]), name="http server")
    stopping = asyncio.create_task(stop.wait(), name="stop of the http server")
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if before_end is not None:
            await before_end()
    finally:
        stopping.cancel()
        server.should_exit = True
        await asyncio.gather(stopping, return_exceptions=True)
        await serving
        if server.server_state.tasks:  # cancelled: they still answer
            await asyncio.wait(server.server_state.tasks, timeout=CLOSE_S)
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # the other side reads nothing
