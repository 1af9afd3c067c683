"""The tables that a node of the overlay keeps of others, and the next hop that follows (Pastry, sections 2.1 and 2.2).

A routing table has a row for each length of prefix that its owner shares with others, and in it a column for each next
digit; of several candidates the one of least proximity stays.  A leaf set has the 12 nodes next to the owner on either
side of the ring.  Values and sets only: no message, no time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from leeward.policies.agiledart.overlay.ids import BASE, RING, common_prefix, digit, nearness

LEAF_SET = 24
SIDE = LEAF_SET // 2
#: Proximity of a node that nobody has measured yet, s.
UNKNOWN = float("inf")


class RoutingTable:
    """Row r, column c: a node that shares r digits with the owner and has digit c next."""

    def __init__(self, me: int) -> None:
        self.me = me
        self._entries: dict[int, tuple[int, float]] = {}  #: row * BASE + column -> node, proximity

    def __iter__(self) -> Iterator[int]:
        return (node for node, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, node: int) -> bool:
        return node != self.me and self.entry(node) == node

    def offer(self, node: int, proximity: float = UNKNOWN) -> bool:
        """Enter a node if its place is empty, or it is nearer than the node there; whether it is in now."""
        if node == self.me:
            return False
        place = self._place(node)
        held = self._entries.get(place)
        if held is None or held[0] == node or proximity < held[1]:
            self._entries[place] = (node, proximity)
            return True
        return False

    def remove(self, node: int) -> bool:
        """Take a node out; whether it was in."""
        if node not in self:
            return False
        del self._entries[self._place(node)]
        return True

    def entry(self, key: int) -> int | None:
        """The node that shares one digit more with the key than the owner does; None: none is known."""
        held = self._entries.get(self._place(key))
        return held[0] if held else None

    def row(self, number: int) -> tuple[int, ...]:
        """The nodes of one row, by column."""
        places = range(number * BASE, (number + 1) * BASE)
        return tuple(self._entries[place][0] for place in places if place in self._entries)

    def _place(self, key: int) -> int:
        row = common_prefix(self.me, key)
        return row * BASE + digit(key, row)


class LeafSet:
    """The nodes next to the owner on the ring, up to SIDE on either side, the nearest first."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.after: tuple[int, ...] = ()  #: clockwise
        self.before: tuple[int, ...] = ()  #: counter-clockwise
        self._nodes: tuple[int, ...] = ()  #: of both
        self._after: list[tuple[int, int]] = []  #: clockwise distance from the owner, node
        self._before: list[tuple[int, int]] = []  #: counter-clockwise

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: int) -> bool:
        return node in self._nodes

    def wants(self, node: int) -> bool:
        """Whether `offer` would enter this node anew."""
        return node != self.me and any(
            (len(side) < SIDE or distance < side[-1][0]) and (distance, node) not in side
            for distance, side in self._sides(node)
        )

    def offer(self, node: int) -> bool:
        """Enter a node where it is near enough; whether it is new. In a small overlay a node is on both sides."""
        if not self.wants(node):
            return False
        for distance, side in self._sides(node):
            if (distance, node) not in side:
                insort(side, (distance, node))
                del side[SIDE:]
        self._changed()
        return True

    def enter_ring(self, ids: Sequence[int]) -> None:
        """Enter the nodes next to the owner in an overlay of these nodes, ascending, the owner among them."""
        at, count = bisect_left(ids, self.me), len(ids)
        for step in range(1, min(SIDE, count - 1) + 1):
            self.offer(ids[(at + step) % count])
            self.offer(ids[at - step])

    def remove(self, node: int) -> bool:
        """Take a node out; whether it was in."""
        if node not in self._nodes:
            return False
        for distance, side in self._sides(node):
            if (distance, node) in side:
                side.remove((distance, node))
        self._changed()
        return True

    def covers(self, key: int) -> bool:
        """Whether the key is within the range of the leaf set: the nearest node to it is then known here."""
        if len(self._nodes) < LEAF_SET:
            return True  # as few as that are all nodes, or some are on both sides
        return (key - self.me) % RING <= self._after[-1][0] or (self.me - key) % RING <= self._before[-1][0]

    def _sides(self, node: int) -> tuple[tuple[int, list[tuple[int, int]]], ...]:
        return ((node - self.me) % RING, self._after), ((self.me - node) % RING, self._before)

    def _changed(self) -> None:
        self.after = tuple(node for _, node in self._after)
        self.before = tuple(node for _, node in self._before)
        self._nodes = tuple(dict.fromkeys((*self.after, *self.before)))


@dataclass(frozen=True, slots=True)
class Tables:
    """All that a node knows of others."""

    me: int
    leaves: LeafSet = field(init=False)
    routes: RoutingTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", LeafSet(self.me))
        object.__setattr__(self, "routes", RoutingTable(self.me))

    def known(self) -> set[int]:
        """Every node in it."""
        return {*self.leaves, *self.routes}

    def remove(self, node: int) -> None:
        """A node is gone."""
        self.leaves.remove(node)
        self.routes.remove(node)

    def next_hop(self, key: int, avoid: Collection[int] = ()) -> int | None:
        """Where a message to a key goes next; None: to no other node, as the owner is the nearest that it knows.

        `avoid`: nodes that the message has passed, so that it never goes round in a circle, whatever the tables of
        others have, and nodes that do not acknowledge.
        """
        if self.leaves.covers(key):
            return self._nearest(self.leaves, key, avoid)
        entry = self.routes.entry(key)
        if entry is not None and entry not in avoid:
            return entry
        shared = common_prefix(self.me, key)  # the rare case
        return self._nearest((node for node in self.known() if common_prefix(node, key) >= shared), key, avoid)

    def _nearest(self, nodes: Iterable[int], key: int, avoid: Collection[int]) -> int | None:
        others = (node for node in nodes if node not in avoid)
        nearest = min((self.me, *others), key=lambda node: nearness(node, key))
        return None if nearest == self.me else nearest
