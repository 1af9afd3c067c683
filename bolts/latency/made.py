"""Inputs at a rate: each one follows from its number alone, so a source that was moved goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable

from bolts.latency.settings import Latency

#: After a pause the backlog is at most that of so many seconds. The latency of a burst would be that of the pause.
BACKLOG_S = 0.1


class Pace:
    """When the next input is due, on a clock that its caller reads (seconds)."""

    def __init__(self, rate: float, now: float) -> None:
        self._apart_s, self._due = 1 / rate, now

    def wait_s(self, now: float) -> float:
        """How long until the next input is due; 0 or less: it is."""
        return self._due - now

    def sent(self, now: float) -> None:
        """An input was sent."""
        self._due = max(self._due + self._apart_s, now - BACKLOG_S)


class Made:
    """The numbers 1, 2, 3, ... of made inputs, as they become due."""

    def __init__(
        self, latency: Latency, *, clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._latency, self._clock, self._sleep = latency, clock, sleep
        self._pace = Pace(latency.rate, clock())

    def due(self, after: int, *, wait_s: float) -> int | None:
        """The number that follows `after`, once it is due; None if it is not within `wait_s`."""
        wait = self._pace.wait_s(self._clock())
        if wait > 0:
            self._sleep(min(wait, wait_s))
            if wait > wait_s:
                return None
        self._pace.sent(self._clock())
        return after + 1

    def is_over(self, number: int) -> bool:
        """There is no input of this number."""
        return number > self._latency.count
