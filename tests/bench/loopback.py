"""How long so many bytes take from one process to another on this machine's loopback."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event

import redis

from leeward.core.secrets import Secrets
from leeward.runtime.handover.pieces import PIECE_BYTES

STREAM = "leeward:bench:loopback"
#: Pieces that wait in Redis at most, as in a handover.
AHEAD = 64


def loopback_s(redis_url: str, secrets: Secrets, size: int, *, times: int) -> dict[str, float]:
    """Seconds for `size` bytes through a stream of this Redis and through a TCP socket; the best of so many times."""
    pieces = max(1, size // PIECE_BYTES)
    return {
        "redis": round(min(_through_redis(redis_url, secrets, pieces) for _ in range(times)), 4),
        "socket": round(min(_through_socket(pieces) for _ in range(times)), 4),
    }


def _through_redis(url: str, secrets: Secrets, pieces: int) -> float:
    client = redis.Redis.from_url(url, **secrets.redis_login())
    client.delete(STREAM)
    try:
        return _timed(_read_stream, (url, secrets, pieces), lambda: _write_stream(client, pieces))
    finally:
        client.delete(STREAM)


def _write_stream(client: redis.Redis, pieces: int) -> None:
    piece = bytes(PIECE_BYTES)
    for _ in range(pieces):
        while client.xlen(STREAM) >= AHEAD:
            time.sleep(0.001)
        client.xadd(STREAM, {"p": piece})


def _read_stream(url: str, secrets: Secrets, pieces: int) -> None:
    client, last, left = redis.Redis.from_url(url, **secrets.redis_login()), b"0", pieces
    while left:
        for _, entries in client.xread({STREAM: last}, count=8, block=1000):
            names = [name for name, _ in entries]
            last = names[-1]
            left -= len(names)
            client.xdel(STREAM, *names)


def _through_socket(pieces: int) -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return _timed(_read_socket, (server.getsockname(), pieces), lambda: _write_socket(server, pieces))


def _write_socket(server: socket.socket, pieces: int) -> None:
    connection, _ = server.accept()
    with connection:
        piece = bytes(PIECE_BYTES)
        for _ in range(pieces):
            connection.sendall(piece)


def _read_socket(address: tuple[str, int], pieces: int) -> None:
    with socket.create_connection(address) as connection:
        room = bytearray(PIECE_BYTES)
        left = pieces * PIECE_BYTES
        while left:
            left -= connection.recv_into(room)


def _timed(read: Callable, arguments: tuple, write: Callable[[], None]) -> float:
    """From the first byte written until the reader has them all; its start does not count."""
    context = multiprocessing.get_context("spawn")
    started, done = context.Event(), context.Event()
    reader = context.Process(target=_read, args=(read, arguments, started, done))
    reader.start()
    try:
        started.wait()
        began = time.perf_counter()
        write()
        done.wait()
        return time.perf_counter() - began
    finally:
        reader.kill()
        reader.join()


def _read(read: Callable, arguments: tuple, started: Event, done: Event) -> None:
    started.set()
    read(*arguments)
    done.set()
