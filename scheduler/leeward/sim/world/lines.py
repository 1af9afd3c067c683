"""The lines of tasks that one process stands in for by the thousand: as `TaskMetrics.to_line` has them, but quicker.

Most of a line is the same each second, so it is written once, and the counts that grow are put in.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leeward.core.metrics import TaskMetrics
from leeward.sim.world.counts import Counters

#: Fields of a line that grow.
GROWING = ("t", "in", "out", "processed", "busy_s", "sojourns", "sojourn_s", "looked_at", "groups")
#: Of its tuples a stateful task looks at one in so many for the load of its key groups.
LOOKS_AT = 10

_encoder = msgspec.json.Encoder()


class Line:
    """One task's, until its process is another one or its key groups are others."""

    __slots__ = ("_groups", "_looks", "_number", "_rest", "_times")

    def __init__(self, now: TaskMetrics, groups: Sequence[int], *, looks: bool, times: bool) -> None:
        """`now`: its measurements at this moment; `groups`: those that it owns, each with the same number of tuples;
        `looks`: it looks at the groups of tuples, as stateful ones do; `times`: it times them, as all but sources do.
        """
        kept = {name: value for name, value in now.document().items() if name not in GROWING}
        self._rest = _encoder.encode(kept).decode()[1:]
        self._groups, self._number = ",".join(f'"{group}":#' for group in groups), max(1, len(groups))
        self._looks, self._times = looks, times

    def at(self, now: float, counters: Counters) -> str:
        """As JSON text, at this time, epoch s."""
        processed = round(counters.processed)
        received = ",".join([f'"{source}":{round(count)}' for source, count in counters.received.items()])
        looked_at = processed // LOOKS_AT if self._looks else 0
        groups = self._groups.replace("#", str(processed // self._number)) if looked_at else ""
        return (
            f'{{"t":{now!r},"in":{{{received}}},"out":{{"default":{round(counters.sent)}}},"processed":{processed},'
            f'"busy_s":{counters.busy_s:.6f},"sojourns":{processed if self._times else 0},'
            f'"sojourn_s":{counters.sojourn_s:.6f},"looked_at":{looked_at},"groups":{{{groups}}},{self._rest}'
        )
