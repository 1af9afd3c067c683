"""A node that is a topology: subtasks go to the Redis stream NAME:asks, readings come from NAME:answers.

A subtask is handed over once. It fails when Redis does not take it, or when no answer comes in time; while Redis is
away, those that wait go on waiting. The node takes an ask that no answer came for out of the stream again, if the
topology has not read it yet. Answers that nobody waits for (any more) are dropped: all workers and domains that hand
their work to one topology read the same stream.
"""

from __future__ import annotations

import asyncio
import logging
import secrets as chance
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from leeward.core.asks import MOST, Ask, answer_of, answers_of, asks_of
from leeward.core.secrets import NO_SECRETS, Secrets, without_password

log = logging.getLogger(__name__)

#: How long one read waits in Redis for an answer, and how long Redis may take for anything else, s.
_WAIT_S, _LONGEST_S = 1.0, 5.0
#: Between two tries to read from a Redis that is away, s.
_PAUSE_S = 0.2
#: Asks that are on their way to Redis at a time, or out of it; each has a connection, and redis-py has 100 at most.
_AT_ONCE = 50
#: Answers of one read at most.
_BATCH = 500


class TopologyNode:
    """For one event loop."""

    def __init__(self, url: str, stream: str, *, patience_s: float, secrets: Secrets = NO_SECRETS) -> None:
        self._redis = Redis.from_url(
            url, **secrets.redis_login(), socket_timeout=_LONGEST_S, socket_connect_timeout=_LONGEST_S,
            retry=Retry(NoBackoff(), 0),
        )  # fmt: skip
        self._shown, self._patience_s = without_password(url), patience_s
        self._asks, self._answers = asks_of(stream), answers_of(stream)
        self._mine, self._count = chance.token_hex(8), 0
        self._open: dict[str, asyncio.Future[float | None]] = {}
        self._beginning, self._turn = asyncio.Lock(), asyncio.Semaphore(_AT_ONCE)
        self._after: bytes = b""  # the answer read last; empty: the reader has not begun
        self._reader: asyncio.Task[None] | None = None
        self._away = False

    async def reading(self, order: Mapping[str, Any]) -> float | None:
        """Of one subtask (`Ask` without id, by its names); None if there is none in time."""
        self._count += 1
        ask = Ask(id=f"{self._mine}-{self._count}", **order)
        entry = None
        try:
            async with asyncio.timeout(self._patience_s):
                await self._begin()
                answer: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
                self._open[ask.id] = answer
                async with self._turn:
                    entry = await self._redis.xadd(self._asks, ask.to_fields(), maxlen=MOST, approximate=True)
                return await answer
        except TimeoutError:
            if entry is not None:  # a topology that comes back should not begin with what nobody waits for
                with suppress(RedisError, OSError):  # an OSError, too: no turn in time
                    async with asyncio.timeout(_LONGEST_S), self._turn:
                        await self._redis.xdel(self._asks, entry)
        except (RedisError, OSError) as error:
            self._note(error)
        finally:
            self._open.pop(ask.id, None)
        return None

    async def close(self) -> None:
        """Hang up."""
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        await self._redis.aclose()

    async def _begin(self) -> None:
        """Know where the answers end, before the first ask."""
        async with self._beginning:
            if self._reader is None:
                self._after = await self._last()
                self._reader = asyncio.create_task(self._read())

    async def _last(self) -> bytes:
        """The id of the newest answer."""
        newest = await self._redis.xrevrange(self._answers, count=1)
        return newest[0][0] if newest else b"0-0"

    async def _read(self) -> None:
        """Until it is cancelled."""
        lost = False
        while True:
            try:
                if lost and _place(await self._last()) < _place(self._after):
                    self._after = b"0-0"  # it came back without its data, and its clock is behind
                found = await self._redis.xread({self._answers: self._after}, count=_BATCH, block=int(_WAIT_S * 1000))
            except (RedisError, OSError) as error:
                lost = True
                self._note(error)
                await asyncio.sleep(_PAUSE_S)
                continue
            lost = self._away = False
            for self._after, fields in found[0][1] if found else ():
                self._take(fields)

    def _take(self, fields: Mapping[bytes, bytes]) -> None:
        ask, reading = answer_of(fields)
        waiting = self._open.get(ask)
        if waiting is not None and not waiting.done():
            waiting.set_result(reading)

    def _note(self, error: Exception) -> None:
        """Say it once for each absence."""
        if not self._away:
            log.warning("%s does not take subtasks in: %s. They fail until it does.", self._shown, error)
        self._away = True


def _place(entry: bytes) -> tuple[int, ...]:
    return tuple(map(int, entry.split(b"-")))
