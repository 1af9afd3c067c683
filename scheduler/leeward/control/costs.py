"""The cost of handovers, learned from those that were done: longest wait of a tuple = constant + time per byte moved.

The estimate is Theil and Sen's: the median slope between pairs, then the median of what is left over. One handover in
four may have met a pause of a garbage collector, or no waiting tuple, and nothing changes. Neither part is negative.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median

from leeward.core.model import HandoverCost

#: Cost until one was measured.
PRIOR = HandoverCost()
#: Handovers that count.
KEEP = 16


def estimate(seen: Sequence[tuple[float, float]], prior: HandoverCost = PRIOR) -> HandoverCost:
    """The cost from pairs of (bytes moved, longest wait in s).

    The time for a byte is the prior's, though no more than what was waited allows, while all moved as much.
    """
    if not seen:
        return prior
    slopes = [(w2 - w1) / (s2 - s1) for (s1, w1), (s2, w2) in combinations(seen, 2) if s1 != s2]
    size, wait = (median(column) for column in zip(*seen, strict=True))
    slope = max(0.0, median(slopes)) if slopes else min(prior.per_byte_s, wait / size if size else prior.per_byte_s)
    return HandoverCost(max(0.0, median(wait - slope * size for size, wait in seen)), slope)


class HandoverCosts:
    """The newest handovers of a topology."""

    def __init__(self, seen: Iterable[tuple[float, float]] = ()) -> None:
        """`seen`: as `kept` gave them."""
        self._seen: deque[tuple[float, float]] = deque(seen, maxlen=KEEP)

    def add(self, size: float, waited_s: float) -> None:
        """A handover that was done: bytes that moved, longest wait of a tuple in seconds."""
        self._seen.append((size, waited_s))

    def kept(self) -> tuple[tuple[float, float], ...]:
        """(Bytes moved, longest wait in s), oldest first: all that it goes on from."""
        return tuple(self._seen)

    def fit(self) -> HandoverCost:
        """As estimated."""
        return estimate(self._seen)

    def off_s(self) -> float | None:
        """Median distance of the handovers from the estimate, s; None before the first."""
        constant_s, per_byte_s = self.fit()
        distances = [abs(wait - constant_s - per_byte_s * size) for size, wait in self._seen]
        return median(distances) if distances else None

    def __len__(self) -> int:
        return len(self._seen)
