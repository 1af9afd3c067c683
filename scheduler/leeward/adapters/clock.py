"""The system's clock."""

from __future__ import annotations

import time


class SystemClock:
    """Clock: the wall clock as it was at the start, and from then on the time that has passed."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()

    def patience(self, seconds: float) -> float:
        return seconds
