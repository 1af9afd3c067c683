"""Response-time curves R_i(rate) of an operator on the reference processor (paper, section 3.2).

A curve answers one question: how long does a tuple stay in one of `replicas` equal replicas that share
`load_tps` tuples/s?  All curves are increasing in the rate, so they never grow with the number of replicas.
Infinity means that a replica cannot keep up; such a configuration is infeasible.
Two more are fitted to measurements: `MG1`, whose two numbers the service learns on line, and `polynomial.Polynomial`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from leeward.core.learnt import sojourn_s


class ResponseCurve(Protocol):
    """R_i(load / replicas) in seconds at speed-up 1."""

    def response_s(self, load_tps: float, replicas: int) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MM1:
    """An M/M/1 queue: R(x) = 1 / (mu - x), infinite from x = mu on (paper, section 7.2)."""

    #: Service rate of one replica at speed-up 1, tuples/s, > 0.
    mu: float

    def response_s(self, load_tps: float, replicas: int) -> float:
        rate = load_tps / replicas
        return 1.0 / (self.mu - rate) if rate < self.mu else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class MG1:
    """A queue as learnt: R(x) = (rest + growth rho / (1 - rho)) / mu with rho = x / mu, infinite from x = mu on.

    With rest = 1 the formula of Pollaczek and Khinchine, growth = (1 + c^2) / 2 for the coefficient of variation c of
    the service time; M/M/1 with growth = 1.
    """

    #: Service rate of one replica at speed-up 1, tuples/s, > 0.
    mu: float
    #: Time at rate 0 in service times, >= 0.
    rest: float = 1.0
    #: Growth of the wait, >= 0.
    growth: float = 1.0

    def response_s(self, load_tps: float, replicas: int) -> float:
        return sojourn_s(load_tps / replicas / self.mu, 1.0 / self.mu, self.rest, self.growth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Tabled values R(lambda), R(lambda/2), ... for the operator's present load."""

    #: Seconds for 1, 2, ... replicas, not increasing; infinity where a replica cannot keep up.
    values_s: tuple[float, ...]

    def response_s(self, load_tps: float, replicas: int) -> float:
        """The table belongs to one load, so `load_tps` is not looked at."""
        return self.values_s[replicas - 1]
