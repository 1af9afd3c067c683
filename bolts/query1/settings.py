"""The settings of an application on taxi rows, read once from a component's Storm configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bolts.latency.settings import Latency, read_latency
from bolts.query1.grid import Grid
from bolts.query1.logic import WINDOW_S
from bolts.values import typed, whole
from leeward.core.errors import ConfigError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime import secrets_of

SINKS = ("redis", "rabbitmq")
DEFAULT_GRID = Grid()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the configuration key named beside it; another application has its own name before the dot."""

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
    latency: Latency = field(default_factory=Latency)  #: latency.*


def read_settings(conf: Mapping[str, Any], application: str = "query1", grid: Grid = DEFAULT_GRID) -> Settings:
    """The settings in a Storm configuration, `grid` unless it sets cells of its own.

    Raises ConfigError naming key, value and what is wanted.
    """
    plain, key = Settings(), f"{application}.{{}}".format
    sink = typed(conf, key("sink"), str, plain.sink)
    if sink not in SINKS:
        raise ConfigError(f"{key('sink')} is {sink!r}.", remedy=f"Set it to one of {', '.join(SINKS)}.")
    return Settings(
        secrets=secrets_of(conf),
        taxi_in=typed(conf, key("in"), str, plain.taxi_in),
        batch=whole(conf, key("batch"), plain.batch),
        trim=typed(conf, key("trim"), bool, plain.trim),
        pulse_s=whole(conf, key("pulse_s"), plain.pulse_s),
        window_s=whole(conf, key("window_s"), plain.window_s),
        sink=sink,
        out=typed(conf, key("out"), str, f"{application}:out"),
        rabbitmq_url=typed(conf, "leeward.rabbitmq.url", str, plain.rabbitmq_url),
        grid=replace(
            grid,
            cell_lon=typed(conf, key("cell_lon"), float, grid.cell_lon),
            cell_lat=typed(conf, key("cell_lat"), float, grid.cell_lat),
        ),
        latency=read_latency(conf),
    )
