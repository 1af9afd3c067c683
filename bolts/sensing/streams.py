"""The two Redis streams of a topology that senses, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from leeward.core.asks import MOST, REMEMBERED, Ask, answer_fields, answers_of, ask_of, asks_of
from leeward.core.errors import ConfigError
from leeward.runtime import FencedRedis, FencingToken, open_redis

#: Key of the topology: the name that the domain's file gives as `stream`.
STREAM = "sensing.stream"
DEFAULT_STREAM = "sensing"
#: Asks of one read at most.
_BATCH = 500


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
        self._client = open_redis(conf, patient=True)
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
