"""The two Redis streams of a topology that senses, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from leeward.core.asks import MOST, REMEMBERED, Ask, answer_fields, answers_of, ask_of, asks_of
from leeward.core.errors import ConfigError
from leeward.runtime import FencedRedis, FencingToken, open_redis

if TYPE_CHECKING:
    import redis

#: Key of the topology: the name that the domain's file gives as `stream`.
STREAM = "sensing.stream"
DEFAULT_STREAM = "sensing"
#: Asks of one read at most.
_BATCH = 500
#: Tries of one command before the task gives up; with the pauses between them, about 15 s.
_TRIES = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0


class Entry(NamedTuple):
    """An entry of the asks; `ask`: None if it is no ask."""

    id: str
    ask: Ask | None


class Streams:
    """See `leeward.core.asks`."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        """Raises ConfigError if a setting is not right."""
        name = conf.get(STREAM, DEFAULT_STREAM)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{STREAM} is {name!r}.", remedy="Give the name that the domain's file has as stream.")
        self.asks, self.answers = asks_of(name), answers_of(name)
        self._client = _open(dict(conf))
        self._fenced = FencedRedis(self._client, str(conf.get("storm.id", "")))

    def fetch(self, after: str, *, wait_ms: int) -> list[Entry]:
        """The next asks after an entry, waiting `wait_ms` at most for one."""
        found: Any = self._client.xread({self.asks: after}, count=_BATCH, block=wait_ms)
        return [Entry(entry.decode(), ask_of(fields)) for entry, fields in (found[0][1] if found else ())]

    def remove(self, through: str) -> None:
        """Asks up to this entry: they will not be read again."""
        time, _, number = through.partition("-")
        self._client.xtrim(self.asks, minid=f"{time}-{int(number) + 1}", approximate=False)

    def answer(self, ask: str, reading: str, token: FencingToken) -> bool:
        """Append an answer; False if the ask has one. Raises FencedError if this process was replaced."""
        fields = answer_fields(ask, reading)
        return self._fenced.append_once(token, self.answers, ask, fields, keep=MOST, remember=REMEMBERED)


def _open(conf: dict[str, Any]) -> redis.Redis:
    """A client that waits out a short absence of the server."""
    import redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    retry = Retry(ExponentialBackoff(cap=_LONGEST_PAUSE_S, base=_FIRST_PAUSE_S), _TRIES)
    away = [redis.ConnectionError, redis.TimeoutError]
    return open_redis(conf, socket_timeout=5, socket_connect_timeout=5, retry=retry, retry_on_error=away)
