"""Reads what an application wrote: the results stream of its sink, and how far its source is."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from leeward.core.metrics import LEFT_FIELD, WRITTEN_FIELD
from leeward.core.secrets import NO_SECRETS, Secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One entry of a results stream."""

    number: int  #: sequence number that the sink wrote it under
    text: str  #: the row
    sent_s: float  #: when the pulse left the source, s since 1970
    age_s: float  #: from then to the sink


class Results:
    """See the module. Raises redis.RedisError when Redis is away."""

    def __init__(self, url: str, *, secrets: Secrets = NO_SECRETS, source: str, results: str) -> None:
        self._redis = redis.Redis.from_url(url, **secrets.redis_login(), socket_timeout=5)
        self._source, self._results = source, results

    def newest(self, count: int) -> list[Row]:
        """The last `count` rows, oldest first."""
        return [_row(entry) for entry in reversed(self._redis.xrevrange(self._results, count=count))]

    def all(self) -> list[Row]:
        """Every row, in the order of the stream."""
        return [_row(entry) for entry in self._redis.xrange(self._results)]

    def sent(self) -> int:
        """Sequence number of the newest entry that the replay has sent."""
        newest = self._redis.xrevrange(self._source, count=1)
        return int(newest[0][0].split(b"-")[0]) if newest else 0

    def ended(self) -> bool:
        """The source has read the end of its input."""
        return self._redis.hget(f"{self._source}:source", "ended") is not None


def _row(entry: tuple[bytes, dict[bytes, bytes]]) -> Row:
    number, fields = entry
    written, left = (float(fields.get(field.encode(), 0)) for field in (WRITTEN_FIELD, LEFT_FIELD))
    return Row(number=int(number.split(b"-")[0]), text=fields[b"row"].decode(), sent_s=left, age_s=written - left)
