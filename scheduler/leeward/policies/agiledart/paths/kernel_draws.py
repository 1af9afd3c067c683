"""Compiled: draws from a stream of random numbers (splitmix64), the ones that `random.Random` makes of its own.

A stream is an array of one 64-bit word.  Functions repeat the steps of CPython's `random` module, so that a generator
with this stream behind its `random()` gives the readable classes the same draws.
"""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.agiledart.paths.compiled import kernel

#: Of splitmix64.
STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
#: Of Cheng's method for gamma variates, as in `random.gammavariate`.
_LOG4, _MAGIC = math.log(4.0), 1.0 + math.log(4.5)


@kernel
def share(stream):  # type: ignore[no-untyped-def]
    """The next number of the stream, in [0, 1)."""
    stream[0] += STEP
    value = stream[0]
    value = (value ^ (value >> _S30)) * _ONE
    value = (value ^ (value >> _S27)) * _TWO
    value = value ^ (value >> _S31)
    return float(value >> _S11) / 9007199254740992.0


@kernel
def gamma(stream, shape):  # type: ignore[no-untyped-def]
    """A gamma variate of scale 1 and a shape of 1 or more: `random.gammavariate(shape, 1.0)`."""
    if shape == 1.0:
        return -math.log(1.0 - share(stream))
    spread = math.sqrt(2.0 * shape - 1.0)
    while True:
        first = share(stream)
        if first <= 1e-7 or first >= 0.9999999:
            continue
        second = 1.0 - share(stream)
        v = math.log(first / (1.0 - first)) / spread
        x = shape * math.exp(v)
        z = first * first * second
        r = shape - _LOG4 + (shape + spread) * v - x
        if r + _MAGIC - 4.5 * z >= 0.0 or r >= math.log(z):
            return x


@kernel
def beta(stream, one, other):  # type: ignore[no-untyped-def]
    """A beta variate; both parameters 1 or more: `random.betavariate`."""
    y = gamma(stream, one)
    return y / (y + gamma(stream, other)) if y > 0.0 else 0.0


@kernel
def attempts(stream, theta):  # type: ignore[no-untyped-def]
    """How often a packet is sent until a link of success probability `theta` delivers it: geometric, 1 or more."""
    number = 1.0 - share(stream)
    return 1 if theta >= 1.0 else 1 + int(math.log(number) / math.log(1.0 - theta))
