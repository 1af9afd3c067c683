"""What a task reads from its topology's configuration, once, at its start."""

from __future__ import annotations

from leeward.core.errors import ConfigError


def service_time(conf: dict) -> float:
    """Emulated seconds for each tuple; 0 unless `leeward.service_times` names a table."""
    table = conf.get("leeward.service_times")
    if not table or table == "none":
        return 0.0
    rate = conf.get(f"leeward.{table}.rate")
    if not rate:
        raise ConfigError(
            f"leeward.service_times is {table!r}, but this component has no leeward.{table}.rate.",
            remedy="Set the rate (tuples/s) in the component's config, or leeward.service_times to 'none'.",
        )
    return 1.0 / float(rate)


def redis_url(conf: dict) -> str:
    url = conf.get("leeward.redis.url")
    if not isinstance(url, str) or not url:
        raise ConfigError(
            f"topology configuration leeward.redis.url is {url!r}.",
            remedy="Give it at submission: -o leeward.redis.url=redis://:password@host:port/0.",
        )
    return url


def zookeeper(conf: dict) -> str:
    return ",".join(f"{host}:{conf['storm.zookeeper.port']}" for host in conf["storm.zookeeper.servers"])
