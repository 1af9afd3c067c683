"""The system's clock."""

from __future__ import annotations

import time


class SystemClock:
    """Clock: wall-clock seconds."""

    def now(self) -> float:
        return time.time()

    def patience(self, seconds: float) -> float:
        return seconds
