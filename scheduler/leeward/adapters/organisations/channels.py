"""One open connection, whichever side has opened it. Binary frames go both ways."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import State

#: Pings find a peer that went away without a word, s; an answer may take as long again.
PING_S = 10.0
#: To open a connection, and to close it, s.
OPEN_S, CLOSE_S = 5.0, 1.0


class GoneError(Exception):
    """The connection is closed."""


class Channel(Protocol):
    """See the module."""

    async def send(self, frame: bytes) -> None:
        """Waits while the other side does not read. Raises GoneError."""

    def write(self, wire: bytes) -> bool:
        """Send the bytes of a whole frame (`wire_of`) at once; False, and nothing is sent, if that is not possible."""

    async def receive(self) -> bytes | None:
        """The next frame; None for one that is text. Raises GoneError."""

    async def close(self, code: int, reason: str) -> None:
        """Returns when the other side knows, or after CLOSE_S."""


def wire_of(frame: bytes) -> bytes:
    """The bytes of a frame on any connection that this process has opened: framed and masked once for all."""
    return Frame(Opcode.BINARY, frame).serialize(mask=True)


class Dialled:
    """A connection that this process has opened."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._transport = connection, connection.transport

    @classmethod
    async def open(cls, url: str, token: str, tls: ssl.SSLContext | None, largest: int) -> Dialled:
        """Raises OSError or WebSocketException. No proxy of the environment is used."""
        connection = await connect(
            url, additional_headers={"Authorization": f"Bearer {token}"}, ssl=tls, proxy=None, compression=None,
            max_size=largest, open_timeout=OPEN_S, close_timeout=CLOSE_S, ping_interval=PING_S, ping_timeout=PING_S,
        )  # fmt: skip
        return cls(connection)

    async def send(self, frame: bytes) -> None:
        """See Channel."""
        try:
            await self._connection.send(frame)
        except ConnectionClosed as error:
            raise GoneError(str(error)) from None

    def write(self, wire: bytes) -> bool:
        """See Channel; not while the peer is slow to read."""
        transport = self._transport
        if transport.get_write_buffer_size() or self._connection.state is not State.OPEN or transport.is_closing():
            return False
        transport.write(wire)
        return True

    async def receive(self) -> bytes | None:
        """See Channel."""
        try:
            frame = await self._connection.recv()
        except ConnectionClosed as error:
            raise GoneError(str(error)) from None
        return frame if isinstance(frame, bytes) else None

    async def close(self, code: int, reason: str) -> None:
        """See Channel."""
        await self._connection.close(code, reason)


class Accepted:
    """A connection that the other side has opened. The server limits its frames and sends its pings."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, frame: bytes) -> None:
        """See Channel."""
        try:
            await self._websocket.send_bytes(frame)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise GoneError(str(error)) from None

    def write(self, wire: bytes) -> bool:
        """See Channel: the server does not let go of its connection."""
        return False

    async def receive(self) -> bytes | None:
        """See Channel."""
        try:
            event = await self._websocket.receive()
        except RuntimeError as error:
            raise GoneError(str(error)) from None
        if event["type"] != "websocket.receive":
            raise GoneError(f"code {event.get('code')}")
        frame = event.get("bytes")
        return None if frame is None else bytes(frame)

    async def close(self, code: int, reason: str) -> None:
        """See Channel."""
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):  # a peer that does not read would hold it
                await self._websocket.close(code, reason)
