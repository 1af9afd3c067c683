"""Where instances go: from a number of replicas to counts by node, least-loaded nodes first. Pure; ties break by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from leeward.core.model import Node

Counts = dict[str, int]


@dataclass(slots=True)
class Room:
    """Replicas that the usable nodes hold, and can hold. Changes as replicas come and go."""

    capacity: Mapping[str, int]  #: node -> units that replicas may take
    used: Counter[str]

    @staticmethod
    def of(nodes: Collection[Node]) -> Room:
        """Of those that do not drain, empty."""
        return Room({node.id: node.capacity for node in nodes if not node.draining}, Counter())

    def free(self, node: str) -> int:
        """Units; below 0 where more is there than should be."""
        return self.capacity.get(node, 0) - self.used[node]

    def load(self, node: str) -> float:
        """Share of its capacity that is taken."""
        return self.used[node] / self.capacity[node] if self.capacity.get(node, 0) > 0 else 1.0

    def least_loaded(self, nodes: Collection[str]) -> str | None:
        """Of those with room; None if there is none."""
        return min((n for n in nodes if self.free(n) > 0), key=lambda n: (self.load(n), n), default=None)


def grow(
    counts: Mapping[str, int], by: int, allowed: Collection[str], room: Room, *, ready: Mapping[str, int],
    out: bool = False, near: Collection[str] = (),
) -> Counts:  # fmt: skip
    """`by` replicas more, or as many as there is room for. Takes their room.

    Up: on nodes that have some, then on others, first on those that are `near`. `out`: on nodes that have none, then
    those, in turn. `ready`: node -> replicas that it can have with no worker restarted; within these all others are the
    last choice.
    """
    found = dict(counts)
    here = {node for node, count in counts.items() if count > 0}
    close = set(near)

    def order(node: str) -> tuple[bool, bool, bool, float, str]:
        spare = found.get(node, 0) >= ready.get(node, 0)
        return spare, (node in here) == out, node not in close, room.load(node), node

    heap = [order(node) for node in allowed if room.free(node) > 0]
    heapify(heap)
    for _ in range(by):
        if not heap:
            break
        node = heap[0][-1]
        found[node] = found.get(node, 0) + 1
        room.used[node] += 1
        if out:
            here.add(node)
        if room.free(node) > 0:  # a replica changes the place of its own node alone
            heapreplace(heap, order(node))
        else:
            heappop(heap)
    return found


def shrink(counts: Mapping[str, int], by: int, room: Room) -> Counts:
    """`by` replicas fewer, from the most loaded nodes; one stays. Gives their room back."""
    found = dict(counts)
    for _ in range(min(by, sum(counts.values()) - 1)):
        node = max(found, key=lambda n: (room.load(n), found[n], n))
        found[node] -= 1
        room.used[node] -= 1
        if not found[node]:
            del found[node]
    return found


def move(counts: Mapping[str, int], target: str, room: Room) -> tuple[Counts, str]:
    """The replicas of the node that has most, as far as there is room, go to `target`; counts, and that node."""
    source = max(counts, key=lambda n: (counts[n], n))
    going = min(counts[source], room.free(target))
    found = dict(counts)
    found[source] -= going
    found[target] = found.get(target, 0) + going
    room.used[source] -= going
    room.used[target] += going
    return {node: count for node, count in found.items() if count}, source
