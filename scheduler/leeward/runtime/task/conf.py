"""The keys of its topology's configuration that a task reads, once, at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import DIRECT, REDIS_URL, SERVICE_RATE, SERVICE_TIMES, service_speed
from leeward.wire.secrets import secrets_of

if TYPE_CHECKING:
    import redis

#: Of a patient client, s: an answer may take so long, and with the pauses between its tries it waits some 15 s in all.
ANSWER_S = 5
TRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 20, 0.02, 1.0
#: Of the supervisor: free facts about its node.
NODE_META = "supervisor.scheduler.meta"


def service_time(conf: dict[str, Any]) -> float:
    """Emulated seconds for each tuple; 0 unless `leeward.service_times` is `emulated`."""
    choice = conf.get(SERVICE_TIMES.name, "none")
    if choice not in ("none", "emulated"):
        raise ConfigError(f"{SERVICE_TIMES.name} is {choice!r}.", remedy="Set it to none or emulated.")
    if choice == "none":
        return 0.0
    rate = conf.get(SERVICE_RATE.name)
    if not rate:
        raise ConfigError(
            f"{SERVICE_TIMES.name} is {choice!r}, but this component has no {SERVICE_RATE.name}.",
            remedy=f"Set the rate (tuples/s) in the component's config, or {SERVICE_TIMES.name} to 'none'.",
        )
    here = _rate_here(rate, conf.get(NODE_META) or {}) if isinstance(rate, dict) else float(rate)
    return 1.0 / (here * service_speed(conf))


def _rate_here(rates: dict[str, Any], meta: dict[str, str]) -> float:
    """The rate on this node, from the rates by class of node."""
    kind = meta.get("class")
    if kind not in rates:
        raise ConfigError(
            f"{SERVICE_RATE.name} is {rates!r}, but this node's {NODE_META} names the class {kind!r}.",
            remedy=f"Give a rate for each class, or set class to one of {', '.join(rates)} on the supervisor.",
        )
    return float(rates[kind]) * float(meta.get("speed", 1.0))


def redis_url(conf: Mapping[str, Any]) -> str:
    url = conf.get(REDIS_URL.name)
    if not isinstance(url, str) or not url:
        raise ConfigError(
            f"topology configuration {REDIS_URL.name} is {url!r}.",
            remedy="Give it at submission: -o leeward.redis.url=redis://host:port/0.",
        )
    return url


def open_redis(conf: Mapping[str, Any], *, patient: bool = False, **options: Any) -> redis.Redis:
    """A client of the topology's Redis, with the password of the secrets file; `options` as Redis.from_url takes them.

    `patient`: it waits while the server is away for a short time, and sends a command again that was not answered. So
    its commands are to be such as do no harm twice: under a sequence number, or through `FencedRedis.append_once`.
    Raises ConfigError if the address or the secrets file is not right.
    """
    import redis

    return redis.Redis.from_url(
        redis_url(conf), **secrets_of(conf).redis_login(), **(_patience() if patient else {}), **options
    )


def _patience() -> dict[str, Any]:
    import redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    return {
        "socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S,
        "retry": Retry(ExponentialBackoff(cap=LONGEST_PAUSE_S, base=FIRST_PAUSE_S), TRIES),
        "retry_on_error": [redis.ConnectionError, redis.TimeoutError],
    }  # fmt: skip


def direct(conf: dict[str, Any]) -> bool:
    """Whether handed-over state may go straight from task to task, on ports that the system chooses; else by Redis."""
    value = conf.get(DIRECT.name, True)
    if not isinstance(value, bool):
        raise ConfigError(
            f"topology configuration leeward.handover.direct is {value!r}.",
            remedy="Give true (the default), or false where a firewall keeps workers from each other.",
        )
    return value


def zookeeper(conf: dict[str, Any]) -> str:
    return ",".join(f"{host}:{conf['storm.zookeeper.port']}" for host in conf["storm.zookeeper.servers"])
