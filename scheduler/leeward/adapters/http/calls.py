"""Calls of servers, beside the event loop and at most so many at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from leeward.control.loop import Aside

T = TypeVar("T")


class Calls:
    """Each on a thread of its own, which nobody joins: a server may take a while to answer, Ctrl-C must not.

    A call keeps its place until its thread has ended, also if nobody waits for that any more.
    """

    def __init__(self, most: int) -> None:
        self._places, self._aside = asyncio.Semaphore(most), Aside()
        self._asked: dict[object, asyncio.Future[Any]] = {}

    async def __call__(self, deed: Callable[[], T]) -> T:
        """The value of `deed`, or what it raises."""
        await self._places.acquire()
        return await asyncio.shield(self._begin(deed))

    async def shared(self, key: object, deed: Callable[[], T]) -> T:
        """As above; those that ask for the same while it is asked for get the same answer."""
        if key not in self._asked:
            await self._places.acquire()
            if key in self._asked:  # meanwhile
                self._places.release()
            else:
                self._asked[key] = self._begin(deed)
                self._asked[key].add_done_callback(lambda _: self._asked.pop(key))
        return await asyncio.shield(self._asked[key])

    def _begin(self, deed: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def ended(source: Future[T]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(self._tell, source, told)

        self._aside.submit(deed).add_done_callback(ended)
        return told

    def _tell(self, source: Future[T], told: asyncio.Future[T]) -> None:
        self._places.release()
        error = source.exception()
        if error is None:
            told.set_result(source.result())
        else:
            told.set_exception(error)
            told.exception()  # it is no fault if nobody waits for it
