"""The way between each node and the DataStore, from the transfers of state that its tasks have timed. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median

from leeward.control.learning.record import StoreTimes
from leeward.core.learnt import StoreLink
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot

#: Transfers of a node and direction that count, and round trips.
KEEP = 32
#: Bytes of a transfer, at least: the time of a smaller one is that of its round trip.
LEAST_BYTES = 64 * 1024
#: Between two looks, s: in a longer time many small transfers would count as one large one.
GAP_S = 10.0


class TransferLearner:
    """See the module."""

    def __init__(self, kept: Mapping[str, StoreTimes] | None = None) -> None:
        """`kept`: by node, to go on from."""
        kept = kept or {}
        self._ups = {node: deque(one.ups, maxlen=KEEP) for node, one in kept.items() if one.ups}
        self._downs = {node: deque(one.downs, maxlen=KEEP) for node, one in kept.items() if one.downs}
        self._trips = {node: deque(one.trips, maxlen=KEEP) for node, one in kept.items() if one.trips}

    def add(self, old: Mapping[int, TaskMetrics], new: Mapping[int, TaskMetrics], slots: Mapping[int, Slot]) -> None:
        """Two looks at the tasks, one after the other. `slots`: task -> slot as Storm has it."""
        for task, after in sorted(new.items()):
            if task not in slots:
                continue
            node, before = slots[task].node, old.get(task)
            if after.trip_s > 0:
                self._trips.setdefault(node, deque(maxlen=KEEP)).append(after.trip_s)
            if before is None or after.t - before.t > GAP_S:
                continue
            ups, downs = _totals(before) if before.pid == after.pid else ((0.0, 0.0), (0.0, 0.0))
            _note(self._ups, node, ups, _totals(after)[0])  # a process counts from its start
            _note(self._downs, node, downs, _totals(after)[1])

    def kept(self) -> dict[str, StoreTimes]:
        """By node: all that it goes on from."""
        found = (self._ups, self._downs, self._trips)
        return {
            node: StoreTimes(**{n: tuple(of.get(node, ())) for n, of in zip(StoreTimes.__slots__, found, strict=True)})
            for node in sorted(set().union(*found))
        }

    def fit(self) -> dict[str, StoreLink]:
        """Node -> its link, of those that were measured."""
        nodes = sorted({*self._ups, *self._downs, *self._trips})
        return {
            node: StoreLink(
                up_rate=_median(self._ups, node), down_rate=_median(self._downs, node),
                trip_s=_median(self._trips, node),
                ups=len(self._ups.get(node, ())), downs=len(self._downs.get(node, ())),
            )
            for node in nodes
        }  # fmt: skip


def _totals(sample: TaskMetrics) -> tuple[tuple[float, float], tuple[float, float]]:
    """(bytes, s) up, and down."""
    return (sample.up_bytes, sample.up_s), (sample.down_bytes, sample.down_s)


def _note(kept: dict[str, deque[float]], node: str, before: tuple[float, float], after: tuple[float, float]) -> None:
    """A transfer since the look before, as bytes/s."""
    size, seconds = after[0] - before[0], after[1] - before[1]
    if size >= LEAST_BYTES and seconds > 0:
        kept.setdefault(node, deque(maxlen=KEEP)).append(size / seconds)


def _median(kept: Mapping[str, deque[float]], node: str) -> float | None:
    return median(kept[node]) if kept.get(node) else None
