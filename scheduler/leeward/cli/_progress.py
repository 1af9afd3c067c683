"""A bar on standard error for work whose length is known, where that is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Time between two drawings, s.
REDRAWN_AFTER_S = 0.2


@contextmanager
def progress(total: float, title: str) -> Iterator[Callable[..., None]]:
    """Call the result with how much is done, and with `title` when that changes."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(title, total=total)
        shown = 0.0

        def advance(done: float, title: str | None = None) -> None:
            nonlocal shown
            if (now := time.monotonic()) - shown > REDRAWN_AFTER_S:
                shown = now
                bars.update(bar, completed=done, description=title)

        yield advance
