"""The Redis side of replay: where the stream stands, and rows into it, all or nothing.

Keys: the stream itself; hash `<stream>:progress`, field `seq`, the last row durably consumed, written by the
reader; hash `<stream>:replay`, fields `digest`, which data the stream was begun with, and `first`, the number of its
first row, at which readers begin, written here.
Entries: id `<seq>-0`; fields `r` the raw row, `t` its dropoff (epoch seconds), `w` wall clock when sent
(seconds, a float). The final entry has `end` = 1 instead of `r`, and the id after the last row's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from leeward.core.errors import ClusterRefusedError, NotReadyError
from leeward.core.secrets import FILE_VARIABLE, NO_SECRETS, Secrets, without_password
from leeward.replay.errors import ReplayError

if TYPE_CHECKING:
    import redis

T = TypeVar("T")
_TIMEOUT_S = 5.0
#: answer of a running Redis that cannot write now but may later -> remedy
_PASSING = {
    "used memory > 'maxmemory'": "Raise Redis's maxmemory or lower --limit.",
    "read only replica": "Point --redis at the writable server.",
    "MISCONF": "Free disk space on the Redis server, or mend its append-only file.",
    "NOREPLICAS": "Start its replicas, or lower min-replicas-to-write.",
    "BUSY": "A script blocks the server: SCRIPT KILL.",
}


class RedisAwayError(NotReadyError):
    """Redis cannot be reached or cannot write at the moment; the connection may come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The content of a stream, in sequence numbers."""

    oldest: int = 0  #: the first entry that was not trimmed, 0 if none
    last: int = 0  #: the newest entry ever added, trimmed or not; 0 for a stream that is not there


class Feed:
    """One stream of one server; methods raise RedisAwayError (passing) or ClusterRefusedError (lasting)."""

    def __init__(self, url: str, stream: str, secrets: Secrets = NO_SECRETS) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.shown = f"Redis at {without_password(url)}"
        self.stream = stream
        self._has_password = bool(secrets.redis_password) or without_password(url) != url
        try:
            # no retries inside the client: after a lost answer only the stream itself says what arrived
            self._client = redis.Redis.from_url(
                url,
                **secrets.redis_login(),
                socket_timeout=_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise ReplayError(
                f"--redis {without_password(url)!r}: {error}", remedy="Write redis://host:port/0."
            ) from None

    def probe(self) -> None:
        """Returns if Redis answers."""
        self._do(lambda client: client.ping())

    def extent(self) -> Extent:
        """The content of the stream. Raises ReplayError if another program wrote into it."""
        return self._do(self._extent)

    def _extent(self, client: redis.Redis) -> Extent:
        if not client.exists(self.stream):
            return Extent()
        info = client.xinfo_stream(self.stream)
        first = info["first-entry"]
        return Extent(oldest=self._seq_of(first[0]) if first else 0, last=self._seq_of(info["last-generated-id"]))

    def _seq_of(self, entry_id: bytes) -> int:
        number, _, part = entry_id.decode().partition("-")
        if part != "0":
            raise ReplayError(
                f"stream {self.stream} has the entry {entry_id.decode()}, which no replay wrote.",
                remedy="Use another --stream.",
            )
        return int(number)

    def progress(self) -> int:
        """Sequence number that the reader has durably consumed, 0 if it has not said."""
        seq = self._do(lambda client: client.hget(f"{self.stream}:progress", "seq"))
        return int(seq or 0)

    def digest(self) -> str | None:
        """Which data the stream was begun with."""
        value = self._do(lambda client: client.hget(f"{self.stream}:replay", "digest"))
        return value.decode() if value is not None else None

    def begin(self, digest: str, first: int | None) -> None:
        """Note which data goes in, from row `first` on; None: it goes on for readers that have begun."""
        fields = {"digest": digest} | ({} if first is None else {"first": str(first)})
        self._do(lambda client: client.hset(f"{self.stream}:replay", mapping=fields))

    def send(self, first_seq: int, times: Sequence[int], lines: Sequence[bytes], *, wall_s: float) -> None:
        """Append rows `first_seq`, `first_seq` + 1, ...; those already there stay as they are."""
        fields = [{"r": line, "t": t, "w": f"{wall_s:.6f}"} for t, line in zip(times, lines, strict=True)]
        self._do(lambda client: self._append(client, first_seq, fields))

    def end(self, seq: int, t: int, *, wall_s: float) -> None:
        """Append the final entry under `seq` (the last row's plus one)."""
        self._do(lambda client: self._append(client, seq, [{"end": "1", "t": t, "w": f"{wall_s:.6f}"}]))

    def _append(self, client: redis.Redis, first_seq: int, entries: Sequence[dict[str, Any]]) -> None:
        # MULTI: a Redis that is out of memory or read-only refuses the whole batch. In a plain pipeline it
        # could refuse one row and take the next, and such a gap can never be filled (ids only grow).
        pipe = client.pipeline(transaction=True)
        for seq, fields in enumerate(entries, first_seq):
            pipe.xadd(self.stream, fields, id=f"{seq}-0")
        for result in pipe.execute(raise_on_error=False):
            if isinstance(result, Exception) and "equal or smaller" not in str(result):
                raise result

    def _do(self, action: Callable[[redis.Redis], T]) -> T:
        import redis

        try:
            return action(self._client)
        except redis.AuthenticationError as error:
            if not self._has_password:
                problem = "wants a password and none was given"
            else:
                problem = f"refuses the password: {_first_line(error)}"
            raise ClusterRefusedError(
                f"{self.shown} {problem}.",
                remedy=f"Put it as redis_password into a secrets file, and name that by {FILE_VARIABLE}.",
            ) from None
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisAwayError(
                f"{self.shown} cannot be reached: {_first_line(error)}.",
                remedy="Start it, or correct --redis.",
            ) from None
        except redis.ResponseError as error:
            raise self._refused(_first_line(error)) from None

    def _refused(self, text: str) -> Exception:
        if "WRONGTYPE" in text:
            return ReplayError(f"key {self.stream!r} is no stream.", remedy="Use another --stream.")
        for sign, remedy in _PASSING.items():
            if sign in text:
                return RedisAwayError(f"{self.shown} cannot write: {text}.", remedy=remedy)
        return ClusterRefusedError(f"{self.shown} refused: {text}.", remedy="See the server's log.")


def _first_line(error: Exception) -> str:
    """Without what redis-py puts before it: the whole command, rows and all."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text.rpartition("caused error: ")[2].rstrip(".")
