"""How often Python looks for cycles among the objects of a process that keeps most of what it makes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects that are made between two looks for cycles, and looks at the young ones between two at the older ones.
COLLECT_AFTER = (100_000, 50, 50)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """A simulation, or a service, makes hardly any cycles; to look for them took a fifth of the time of each."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
