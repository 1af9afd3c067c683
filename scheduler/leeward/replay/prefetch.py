"""An iterator read one step ahead in a thread of its own, so that reading never stalls the sender."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_END = object()


class Prefetch(Generic[T]):
    """Iterate over `source` while a thread fetches what comes next; errors come out in their place."""

    def __init__(self, source: Iterator[T], *, ahead: int = 1) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(ahead)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fetch, args=(source,), name="prefetch", daemon=True)
        self._thread.start()

    def _fetch(self, source: Iterator[T]) -> None:
        try:
            for item in source:
                if not self._put((item, None)):
                    return
            self._put((_END, None))
        except Exception as error:
            self._put((_END, error))

    def _put(self, entry: tuple[object, BaseException | None]) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[T]:
        while True:
            item, error = self._queue.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop fetching; waits for a step under way, at most `timeout_s`."""
        self._closed.set()
        self._thread.join(timeout_s)
