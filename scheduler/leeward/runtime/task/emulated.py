"""Emulated service times: a server that takes a fixed time for each tuple, without burning the processor. Pure."""

from __future__ import annotations


class Server:
    """One server of `seconds` per tuple (0: none is emulated); time is an argument, in seconds.

    Tuples that were waiting are served back to back, so a sleep that took too long costs no capacity; a tuple that
    finds the server idle begins when it comes, so idle time earns nothing.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._free_at = 0.0
        self._idle = True

    def rest(self) -> None:
        """Nothing is waiting."""
        self._idle = True

    def serve(self, now: float, tuples: int = 1) -> float:
        """Begin to serve; when it is done."""
        begin = now if self._idle else self._free_at
        self._idle = False
        self._free_at = begin + tuples * self.seconds
        return self._free_at

    def busy_for(self, now: float) -> float:
        """Seconds until the server is free."""
        return max(0.0, self._free_at - now)
