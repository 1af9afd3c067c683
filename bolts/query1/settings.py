"""The settings of query 1, read once from a component's Storm configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bolts.query1.grid import Grid
from bolts.query1.logic import WINDOW_S
from leeward.core.errors import ConfigError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime import secrets_of

SINKS = ("redis", "rabbitmq")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the configuration key named beside it."""

    redis_url: str = ""  #: leeward.redis.url, without a password
    secrets: Secrets = NO_SECRETS  #: of the file that leeward.secrets.file names
    taxi_in: str = "taxi:in"  #: query1.in, Redis stream of the rows
    batch: int = 500  #: query1.batch, rows fetched from Redis at once
    trim: bool = True  #: query1.trim, whether rows that no recovery needs are removed from the stream
    pulse_s: int = 60  #: query1.pulse_s, interval of the pulses, seconds of data time
    window_s: int = WINDOW_S  #: query1.window_s, seconds of data time
    sink: str = "redis"  #: query1.sink, one of SINKS
    out: str = "query1:out"  #: query1.out, Redis stream or RabbitMQ queue of the results
    rabbitmq_url: str = ""  #: leeward.rabbitmq.url, without a password
    grid: Grid = field(default_factory=Grid)  #: query1.cell_lon and .cell_lat, degrees of one cell


def read_settings(conf: Mapping[str, Any]) -> Settings:
    """The settings in a Storm configuration. Raises ConfigError naming key, value and what is wanted."""
    grid, plain = Grid(), Settings()
    sink = _get(conf, "query1.sink", str, plain.sink)
    if sink not in SINKS:
        raise ConfigError(f"query1.sink is {sink!r}.", remedy=f"Set it to one of {', '.join(SINKS)}.")
    return Settings(
        redis_url=_get(conf, "leeward.redis.url", str, plain.redis_url),
        secrets=secrets_of(conf),
        taxi_in=_get(conf, "query1.in", str, plain.taxi_in),
        batch=_positive(conf, "query1.batch", plain.batch),
        trim=_get(conf, "query1.trim", bool, plain.trim),
        pulse_s=_positive(conf, "query1.pulse_s", plain.pulse_s),
        window_s=_positive(conf, "query1.window_s", plain.window_s),
        sink=sink,
        out=_get(conf, "query1.out", str, plain.out),
        rabbitmq_url=_get(conf, "leeward.rabbitmq.url", str, plain.rabbitmq_url),
        grid=Grid(
            cell_lon=_get(conf, "query1.cell_lon", float, grid.cell_lon),
            cell_lat=_get(conf, "query1.cell_lat", float, grid.cell_lat),
        ),
    )


def _get(conf: Mapping[str, Any], key: str, kind: type[T], default: T) -> T:
    value = conf.get(key, default)
    if kind is float and type(value) is int:
        return kind(value)
    if type(value) is not kind:
        raise ConfigError(
            f"{key} is {value!r} of type {type(value).__name__}.",
            remedy=f"Set it to a value of type {kind.__name__}.",
        )
    return value


def _positive(conf: Mapping[str, Any], key: str, default: int) -> int:
    value = _get(conf, key, int, default)
    if value < 1:
        raise ConfigError(f"{key} is {value}.", remedy="It must be at least 1.")
    return value
