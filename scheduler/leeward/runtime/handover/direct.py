"""Pieces straight from the task that gives groups to the one that gains them, by TCP.

One connection for each (handover, sender, receiver). It begins with a greeting: magic `LWD`, version (1 byte), the
receiver's secret (16 bytes), epoch of the handover (8 bytes), sender's task (4 bytes). Then come pieces
(`handover/pieces.py`), each after its length (4 bytes); the receiver answers each that it has taken with the number
of those taken so far (4 bytes). Big endian.

Nothing is lost with a connection: the sender keeps what was not answered, to send it another way; a piece that comes
twice counts once.

A greeting with the magic `LWP` asks for the receiver's place in the network (`task/distance.py`), which it sends before
it closes.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

import msgpack

from leeward.runtime.handover.pieces import LONGEST_PIECE
from leeward.runtime.pacing import Pacing

log = logging.getLogger(__name__)

VERSION = 1
_MAGIC, _ASKS = b"LWD", b"LWP"
_GREETING = struct.Struct(">3sB16sQI")
_NUMBER = struct.Struct(">I")
#: Of Linux' `struct tcp_info`: its field tcpi_rtt, the smoothed round trip in us, after 8 others of 1 byte and 15 of 4.
_ROUND_TRIP = struct.Struct("=68xI")
#: No answer about a place is longer.
_LONGEST_ANSWER = 1024


class Incoming:
    """The receiver's end of a connection."""

    def __init__(self, connection: socket.socket, epoch: int) -> None:
        self.epoch = epoch
        self._connection, self._taken = connection, 0
        self._room = memoryview(bytearray(LONGEST_PIECE))

    def next(self, stop: threading.Event) -> memoryview | None:
        """The next piece, good until the next call; None when the sender has closed, or `stop`. Raises OSError."""
        head = self._read(_NUMBER.size, stop)
        if head is None:
            return None
        (length,) = _NUMBER.unpack(head)
        if length > LONGEST_PIECE:
            raise ConnectionError(f"a piece of {length} bytes is announced, {LONGEST_PIECE} is the most")
        return self._read(length, stop)

    def taken(self) -> None:
        """The piece is where it belongs. Raises OSError."""
        self._taken += 1
        self._connection.sendall(_NUMBER.pack(self._taken))

    def _read(self, size: int, stop: threading.Event) -> memoryview | None:
        have = 0
        while have < size and not stop.is_set():
            with contextlib.suppress(TimeoutError):
                got = self._connection.recv_into(self._room[have:size])
                if not got:
                    return None
                have += got
        return self._room[:size] if have == size else None


