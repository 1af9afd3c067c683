"""Tables by measured load: replicas get about the same, and few key groups move. Pure; ties break by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum

from leeward.core.table import Table, redistribute, replicas

#: Loads this close to the mean, as a share of it, are balanced: measurements are no more exact.
TOLERANCE = 0.1
#: A move that takes less than this share of the mean off a replica gains nothing; a group with less load is idle.
LEAST_GAIN = 0.001
#: Less than this in all is no load, in tuples/s: shares of numbers near the smallest float would be 0.
NOTHING = 1e-9


def balance(
    table: Sequence[int], tasks: Sequence[int], load: Mapping[int, float], tolerance: float = TOLERANCE
) -> Table:
    """The table over `tasks` that shares out `load` (key group -> tuples/s) and moves few groups away from `table`.

    Groups of a departing task go to the least loaded; then groups go from more to less loaded tasks while one of the
    two is further than `tolerance` from the mean, each time the group (or, if none helps, the exchange of two) that
    evens out the two best. Idle groups stay, or go to the task with fewest. Every task gets a group. Applied to its own
    result it changes nothing. Without a load: `redistribute`.
    """
    if not tasks or fsum(load.values()) <= NOTHING:
        return redistribute(table, tasks)
    shares = _Shares(table, sorted(tasks), load)
    while shares.even_out(tolerance) or shares.fill():
        pass
    return shares.table()


def excess(table: Sequence[int], load: Mapping[int, float]) -> float:
    """By how much the most loaded replica is over the mean, as a share of it; 0 if nothing was measured."""
    total = fsum(load.values())
    if total <= NOTHING:
        return 0.0
    most = max(fsum(load.get(group, 0.0) for group, owner in enumerate(table) if owner == task) for task in set(table))
    return most * len(replicas(table)) / total - 1.0


class _Shares:
    """Owners of groups, while they change."""

    def __init__(self, table: Sequence[int], tasks: Sequence[int], load: Mapping[int, float]) -> None:
        self._weights = [load.get(group, 0.0) for group in range(len(table))]
        self._mean = fsum(self._weights) / len(tasks)
        self._least = LEAST_GAIN * self._mean
        self._groups: dict[int, set[int]] = {task: set() for task in tasks}
        orphans: set[int] = set()
        for group, owner in enumerate(table):
            self._groups.get(owner, orphans).add(group)
        for group in sorted(orphans, key=lambda group: (-self._weights[group], group)):
            self._groups[self._home(group)].add(group)

    def table(self) -> Table:
        owners = {group: task for task, groups in self._groups.items() for group in groups}
        return tuple(owners[group] for group in range(len(self._weights)))

    def even_out(self, tolerance: float) -> bool:
        """One move, or one exchange, that helps; False if there is none."""
        loads = {task: self._load(task) for task in self._groups}
        low, high = (1 - tolerance) * self._mean, (1 + tolerance) * self._mean
        pairs = [
            (loads[giver] - loads[taker], giver, taker)
            for giver in loads
            for taker in loads
            if (loads[giver] > high or loads[taker] < low) and loads[giver] - loads[taker] > tolerance * self._mean
        ]
        pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
        return any(self._move(*pair) for pair in pairs) or any(self._exchange(*pair) for pair in pairs)

    def fill(self) -> bool:
        """Give a task without any group the one that costs least; False if every task has one."""
        bare = [task for task, groups in self._groups.items() if not groups]
        giver = max(self._groups, key=lambda task: (len(self._groups[task]), -task))
        if not bare or len(self._groups[giver]) < 2:
            return False
        self._give(min(self._groups[giver], key=lambda group: (self._weights[group], -group)), giver, bare[0])
        return True

    def _home(self, group: int) -> int:
        """The task that a group without an owner goes to."""
        if self._weights[group] < self._least:
            return min(self._groups, key=lambda task: (len(self._groups[task]), task))
        return min(self._groups, key=lambda task: (self._load(task), len(self._groups[task]), task))

    def _load(self, task: int) -> float:
        return fsum(self._weights[group] for group in self._groups[task])

    def _move(self, gap: float, giver: int, taker: int) -> bool:
        weights, helps = self._weights, self._helps(gap)
        good = [group for group in self._groups[giver] if helps(weights[group])]
        if good:
            self._give(min(good, key=lambda group: (abs(gap / 2 - weights[group]), group)), giver, taker)
        return bool(good)

    def _exchange(self, gap: float, giver: int, taker: int) -> bool:
        helps = self._helps(gap)
        good = [
            (abs(gap / 2 - more + less), out, back)
            for out in self._groups[giver]
            for back in self._groups[taker]
            if (less := self._weights[back]) >= self._least and helps((more := self._weights[out]) - less)
        ]
        if good:
            _, out, back = min(good)
            self._give(out, giver, taker)
            self._give(back, taker, giver)
        return bool(good)

    def _helps(self, gap: float) -> Callable[[float], bool]:
        """Whether giving so much makes the larger of two loads that differ by `gap` smaller."""
        return lambda given: self._least <= given <= gap - self._least

    def _give(self, group: int, giver: int, taker: int) -> None:
        self._groups[giver].remove(group)
        self._groups[taker].add(group)
