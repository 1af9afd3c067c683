"""Where a task's node is in the network: it measures round trips to other tasks, and moves its coordinate by them.

A round trip is the kernel's own, of the handshake of a TCP connection, so it does not depend on how busy the other
process is. The other task answers with its coordinate (`core/coordinates.py`). At first a task asks once a second, and
later once in ten. After a round trip that is longer than before it asks the same task again at once, until it knows
whether the way has become longer or that one has waited. Tasks of its own node are not asked: their round trips are
near 0, which no two tasks' coordinates are apart, and a relative error of them says nothing.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from random import Random

import msgpack

from leeward.core.coordinates import Coordinate, moved
from leeward.core.errors import LeewardError
from leeward.runtime.handover.direct import ask
from leeward.runtime.pacing import Pacing

log = logging.getLogger(__name__)

#: Round trips to one node that are kept; the shortest counts, as others have waited in a queue on the way.
KEPT = 4
#: A round trip is longer than before if it is longer than the shortest kept one by this factor, and by so much, s.
LONGER, LONGER_S = 4 / 3, 0.001
#: Nodes whose round trips are told, those last asked: a line of metrics stays short on a large cluster.
TOLD = 16


class Distance:
    """See the module. `addresses`: task -> where it listens, of all that do; it may ask a server, and raise OSError or
    LeewardError. `task`: this one, which seeds its choices. `node`: its own, as others reach it."""

    def __init__(
        self, addresses: Callable[[], Mapping[int, bytes]], task: int, node: str, pacing: Pacing = Pacing(),
        measure: Callable[[bytes, int, Pacing], tuple[float, bytes]] = ask,
    ) -> None:  # fmt: skip
        self._addresses, self._task, self._node, self._pacing = addresses, task, node, pacing
        self._measure = measure
        self._rng, self._stop = Random(task), threading.Event()
        self._known: list[tuple[str, bytes]] = []  # nodes and addresses there
        self._looks = 0
        self._doubted: tuple[str, bytes] | None = None  # its last round trip was longer than before
        self._trips: dict[str, deque[float]] = {}  # by node; the one last asked is the last
        self.place = Coordinate()  #: replaced as a whole: any thread may read it

    def answer(self) -> bytes:
        """For another task that asks."""
        packed: bytes = msgpack.packb(self.place.figures())
        return packed

    def trips(self) -> dict[str, float]:
        """Node -> round trip to it, s, of the last ones that were asked."""
        return {node: min(trips) for node, trips in list(self._trips.items())[-TOLD:]}

    def start(self) -> None:
        """Ask from now on, in a thread."""
        threading.Thread(target=self._work, name="leeward-distance", daemon=True).start()

    def close(self) -> None:
        """Ask nobody any more."""
        self._stop.set()

    def look(self) -> None:
        """Ask one other task. Raises OSError and LeewardError where a server or the task cannot be reached."""
        if self._looks % self._pacing.distance_again == 0:
            self._read()
        self._looks += 1
        if not self._known:
            return
        (node, address), self._doubted = self._doubted or self._rng.choice(self._known), None
        seconds, answered = self._measure(address, self._task, self._pacing)
        trips = self._trips.get(node) or deque(maxlen=KEPT)
        trips.append(seconds)
        if seconds > max(LONGER * min(trips), min(trips) + LONGER_S):
            self._doubted = node, address
        self._trips = {name: kept for name, kept in self._trips.items() if name != node} | {node: trips}
        with contextlib.suppress(ValueError, msgpack.UnpackException):
            if (other := Coordinate.of(msgpack.unpackb(answered))) is not None:
                self.place = moved(self.place, other, min(trips), self._rng)

    def _read(self) -> None:
        """Where the tasks of other nodes listen now."""
        known = ((msgpack.unpackb(address)[0], address) for _, address in sorted(self._addresses().items()))
        self._known = [(node, address) for node, address in known if node != self._node]
        there = {node for node, _ in self._known}
        self._trips = {node: trips for node, trips in self._trips.items() if node in there}

    def pause_s(self) -> float:
        """From the last question to the next, s."""
        soon = self._doubted is not None or self._looks < self._pacing.distance_soon
        return self._pacing.distance_s if soon else self._pacing.distance_late_s

    def _work(self) -> None:
        while not self._stop.wait(self.pause_s()):
            try:
                self.look()
            except (OSError, LeewardError) as failure:
                log.debug("no distance measured: %s", failure)
