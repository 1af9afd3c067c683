"""Frames between those who store fragments of state and the agents that keep them, over TCP.

Both sides greet with magic `LWF`, version (1 byte) and a nonce (16 bytes). They derive the connection's key from the
nonces and the secret that they share, so no frame of another connection is good here. Then:

    length of the body (4 bytes) | HMAC-SHA256 of direction, number and body (32 bytes) | body (MessagePack) | bytes

Requests are answered in their order. The bytes behind `put` are sealed by their SHA-256 in its body. Those behind the
answer to `get` are not: the asker has checksums of its own, which no agent can change, and they are sent from a file
without a copy.

    ["put", topology, cut, part, bytes, SHA-256], bytes     ["get", topology, cut, part, begin, length]
    ["drop", topology, cuts below this number]              ["count"]
    ["near"]

The answer is ["ok", number], and bytes after `get`; or ["no", why]. That to `near` has addresses in place of the
number: of the agents next to this one in an overlay, the nearest first. Big endian.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import Any

import msgpack

from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.fragments import Buffer

VERSION, MAGIC = 1, b"LWF"
GREETING, NONCE = struct.Struct(">3sB16s"), 16
#: Bytes of a frame's body, at most.
LARGEST = 4096
#: `drop` of every cut: more than any number of one.
ALL_CUTS = 2**63 - 1
#: Addresses in an answer to `near`, at most: the leaf set of a node of an overlay.
MOST_NEAR = 24
_HEAD, _NUMBER = struct.Struct(">I32s"), struct.Struct(">BQ")
_AT_ONCE = 64  # buffers in one call of the system


class BrokenWayError(ConnectionError):
    """The other side has closed, is silent, or does not know the secret."""


class Way:
    """One end of a connection. All methods raise OSError (BrokenWayError, TimeoutError) when it is of no use any more.

    One thread may send while another receives.
    """

    def __init__(self, connection: socket.socket, secret: bytes, *, agent: bool) -> None:
        """Greets, and waits for the other side's greeting."""
        self.socket, mine = connection, os.urandom(NONCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(GREETING.pack(MAGIC, VERSION, mine))
        magic, version, theirs = GREETING.unpack(self.read(GREETING.size))
        if (magic, version) != (MAGIC, VERSION):
            raise BrokenWayError("the other side does not speak of fragments, or in another version")
        nonces = mine + theirs if agent else theirs + mine
        self._key = hmac.digest(secret, nonces, "sha256")
        self._sends, self._receives = (1, 0) if agent else (0, 1)
        self._sent = self._received = 0

    def send(self, body: Sequence[Any], payload: Iterable[Buffer] = ()) -> None:
        """A frame, and the bytes behind it."""
        packed = msgpack.packb(body)
        mac = self._seal(self._sends, self._sent, packed)
        self._sent += 1
        views = deque(memoryview(part).cast("B") for part in (_HEAD.pack(len(packed), mac) + packed, *payload))
        while views:
            sent = self.socket.sendmsg(list(islice(views, _AT_ONCE)))
            while views and sent >= len(views[0]):
                sent -= len(views.popleft())
            if views:
                views[0] = views[0][sent:]

    def receive(self) -> list[Any]:
        """The body of the next frame."""
        length, mac = _HEAD.unpack(self.read(_HEAD.size))
        if length > LARGEST:
            raise BrokenWayError(f"a frame of {length} bytes is announced, {LARGEST} is the most")
        packed = self.read(length)
        if not hmac.compare_digest(mac, self._seal(self._receives, self._received, packed)):
            raise BrokenWayError("a frame is not sealed with the secret of this cluster")
        self._received += 1
        try:
            body = msgpack.unpackb(packed)
        except ValueError as error:
            raise BrokenWayError(f"a frame cannot be read: {error}") from None
        if not isinstance(body, list) or not body:
            raise BrokenWayError(f"a frame is {body!r:.60}")
        return body

    def read(self, size: int) -> bytearray:
        """So many bytes."""
        room = bytearray(size)
        view, have = memoryview(room), 0
        while have < size:
            got = self.socket.recv_into(view[have:])
            if not got:
                raise BrokenWayError("the other side has closed the connection")
            have += got
        return room

    def close(self) -> None:
        """Also wakes a thread that receives."""
        with suppress(OSError):  # closed already
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _seal(self, direction: int, number: int, packed: Buffer) -> bytes:
        return hmac.digest(self._key, _NUMBER.pack(direction, number) + bytes(packed), "sha256")


class AgentClient:
    """One agent, asked one thing at a time. Raises OSError if it is away, ClusterRefusedError if it refuses."""

    def __init__(self, address: str, secret: bytes, timeout_s: float) -> None:
        """`address`: host:port."""
        self.address = address
        connection = socket.create_connection(split(address), timeout=timeout_s)
        try:
            self.way = Way(connection, secret, agent=False)
        except BaseException:
            connection.close()
            raise

    def put(self, topology: str, cut: int, part: str, payload: Sequence[Buffer]) -> None:
        """Store a fragment; it is durable when this returns."""
        seal, size = sha256(), 0
        for buffer in payload:
            seal.update(buffer)
            size += len(buffer)
        self._ask(["put", topology, cut, part, size, seal.digest()], payload)

    def drop(self, topology: str, below: int = ALL_CUTS) -> int:
        """Delete the fragments of all cuts below this number; how many."""
        return self._ask(["drop", topology, below])

    def count(self) -> int:
        """Fragments that it keeps."""
        return self._ask(["count"])

    def near(self) -> list[str]:
        """Addresses of the agents next to this one, the nearest first."""
        answer = self._answered(["near"])
        if not isinstance(answer, list):
            raise BrokenWayError(f"the agents near it are {answer!r:.60}")
        return [address for address in answer[:MOST_NEAR] if isinstance(address, str) and is_address(address)]

    def close(self) -> None:
        """Hang up."""
        self.way.close()

    def _ask(self, body: Sequence[Any], payload: Iterable[Buffer] = ()) -> int:
        return int(self._answered(body, payload))

    def _answered(self, body: Sequence[Any], payload: Iterable[Buffer] = ()) -> Any:
        self.way.send(body, payload)
        verdict, answer = self.way.receive()
        if verdict != "ok":
            raise ClusterRefusedError(f"agent {self.address}: {answer}.", remedy="Look into the agent's log.")
        return answer


def is_address(text: str) -> bool:
    """Whether it is host:port."""
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and int(port) < 65536


def split(address: str) -> tuple[str, int]:
    """Host and port. Raises ConfigError."""
    if not is_address(address):
        raise ConfigError(f"address {address!r} is no HOST:PORT.", remedy="Write it as 192.0.2.7:6700.")
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
