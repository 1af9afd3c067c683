"""How long a sender waits for an acknowledgement: as RFC 6298, but without backing off.

Links here lose packets by themselves, not because they are full: a longer wait after each loss would make a lossy link
look worse than it is.  Acknowledgements repeat the time of their attempt, so late ones count as well, and a timeout
that is too short corrects itself.
"""

from __future__ import annotations

#: Until the first acknowledgement, s.
FIRST_S = 0.5
#: Least margin over the mean round trip: clocks tick, and processes wait for a processor, s.
MARGIN_S = 0.02
#: Weights of a new round trip in the mean and in the deviation.
_MEAN, _DEVIATION = 1 / 8, 1 / 4


class RoundTrip:
    """Of one link."""

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._deviation_s = 0.0

    def measured(self, seconds: float) -> None:
        """An acknowledgement came so long after its attempt."""
        if self._mean_s is None:
            self._mean_s, self._deviation_s = seconds, seconds / 2
            return
        self._deviation_s += _DEVIATION * (abs(seconds - self._mean_s) - self._deviation_s)
        self._mean_s += _MEAN * (seconds - self._mean_s)

    @property
    def timeout_s(self) -> float:
        """From an attempt to the next."""
        return FIRST_S if self._mean_s is None else self._mean_s + max(MARGIN_S, 4 * self._deviation_s)
