"""How the pieces of one handover go from a task to the tasks that gain its groups."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator

from leeward.runtime.handover.direct import Way
from leeward.runtime.handover.relay import Relay
from leeward.runtime.pacing import Pacing

log = logging.getLogger(__name__)

#: epoch, task, stop -> the way to it; None if it cannot be reached
Reach = Callable[[int, int, threading.Event], Way | None]


class Ways:
    """How the pieces of one handover go: straight to who can be reached, else through Redis. One thread's."""

    def __init__(self, epoch: int, reach: Reach, relay: Relay, pacing: Pacing = Pacing()) -> None:
        self.epoch = epoch
        self._reach, self._relay, self._pacing = reach, relay, pacing
        self._ways: dict[int, Way | None] = {}  # None: through Redis
        self._waiting: Counter[int] = Counter()  # in Redis, for each receiver, as far as is known

    def push(self, target: int, pieces: list[bytes], stop: threading.Event) -> None:
        """Take these to a task, behind those before. Raises FencedError."""
        if target not in self._ways:
            self._ways[target] = self._reach(self.epoch, target, stop)
        if way := self._ways[target]:
            with self._else_through_redis(target, way, stop):
                way.push(pieces, stop)
        else:
            self._relay.put(self.epoch, target, pieces, self._waiting, stop)

    def untaken(self, target: int, stop: threading.Event) -> int:
        """Pieces that this task has not taken yet."""
        if way := self._ways.get(target):
            with self._else_through_redis(target, way, stop):
                way.hear()
                return len(way.untaken)
        return self._relay.waiting(self.epoch, target, stop)

    def settle(self, stop: threading.Event) -> None:
        """Until nothing is on its way that would be lost with this process; Redis keeps what it has."""
        for target in self._ways:
            while (way := self._ways[target]) and way.untaken and not stop.is_set():
                with self._else_through_redis(target, way, stop):
                    way.hear(self._pacing.block_s)

    def close(self) -> None:
        """Nothing more is sent."""
        for way in filter(None, self._ways.values()):
            way.close()

    @contextlib.contextmanager
    def _else_through_redis(self, target: int, way: Way, stop: threading.Event) -> Iterator[None]:
        """If the connection breaks, what it has not brought goes through Redis, and so does all that follows."""
        try:
            yield
        except OSError as failure:
            log.info("handover %d, to task %d: %s; through Redis", self.epoch, target, failure)
            way.close()
            self._ways[target] = None
            self._relay.put(self.epoch, target, list(way.untaken), self._waiting, stop)
