"""Sojourn times of a bolt's tuples, wait and service, from the reads of its pipe. Pure: times are arguments, s.

A read takes all that has come. If the bolt had to wait for it, its tuples had not. If it was there, its tuples have
come at any time since the read before, while the bolt was busy: on average half of that time ago. Then they are
processed one after the other; where a tuple takes as long as any other on average, those of a batch of n are done after
(n + 1) / 2n of its time. So the times cost a few additions for some reads, and none for each tuple.

Tuples that still wait in the worker or in the network are not seen: over a queue of about 64 KiB the time is too short.
"""

from __future__ import annotations


class Sojourns:
    """See the module; `tuples` and `seconds` are totals since the process began."""

    __slots__ = ("_read_at", "_waited_s", "seconds", "tuples")

    def __init__(self) -> None:
        self.tuples = 0
        self.seconds = 0.0
        self._read_at: float | None = None
        self._waited_s = 0.0

    def read(self, now: float, *, there: bool) -> None:
        """A batch was read at `now`. `there`: it was there when it was asked for."""
        before, self._read_at = self._read_at, now
        self._waited_s = max(0.0, now - before) / 2 if there and before is not None else 0.0

    def processed(self, tuples: int, busy_s: float) -> None:
        """So many tuples of the batch read last were processed, in `busy_s`."""
        self.tuples += tuples
        self.seconds += tuples * self._waited_s + busy_s * (tuples + 1) / 2

    def one(self, seconds: float) -> None:
        """A tuple that was timed by itself."""
        self.tuples += 1
        self.seconds += seconds
