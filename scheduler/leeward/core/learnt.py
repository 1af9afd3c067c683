"""Values that the service learns on line from what happened, each with its confidence. Pure.

`control/learning/` learns them from the tasks' measurements and from reconfigurations that are over; policies find them
in the `ClusterView`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Standard deviation of a restart's pause until a second one was seen, s.
PAUSE_NOISE_S = 1.0


def sojourn_s(rho: float, service_s: float, rest: float, growth: float) -> float:
    """Mean time in a queue at utilisation `rho`, s: service_s (rest + growth rho / (1 - rho)), infinite from 1 on."""
    return math.inf if rho >= 1.0 else service_s * (rest + growth * rho / (1.0 - rho))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntCurve:
    """The response time of one replica: R(x) = s (b + g rho / (1 - rho)) with rho = s x, infinite from rho = 1 on.

    With b = 1 it is the M/G/1 queue of Pollaczek and Khinchine, R = s + x v / (2 (1 - s x)), where v is the second
    moment of the service time: g = v / (2 s^2), which is 1 for exponential service times (M/M/1) and 1/2 for equal
    ones. Neither b nor g is negative, so R never falls with the rate.
    """

    service_s: float  #: s, > 0
    rest: float = 1.0  #: b: the time at rate 0, in service times
    growth: float = 1.0  #: g: how the wait grows
    samples: float = 0.0  #: that count: old ones count less
    low: float = 0.0  #: lowest utilisation rho of a sample
    high: float = 0.0  #: highest
    #: Covariance of (b, g): variance of b, covariance, variance of g.
    covariance: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def response_s(self, rate: float) -> float:
        """R at `rate` tuples/s into one replica, s."""
        return sojourn_s(rate * self.service_s, self.service_s, self.rest, self.growth)

    def error_s(self, rate: float) -> float:
        """Standard error of R at this rate, s; beyond the rates that were seen it is that of the model's form."""
        rho = rate * self.service_s
        if rho >= 1.0:
            return math.inf
        of_rest, both, of_growth = self.covariance
        variance = (1.0 - rho) ** 2 * of_rest + 2.0 * rho * (1.0 - rho) * both + rho**2 * of_growth
        return self.service_s / (1.0 - rho) * math.sqrt(max(0.0, variance))

    def error(self, rate: float) -> float:
        """Standard error of R relative to R; infinite where R is."""
        response = self.response_s(rate)
        return math.inf if not 0.0 < response < math.inf else self.error_s(rate) / response

    def seen(self, rate: float) -> bool:
        """There were samples at this rate, or around it."""
        return self.samples > 0 and self.low <= rate * self.service_s <= self.high


class Selectivity(NamedTuple):
    """Tuples on a stream for each tuple that its source component processes."""

    ratio: float
    error: float  #: standard error of the ratio
    windows: float  #: measurements that count: old ones count less


class Restart(NamedTuple):
    """A restart that was done."""

    started: int  #: most replicas of one component that start on one node; 0: no worker restarted
    pause_s: float  #: from the announcement until tuples flow again


class RestartCost(NamedTuple):
    """The pause of a restart: a constant and a time for each replica that starts on the slowest node."""

    constant_s: float
    each_s: float
    error_s: float = 0.0  #: standard error of the pause with one replica
    restarts: int = 0  #: that it was learnt from


class Rest(NamedTuple):
    """The time from source to sink that the modelled parts do not have: alignment of pulses, intervals of sources.

    It does not depend on the placement, so it is told beside a plan, and compares none.
    """

    seconds: float  #: measured less modelled; negative where the model is too slow
    error_s: float  #: standard error
    samples: float  #: that count: old ones count less


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLink:
    """The way between a node and the DataStore as its tasks have used it; None: not measured yet.

    A rate is the median over transfers of bytes per second, their round trips included.
    """

    up_rate: float | None = None  #: of state that was written, bytes/s
    down_rate: float | None = None  #: of state that was read, bytes/s
    trip_s: float | None = None  #: round trip of a small command
    ups: int = 0  #: transfers behind `up_rate`
    downs: int = 0  #: transfers behind `down_rate`


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the learnt values of a view come from."""

    age_s: float | None = None  #: since the leader has recorded them; 0: it made the view itself; None: there are none
    why: str = ""  #: why there are none
    handovers: int = 0  #: behind the cost of handovers; 0: that is the default


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """All of it, of one topology; the cost of handovers is `core.model.HandoverCost`."""

    curves: Mapping[str, LearntCurve] = field(default_factory=dict)  #: by component
    selectivities: Mapping[tuple[str, str], Selectivity] = field(default_factory=dict)  #: by stream (from, to)
    stores: Mapping[str, StoreLink] = field(default_factory=dict)  #: by node
    restarts: tuple[Restart, ...] = ()  #: the newest, oldest first
    rest: Rest | None = None  #: None: too little was measured
    origin: Origin = field(default_factory=Origin)


def restart_cost(seen: Sequence[Restart], prior: RestartCost) -> RestartCost:
    """The least-squares line of pause over replicas started, drawn to the prior's by as much as that may be off.

    The prior's constant and time for each replica count as known up to their own size, at least 5 s and 1 s; a
    measured pause up to what the pauses scatter around the line. With no restart it is the prior.
    """
    if not seen:
        return prior
    spread = (max(5.0, prior.constant_s), max(1.0, prior.each_s))
    noise = PAUSE_NOISE_S
    fit = prior
    for _ in range(2):  # the scatter is known after a first line
        fit = _line(seen, prior, spread, noise)
        left = sum((one.pause_s - fit.constant_s - fit.each_s * one.started) ** 2 for one in seen)
        noise = math.sqrt((PAUSE_NOISE_S**2 + left) / (1 + len(seen)))
    return fit


def _line(seen: Sequence[Restart], prior: RestartCost, spread: tuple[float, float], noise: float) -> RestartCost:
    """Normal equations of (constant, each) around the prior; a part that would be negative is 0."""
    weight = 1.0 / noise**2
    a = 1.0 / spread[0] ** 2 + weight * len(seen)
    b = weight * sum(one.started for one in seen)
    d = 1.0 / spread[1] ** 2 + weight * sum(one.started**2 for one in seen)
    off = [one.pause_s - prior.constant_s - prior.each_s * one.started for one in seen]
    u, v = weight * sum(off), weight * sum(o * one.started for o, one in zip(off, seen, strict=True))
    det = a * d - b * b
    constant, each = prior.constant_s + (d * u - b * v) / det, prior.each_s + (a * v - b * u) / det
    if each < 0.0:
        each, constant = 0.0, prior.constant_s + (u + b * prior.each_s) / a
    if constant < 0.0:
        constant, each = 0.0, max(0.0, prior.each_s + (v + b * prior.constant_s) / d)
    error = math.sqrt(max(0.0, (d - 2.0 * b + a) / det))
    return RestartCost(max(0.0, constant), each, error, len(seen))
