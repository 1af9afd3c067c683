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
from importlib.resources import files

import redis

from leeward.core.errors import FencedError
from leeward.core.secrets import NO_SECRETS, Secrets

log = logging.getLogger(__name__)

_HAND_OVER = files("leeward.runtime").joinpath("lua/hand_over.lua").read_text()
#: After this time nothing of a handover is left in Redis, in seconds.
EXPIRY_S = 900
#: Pieces that wait in Redis for one receiver; a sender that knows of so many waits. Several may add a batch each.
AHEAD = 128
#: Pieces read at once: 4 MB, as each turn waits for a processor first.
_BATCH = 32
#: Longest time that Redis keeps a reader waiting; between two tries; between two looks at what a receiver has not
#: taken, if it is as much as may be; for an answer. In seconds.
_BLOCK_S, _RETRY_S, _FULL_S, _TIMEOUT_S = 0.25, 0.1, 0.01, 5.0


class Relay:
    """One task's access to the pieces in Redis. What takes `stop` asks until Redis answers, or until `stop`."""

    def __init__(self, url: str, topology_id: str, task: int, secrets: Secrets = NO_SECRETS) -> None:
        self._url, self._login, self._prefix = url, secrets.redis_login(), f"leeward:{topology_id}:"
        self._task = task
        self._connection: redis.Redis | None = None
        self._lock = threading.Lock()

    @property
    def _client(self) -> redis.Redis:
        with self._lock:
            if self._connection is None:
                self._connection = redis.Redis.from_url(
                    self._url, **self._login, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
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

    def put(
        self, epoch: int, target: int, pieces: list[bytes], waiting: Counter[int], stop: threading.Event
    ) -> None:
        """Through Redis. `waiting`: pieces for each receiving task, as far as is known. Raises FencedError."""
        key = self._key(epoch, target)
        while pieces and not stop.is_set():
            some = pieces[: max(0, AHEAD - waiting[target])]
            before = self._patiently(lambda these=some: self._put(epoch, key, these), stop)
            if before is None:
                return
            if before < 0:
                raise FencedError(
                    f"task {self._task} may not hand over in epoch {epoch}: epoch {-before} is in force.",
                    remedy="Nothing is to be done: a reset has undone this handover.",
                )
            waiting[target], pieces = before + len(some), pieces[len(some) :]
            if pieces and waiting[target] >= AHEAD:
                stop.wait(_FULL_S)

    def waiting(self, epoch: int, target: int, stop: threading.Event) -> int:
        """Pieces for this task in Redis."""
        return self._patiently(lambda: self._client.xlen(self._key(epoch, target)), stop) or 0

    def read(self, epoch: int, stop: threading.Event) -> Iterator[list[bytes]]:
        """The pieces for this task as they come, until `stop`; empty lists where none has come for a while. What was
        read is deleted with the next read.
        """
        key = self._key(epoch, self._task)
        names: list[bytes] = []
        last: bytes | str = "0"
        while not stop.is_set():
            pieces = self._patiently(lambda after=last, these=names: self._read(key, after, these), stop) or ()
            yield [fields[b"p"] for _, fields in pieces]
            names = [name for name, _ in pieces]
            last = names[-1] if names else last

    def drop(self, epoch: int, stop: threading.Event) -> None:
        """Nothing more is to be read."""
        self._patiently(lambda: self._client.delete(self._key(epoch, self._task)), stop)

    def _put(self, epoch: int, key: str, pieces: list[bytes]) -> int:
        """Adds all of these pieces, or, fenced off, none; see the script."""
        with self._client.pipeline() as pipe:
            pipe.eval(_HAND_OVER, 2, self._prefix + "fence", key, epoch, EXPIRY_S)
            for piece in pieces:
                pipe.xadd(key, {"p": piece}, nomkstream=True)
            return pipe.execute()[0]

    def _read(self, key: str, after: bytes | str, taken: Iterable[bytes]) -> list:
        """The next pieces, with their names; those named are deleted."""
        with self._client.pipeline(transaction=False) as pipe:
            if taken:
                pipe.xdel(key, *taken)
            pipe.xread({key: after}, count=_BATCH, block=int(_BLOCK_S * 1000))
            *_, answer = pipe.execute()
        return answer[0][1] if answer else []

    def _patiently(self, ask: Callable, stop: threading.Event) -> object:
        """What Redis answers; it is asked until it does, or until `stop`: the coordinator's deadline ends that."""
        while not stop.is_set():
            try:
                return ask()
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as failure:
                log.info("handover: Redis does not take part (%s); still trying", failure)
                stop.wait(_RETRY_S)
        return None

    def _key(self, epoch: int, task: int) -> str:
        return f"{self._prefix}handover:{epoch}:{task}"
