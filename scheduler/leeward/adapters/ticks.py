"""The clock of a process that runs a state machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def ticking(tick: Callable[[], object], tick_s: float, stop: asyncio.Event, *beside: asyncio.Task[Any]) -> None:
    """Call `tick` again and again, `tick_s` apart, until `stop`, or until a task beside it ends.

    Raises the error of a tick: a process that went on without its clock would be there and do nothing.
    """
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set() and not any(task.done() for task in beside):
            tick()
            await asyncio.wait({stopping, *beside}, timeout=tick_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
