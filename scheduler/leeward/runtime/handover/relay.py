"""Pieces of handovers through Redis: for tasks that do not reach each other, and when a connection breaks.

Keys, prefix `leeward:<topology id>:`
  handover:<epoch>:<task>   stream: pieces for a receiving task, in the order of sending
  at                        hash: task -> where it listens, for `Way`

A stream and not a list: reading takes nothing away, so a connection that breaks loses no piece. The receiver deletes
what it has taken; an expiry deletes what nobody takes.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.resources import files
from typing import TypeVar

import redis

from leeward.core.errors import FencedError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime.pacing import Pacing

log = logging.getLogger(__name__)

_HAND_OVER = files("leeward.runtime").joinpath("lua/hand_over.lua").read_text()

Answer = TypeVar("Answer")
#: Name in the stream, and fields.
Named = tuple[bytes, dict[bytes, bytes]]


class Relay:
    """One task's access to the pieces in Redis. Methods with `stop` try until Redis answers, or until `stop`."""

    def __init__(
        self, url: str, topology_id: str, task: int, secrets: Secrets = NO_SECRETS, pacing: Pacing = Pacing()
    ) -> None:
        self._url, self._login, self._prefix = url, secrets.redis_login(), f"leeward:{topology_id}:"
        self._task, self._pacing = task, pacing
        self._connection: redis.Redis | None = None
        self._lock = threading.Lock()

    @property
    def _client(self) -> redis.Redis:
        with self._lock:
            if self._connection is None:
                wait_s = self._pacing.redis_s
                self._connection = redis.Redis.from_url(
                    self._url, **self._login, socket_timeout=wait_s, socket_connect_timeout=wait_s
                )
            return self._connection

    def warm(self, pieces: list[bytes]) -> list[bytes]:
        """Do beforehand what is slow the first time: connect twice (one sends, one reads), send and read these pieces.
        Raises redis.RedisError.
        """
        client, key = self._client, self._key(0, self._task)
        for connection in [client.connection_pool.get_connection() for _ in range(2)]:
            client.connection_pool.release(connection)
        self._put(0, key, pieces)
        read = [fields[b"p"] for _, fields in self._read(key, "0", ())]
        client.delete(key)
        return read

    def tell(self, address: bytes) -> None:
        """Say where this task listens. Raises redis.RedisError."""
        self._client.hset(self._prefix + "at", str(self._task), address)

    def address(self, target: int, stop: threading.Event) -> bytes | None:
        """Where this task listens; None if it has not said."""
        return self._patiently(lambda: self._client.hget(self._prefix + "at", str(target)), stop)

    def addresses(self) -> dict[int, bytes]:
        """Task -> where it listens, of all that have said. Raises redis.RedisError."""
        return {int(task): address for task, address in self._client.hgetall(self._prefix + "at").items()}

    def put(self, epoch: int, target: int, pieces: list[bytes], waiting: Counter[int], stop: threading.Event) -> None:
        """Through Redis. `waiting`: pieces for each receiving task, as far as is known. Raises FencedError."""
        key = self._key(epoch, target)
        while pieces and not stop.is_set():
            some = pieces[: max(0, self._pacing.relay_pieces - waiting[target])]
            before = self._patiently(partial(self._put, epoch, key, some), stop)
            if before is None:
                return
            if before < 0:
                raise FencedError(
                    f"task {self._task} may not hand over in epoch {epoch}: epoch {-before} is in force.",
                    remedy="Nothing is to be done: a reset has undone this handover.",
                )
            waiting[target], pieces = before + len(some), pieces[len(some) :]
            if pieces and waiting[target] >= self._pacing.relay_pieces:
                stop.wait(self._pacing.full_s)

    def waiting(self, epoch: int, target: int, stop: threading.Event) -> int:
        """Pieces for this task in Redis."""
        return self._patiently(lambda: self._client.xlen(self._key(epoch, target)), stop) or 0

    def read(self, epoch: int, stop: threading.Event) -> Iterator[list[bytes]]:
        """The pieces for this task as they come, until `stop`; empty lists where none has come for a while. Pieces that
        were read are deleted with the next read.
        """
        key = self._key(epoch, self._task)
        names: list[bytes] = []
        last: bytes | str = "0"
        while not stop.is_set():
            pieces = self._patiently(partial(self._read, key, last, names), stop) or ()
            yield [fields[b"p"] for _, fields in pieces]
            names = [name for name, _ in pieces]
            last = names[-1] if names else last

    def drop(self, epoch: int, stop: threading.Event) -> None:
        """Nothing more is to be read."""
        self._patiently(lambda: self._client.delete(self._key(epoch, self._task)), stop)

    def _put(self, epoch: int, key: str, pieces: list[bytes]) -> int:
        """Adds all of these pieces, or, fenced off, none; see the script."""
        with self._client.pipeline() as pipe:
            pipe.eval(_HAND_OVER, 2, self._prefix + "fence", key, epoch, self._pacing.expiry_s)
            for piece in pieces:
                pipe.xadd(key, {"p": piece}, nomkstream=True)
            before: int = pipe.execute()[0]
            return before

    def _read(self, key: str, after: bytes | str, taken: Iterable[bytes]) -> list[Named]:
        """The next pieces, with their names; those named are deleted."""
        with self._client.pipeline(transaction=False) as pipe:
            if taken:
                pipe.xdel(key, *taken)
            pipe.xread({key: after}, count=self._pacing.batch_pieces, block=int(self._pacing.block_s * 1000))
            *_, answer = pipe.execute()
        pieces: list[Named] = answer[0][1] if answer else []
        return pieces

    def _patiently(self, ask: Callable[[], Answer], stop: threading.Event) -> Answer | None:
        """Redis' answer; tries until there is one, or until `stop`: the coordinator's deadline ends that."""
        while not stop.is_set():
            try:
                return ask()
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as failure:
                log.info("handover: Redis does not take part (%s); still trying", failure)
                stop.wait(self._pacing.retry_s)
        return None

    def _key(self, epoch: int, task: int) -> str:
        return f"{self._prefix}handover:{epoch}:{task}"
