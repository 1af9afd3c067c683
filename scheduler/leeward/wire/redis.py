"""A client of Redis whose calls end in the time that they were given."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from leeward.core.secrets import NO_SECRETS, Secrets

#: A connection that was idle for longer is tried before it is used, seconds.
_IDLE_S = 15
#: Pauses between two tries, seconds: at first, and at most.
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
#: So many tries outlast a restart of Redis of about 4 s.
PATIENT = 11


def client(
    url: str,
    *,
    secrets: Secrets = NO_SECRETS,
    timeout_s: float = 5.0,
    connect_s: float | None = None,
    tries: int = PATIENT,
) -> redis.Redis:
    """A client that is not connected.

    A call waits for an answer at most `timeout_s` seconds, and for a connection `connect_s` (None: as long). Where no
    connection can be had it is tried `tries` times in all. A timeout is not tried again, as redis-py would: with a
    Redis that hangs, a call took eleven times as long, and all that its thread does for ZooKeeper waited behind it.
    """
    again: Any = Retry(ExponentialWithJitterBackoff(_LONGEST_PAUSE_S, _PAUSE_S), tries - 1, (redis.ConnectionError,))
    return redis.Redis.from_url(
        url,
        **secrets.redis_login(),
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s if connect_s is None else connect_s,
        health_check_interval=_IDLE_S,
        retry=again,
    )
