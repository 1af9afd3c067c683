"""The options `latency.*` of a topology, read once from a component's Storm configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from bolts.values import amount, typed
from leeward.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Each field is the configuration key named beside it."""

    out: str = ""  #: latency.out, file on the sink's node, a line for each result; empty: none is written
    rate: float = 0.0  #: latency.rate, made inputs/s in place of an outer source; 0: the outer source
    seconds: float = 0.0  #: latency.seconds, the source ends after rate x seconds inputs; 0: it never ends
    seed: int = 1  #: latency.seed, of the made inputs

    @property
    def count(self) -> float:
        """How many inputs are made."""
        return round(self.rate * self.seconds) if self.seconds else inf


def read_latency(conf: Mapping[str, Any]) -> Latency:
    """Raises ConfigError naming key, value and remedy."""
    found = Latency(
        out=typed(conf, "latency.out", str, ""),
        rate=amount(conf, "latency.rate", 0.0),
        seconds=amount(conf, "latency.seconds", 0.0),
        seed=typed(conf, "latency.seed", int, 1),
    )
    if found.seconds and not found.rate:
        raise ConfigError(
            f"latency.seconds is {found.seconds:g}, and latency.rate is not set.",
            remedy="Set latency.rate too: only made inputs end after a time.",
        )
    return found
