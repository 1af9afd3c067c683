"""Groups that a handover gives to a task and that are not in yet, and the tuples that wait for them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

#: From a tuple to its key group; None if it has none (it is not routed by key).
GroupOf = Callable[[Any], int | None]


class Awaited:
    """Holds back what belongs to groups that are not in, in order; order per key is all that is promised.

    A tuple without a group may touch any of them, so it waits for all.
    """

    def __init__(self, group_of: GroupOf) -> None:
        self._group_of = group_of
        self._waiting: dict[int, deque[Any]] = {}
        self._ungrouped: deque[Any] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._ungrouped)

    def expect(self, groups: Iterable[int]) -> None:
        """These groups are on their way."""
        self._waiting |= {group: deque() for group in groups}

    def holds(self, item: Any) -> bool:
        """True if the item has to wait; it is kept."""
        if not self._waiting:
            return False
        group = self._group_of(item)
        queue = self._ungrouped if group is None else self._waiting.get(group)
        if queue is None:
            return False
        queue.append(item)
        return True

    def arrive(self, groups: Iterable[int]) -> list[Any]:
        """These groups are in. Returns the items that waited for them, in order."""
        out = [item for group in groups for item in self._waiting.pop(group, ())]
        if not self._waiting:
            out += self._ungrouped
            self._ungrouped.clear()
        return out

    def clear(self) -> None:
        """Forget everything: a reset restores it."""
        self._waiting.clear()
        self._ungrouped.clear()