class Listener:
    """Where a task can be reached, from its start to its end. Raises OSError if it cannot listen there."""

    def __init__(
        self, host: str, welcome: Callable[[Incoming], None], pacing: Pacing = Pacing(),
        answer: Callable[[], bytes] = bytes,
    ) -> None:  # fmt: skip
        """`host`: the name by which Storm's workers reach this node; `welcome` has a thread for each connection.
        `answer`: to those that ask for this task's place."""
        # as Storm's workers: on all addresses; but what is of this machine alone stays there
        self._server = socket.create_server((host if host.startswith("127.") else "", 0))
        self._secret, self._welcome, self._pacing = secrets.token_bytes(16), welcome, pacing
        self._answer = answer
        #: for `Way`
        self.address: bytes = msgpack.packb([host, self._server.getsockname()[1], self._secret])
        threading.Thread(target=self._accept, name="leeward-listen", daemon=True).start()

    def close(self) -> None:
        """Nobody can reach it any more."""
        with contextlib.suppress(OSError):  # closed already
            self._server.shutdown(socket.SHUT_RDWR)  # closing alone would leave its thread in `accept`
        self._server.close()

    def _accept(self) -> None:
        while self._server.fileno() >= 0:
            try:
                connection, _ = self._server.accept()
            except OSError:  # closed, or the process has too many files
                time.sleep(self._pacing.block_s)
                continue
            threading.Thread(target=self._greet, args=(connection,), name="leeward-receive", daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        with connection:
            try:
                greeting = self._greeting_of(connection)
                if greeting is None:
                    log.warning("handover: refused a connection whose greeting is not for this task")
                    return
                magic, epoch = greeting
                if magic == _ASKS:
                    connection.sendall(self._answer())
                    return
                connection.settimeout(self._pacing.block_s)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._welcome(Incoming(connection, epoch))
            except OSError as failure:  # the sender goes another way
                log.info("handover: a sender's connection broke: %s", failure)

    def _greeting_of(self, connection: socket.socket) -> tuple[bytes, int] | None:
        """Magic and epoch of the sender's greeting; None if the greeting is not for this task."""
        connection.settimeout(self._pacing.greet_s)
        greeting = b""
        while len(greeting) < _GREETING.size:
            part = connection.recv(_GREETING.size - len(greeting))
            if not part:
                return None
            greeting += part
        magic, version, secret, epoch, _task = _GREETING.unpack(greeting)
        known = magic in (_MAGIC, _ASKS) and version == VERSION and hmac.compare_digest(secret, self._secret)
        return (magic, epoch) if known else None


def ask(address: bytes, task: int, pacing: Pacing = Pacing()) -> tuple[float, bytes]:
    """Round trip to the task that listens there, s, and its answer about its place. Raises OSError.

    The round trip is that of the connection's handshake, which the kernels exchange: the other process may be busy.
    """
    host, port, secret = msgpack.unpackb(address)
    began = time.perf_counter()
    with socket.create_connection((host, port), timeout=pacing.connect_s) as connection:
        seconds = time.perf_counter() - began
        if sys.platform == "linux":
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ROUND_TRIP.size)
            seconds = _ROUND_TRIP.unpack(info)[0] / 1e6
        connection.sendall(_GREETING.pack(_ASKS, VERSION, secret, 0, task))
        connection.settimeout(pacing.greet_s)
        answer = b""
        while len(answer) <= _LONGEST_ANSWER and (part := connection.recv(_LONGEST_ANSWER)):
            answer += part
    return seconds, answer


class Way:
    """The sender's end. All raise OSError when the connection is broken; `untaken` pieces then go another way."""

    def __init__(self, address: bytes, *, epoch: int, task: int, pacing: Pacing = Pacing()) -> None:
        host, port, secret = msgpack.unpackb(address)
        self.untaken: deque[bytes] = deque()  #: pieces, in their order, that the receiver has not answered
        self._taken, self._heard, self._pacing = 0, b"", pacing
        self._socket = socket.create_connection((host, port), timeout=self._pacing.connect_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_GREETING.pack(_MAGIC, VERSION, secret, epoch, task))
        self._socket.settimeout(self._pacing.block_s)

    def push(self, pieces: list[bytes], stop: threading.Event) -> None:
        self.untaken.extend(pieces)
        for piece in pieces:
            self._send(_NUMBER.pack(len(piece)), stop)
            self._send(piece, stop)
        self.hear()
        while len(self.untaken) >= self._pacing.ahead_pieces and not stop.is_set():
            self.hear(self._pacing.block_s)

    def hear(self, wait_s: float = 0.0) -> None:
        """Take note of what the receiver has taken; wait for it so long."""
        self._socket.settimeout(wait_s)
        try:
            data = self._socket.recv(self._pacing.ahead_pieces * _NUMBER.size)
        except (BlockingIOError, TimeoutError):
            return
        finally:
            self._socket.settimeout(self._pacing.block_s)
        if not data:
            raise ConnectionError("the receiver has closed the connection")
        self._heard += data
        whole = len(self._heard) // _NUMBER.size * _NUMBER.size
        if whole:
            (taken,) = _NUMBER.unpack(self._heard[whole - _NUMBER.size : whole])
            for _ in range(taken - self._taken):
                self.untaken.popleft()
            self._taken, self._heard = taken, self._heard[whole:]

    def close(self) -> None:
        self._socket.close()

    def _send(self, data: bytes, stop: threading.Event) -> None:
        view = memoryview(data)
        while view and not stop.is_set():
            with contextlib.suppress(TimeoutError):
                view = view[self._socket.send(view) :]
