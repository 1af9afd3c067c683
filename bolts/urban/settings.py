"""The settings `urban.*`, read once from a component's Storm configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bolts.latency.settings import Latency, read_latency
from bolts.urban.places import PULSE_S, WINDOW_S
from bolts.values import whole
from leeward.core.errors import ConfigError

#: Sensors of all cities; the paper scales its data to as many.
SENSORS = 90_000
#: Reports/s of all cities where `latency.rate` is not set.
RATE = 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the configuration key named beside it."""

    sensors: int = SENSORS  #: urban.sensors, of all cities together
    pulse_s: int = PULSE_S  #: urban.pulse_s, interval of the pulses, seconds of data time
    window_s: int = WINDOW_S  #: urban.window_s, seconds of data time, a multiple of the interval
    made: Latency  #: latency.*, with a rate in any case


def read_settings(conf: Mapping[str, Any]) -> Settings:
    """Raises ConfigError naming key, value and remedy."""
    latency = read_latency(conf)
    found = Settings(
        sensors=whole(conf, "urban.sensors", SENSORS),
        pulse_s=whole(conf, "urban.pulse_s", PULSE_S),
        window_s=whole(conf, "urban.window_s", WINDOW_S),
        made=replace(latency, rate=latency.rate or RATE),
    )
    if found.window_s % found.pulse_s:
        raise ConfigError(
            f"urban.window_s is {found.window_s}, no multiple of urban.pulse_s, which is {found.pulse_s}.",
            remedy=f"Set urban.window_s to {-(-found.window_s // found.pulse_s) * found.pulse_s}, say.",
        )
    return found
