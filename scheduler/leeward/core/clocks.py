"""How far the clock of a node is ahead of the datastore's: times of two nodes are compared by the datastore's alone."""

from __future__ import annotations

from collections import deque

#: Readings of which the quickest counts.
READINGS = 16
#: By which two right readings may differ beside their round trips: a clock drifts by less in so many seconds.
DRIFT_S = 0.005


class Ahead:
    """Pure: times are arguments, seconds."""

    def __init__(self) -> None:
        self._read: deque[tuple[float, float]] = deque(maxlen=READINGS)  # (round trip, ahead)

    def add(self, *, asked: float, answered: float, theirs: float) -> None:
        """The datastore said `theirs` between these two readings of the node's clock."""
        if answered >= asked:  # else the clock was set in between
            self._read.append((answered - asked, (asked + answered) / 2 - theirs))

    @property
    def seconds(self) -> float | None:
        """By the quickest of the newest readings, so off by half its round trip at most; None before the first.

        A clock that was set shows at once: readings that the newest one contradicts do not count.
        """
        if not self._read:
            return None
        trip, newest = self._read[-1]
        fits = [each for each in self._read if abs(each[1] - newest) <= (trip + each[0]) / 2 + DRIFT_S]
        return min(fits)[1]
