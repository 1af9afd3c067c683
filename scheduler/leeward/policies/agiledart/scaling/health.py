"""The health of an operator's instances (AgileDART, "elastic scaling"; spec section 2), with the paper's symbols.

Paper -> here: x_n -> `x`, instances; r -> `r`, input rate that one instance is worth, tuples/s; q -> `q`, queue length
that one is worth, tuples; R_pn -> `R`, rate at which tuples come in the phase; Q_pn -> `Q`, tuples that wait;
alpha -> `a`, weight of the rate.

f is linear in x through 0, so f(x) = 1 at x / f(x) for any x: the harmonic mean of R/r and Q/q, weighted by a. It is
below the larger of the two, so the rate is not served where R/r is the larger one, and with an empty queue it is 0.
Ours counts the queue as a rate in place of that: `need` instances serve the rate and work the queue off in a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One measurement of an operator."""

    x: int  #: instances that it has
    r: float  #: tuples/s that one instance is worth, above 0
    R: float  #: tuples/s that come for all instances together
    Q: float  #: tuples that wait for them


def health(x: float, load: Load, *, q: float, a: float) -> float:
    """The paper's f(x) = a x r/R + (1 - a) x q/Q for `q` tuples and a weight `a` in [0, 1].

    0 for no instance; infinite where rate or queue is 0, has a weight, and there is an instance.
    """
    if x == 0:
        return 0.0
    return _term(a, x * load.r, load.R) + _term(1 - a, x * q, load.Q)


def solution(load: Load, *, q: float, a: float) -> float:
    """The number of instances x with f(x) = 1 of the paper's health; 0 where that is infinite for any instance."""
    return 1 / health(1, load, q=q, a=a)


def need(load: Load, *, drain_s: float) -> float:
    """Instances that serve R and work Q off in `drain_s` seconds: (R + Q/T_drain)/r. A queue for ever counts 0."""
    return (load.R + load.Q / drain_s) / load.r


def whole(x: float) -> int:
    """The least whole number of instances that is at least `x`, rounding errors left out."""
    return max(0, math.ceil(x - 1e-9 * max(1.0, abs(x))))


def _term(weight: float, worth: float, asked: float) -> float:
    if weight == 0:
        return 0.0
    return weight * worth / asked if asked > 0 else math.inf
