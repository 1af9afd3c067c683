"""Waits for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], timeout_s: float = 45.0) -> None:
    """Until it holds. Raises AssertionError when the time is over."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"it did not come about in {timeout_s:g} s"
        time.sleep(0.02)
