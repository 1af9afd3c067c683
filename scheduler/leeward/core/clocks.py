"""How far the clock of a node is ahead of the datastore's: times of two nodes are compared by the datastore's alone."""

from __future__ import annotations

from collections import deque

#: Readings of which the quickest counts.
READINGS = 16
#: By which two right readings may differ beside their round trips: a clock drifts by less in so many seconds.
DRIFT_S = 0.005
#: Between two readings once there are so many: each costs the task that reads processor time.
SELDOM_S = 4.0


class Ahead:
    """Pure: times are arguments, seconds."""

    def __init__(self) -> None:
        self._read: deque[tuple[float, float]] = deque(maxlen=READINGS)  # (round trip, ahead)
        self._at = self._apart = 0.0  # at the newest: the steady clock, and how far the node's was before it

    def wanted(self, *, now: float, steady: float) -> bool:
        """Whether the datastore's clock is to be read again: the last reading is long ago, or the node's clock was set
        since. `steady`: a clock of the node that nobody sets.
        """
        was_set = abs(now - steady - self._apart) > DRIFT_S
        return was_set or len(self._read) < READINGS or steady - self._at >= SELDOM_S

    def add(self, *, asked: float, answered: float, theirs: float, steady: float) -> None:
        """The datastore said `theirs` between these two readings of the node's clock; at the first it was `steady`."""
        if answered >= asked:  # else the clock was set in between
            self._at, self._apart = steady, asked - steady
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
