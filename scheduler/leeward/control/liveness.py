"""Which tasks are away, by the beats that their processes leave in Redis (`runtime/task/beat.py`). Pure.

A process leaves a beat twice a second, and a farewell. It counts as silent when its beat has stood still for
`silent_s`. Redis may be away, or refuse writes, and then no beat changes: so nobody is silent while all are, and a gap
in the reading starts every count anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from leeward.core.control import GONE

#: A pause between two readings that is longer than this is the reader's fault, not the tasks'. # seconds
GAP_S = 1.0


class Liveness:
    """See the module; time is an argument, in seconds."""

    def __init__(self, silent_s: float) -> None:
        """`silent_s`: 0: no task ever counts as silent."""
        self._silent_s = silent_s
        self._beats: dict[int, str] = {}
        self._since: dict[int, float] = {}  # task -> when its beat was first seen as it is
        self._read_at: float | None = None

    def observe(self, beats: Mapping[int, str], now: float) -> frozenset[int]:
        """The silent tasks, of those that have ever beaten."""
        if self._read_at is None or now - self._read_at > GAP_S:
            self._since = dict.fromkeys(self._since, now)
        self._read_at = now
        for task, beat in beats.items():
            if self._beats.get(task) != beat:
                self._beats[task], self._since[task] = beat, now
        if not self._silent_s:
            return frozenset()
        gone = {task for task in beats if beats[task].startswith(GONE)}
        still = {task for task in beats if now - self._since[task] > self._silent_s}
        return frozenset(gone if still | gone == beats.keys() else still | gone)

    def unheard(self, tasks: Collection[int]) -> frozenset[int]:
        """Those of the tasks that have never beaten, as far as was observed."""
        return frozenset(tasks) - self._beats.keys()
