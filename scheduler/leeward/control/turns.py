"""At most so many topologies of one service are reconfigured at the same time; the others wait for their turn.

A drain concerns all topologies of a node at once, and what they start to leave it shares the processors of the rest.
Topologies get their turn in the order in which they asked first. One that asks no more has lost its place.
"""

from __future__ import annotations

import threading

#: A topology that has not asked for so long does not wait any more, seconds.
FORGET_S = 30.0


class Turns:
    """See the module. For several threads; all times are of one clock. `at_once`: 0 is no limit."""

    def __init__(self, at_once: int = 0) -> None:
        self._at_once, self._lock = at_once, threading.Lock()
        self._running: set[str] = set()
        self._asked: dict[str, float] = {}  # those that wait, in order -> when they asked last, s

    def begin(self, topology: str, now: float) -> str:
        """Take a turn; why there is none, naming the topologies before it, or empty."""
        with self._lock:
            why = self._asks(topology, now)
            if not why:
                self._running.add(topology)
                del self._asked[topology]
            return why

    def waits(self, topology: str, now: float) -> str:
        """Why there is no turn to take now, or empty; it keeps its place among those that wait."""
        with self._lock:
            return self._asks(topology, now)

    def leave(self, topology: str) -> None:
        """It does not wait any more."""
        with self._lock:
            self._asked.pop(topology, None)

    def _asks(self, topology: str, now: float) -> str:
        self._asked = {name: at for name, at in self._asked.items() if now - at < FORGET_S}
        self._asked[topology] = now
        before = list(self._asked)[: list(self._asked).index(topology)]
        free = self._at_once - len(self._running - {topology})
        if not self._at_once or len(before) < free:
            return ""
        others = [f"{name} is reconfigured" for name in sorted(self._running - {topology})]
        others += [f"{name} asked before" for name in before]
        return f"waits for its turn (at_once = {self._at_once}): {', '.join(others)}"

    def resume(self, topology: str) -> None:
        """A predecessor began its reconfiguration, which nobody can put off."""
        with self._lock:
            self._running.add(topology)

    def end(self, topology: str) -> None:
        """Its reconfiguration is over, or it is no longer led here."""
        with self._lock:
            self._running.discard(topology)
            self._asked.pop(topology, None)
