"""Learned quantiles of public paths: the part of what is wanted that a path from this server carries most of the time.

The paper takes the mean of the public rate for all paths.  Ours keeps the newest samples of each path, and counts it by
a low quantile: a stream hop waits for the slow times of its path, and fast ones give nothing back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

#: Newest samples of a path that count, and with how few it is unknown.
SAMPLES, LEAST = 60, 5
#: The part of the samples that is below.
BELOW = 0.25
#: Quantiles are told in steps, so that gossip is quiet while a path stays as it is.
STEP = 0.1
#: The same quantile of a path that is as the paper has it, log2 of its rate over the wanted one normal with sigma 1.
UNKNOWN = 2**-0.674
#: No path weighs more than the inverse of it.
SLOWEST = 1 / 8


class PathRates:
    """Samples of the public paths from one server."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[float]] = {}
        self._quantiles: dict[int, float] = {}

    def learn(self, to: int, part: float) -> None:
        """The path to a server has carried this part of what was wanted; over 1 where it would have carried more."""
        samples = self._samples.setdefault(to, deque(maxlen=SAMPLES))
        samples.append(part)
        if len(samples) >= LEAST:
            self._quantiles[to] = min(1.0, round(_quantile(samples) / STEP) * STEP)
            self._quantiles = dict(sorted(self._quantiles.items()))

    def quantiles(self) -> Mapping[int, float]:
        """Server -> quantile of the path to it, of those that are known, at most 1."""
        return self._quantiles


def weight_of(quantile: float | None) -> float:
    """Of a public hop, 1 or more: the inverse of the part that its path carries."""
    return 1.0 / min(1.0, max(SLOWEST, UNKNOWN if quantile is None else quantile))


def _quantile(samples: deque[float]) -> float:
    ordered = sorted(samples)
    return ordered[int(BELOW * len(ordered))]
