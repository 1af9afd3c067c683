"""Facts about the nodes of an overlay that placement asks for: next hops, leaf sets, proximity, and loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.tables import Tables


class Overlay(Protocol):
    """The part of an overlay that placement uses; nodes are ids."""

    def next_hop(self, node: int, key: int, avoid: Collection[int]) -> int | None:
        """Where `node` sends a message to a key; None: nowhere, it is the nearest to the key that it knows."""

    def leaf_set(self, node: int) -> Iterable[int]:
        """The nodes next to it on the ring."""

    def proximity(self, a: int, b: int) -> float:
        """Of two nodes, s or any other unit; less is nearer."""


class Known(Protocol):
    """An overlay that has the tables of each node, as `platform/converged.py` has."""

    def tables(self, node: int) -> Tables:
        """Of one node."""

    def proximity(self, a: int, b: int) -> float:
        """Of two nodes."""


class ByTables:
    """An `Overlay` out of the tables of its nodes."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def next_hop(self, node: int, key: int, avoid: Collection[int]) -> int | None:
        """By Pastry's rule."""
        return self._known.tables(node).next_hop(key, avoid)

    def leaf_set(self, node: int) -> Iterable[int]:
        """Up to 24 nodes."""
        return self._known.tables(node).leaves

    def proximity(self, a: int, b: int) -> float:
        """Of two nodes."""
        return self._known.proximity(a, b)


class Loads:
    """Operators on each node, and how many it can hold.

    Raises LeewardError for a capacity below 0. All methods raise it for a node that is not among them.
    """

    def __init__(self, capacity: Mapping[int, int]) -> None:
        for node, most in capacity.items():
            if most < 0:
                raise LeewardError(f"capacity of node {node:032x}: {most} is below 0.", remedy="Give 0 or more.")
        self._capacity = dict(capacity)
        self._hosted = dict.fromkeys(capacity, 0)
        self.free = sum(capacity.values())  #: operators that all nodes together can still hold

    def hosted(self, node: int) -> int:
        """Operators on a node."""
        self.check(node)
        return self._hosted[node]

    def room(self, node: int) -> int:
        """Operators that a node can still hold."""
        self.check(node)
        return self._capacity[node] - self._hosted[node]

    def known(self, node: int) -> int:
        """Operators on a node, as its neighbours know it."""
        return self.hosted(node)

    def share(self, node: int, more: int = 0) -> float:
        """Its known operators and `more` over its capacity; 1 for a node without any."""
        self.check(node)
        return (self.known(node) + more) / self._capacity[node] if self._capacity[node] else 1.0

    def add(self, node: int, count: int = 1) -> None:
        """So many operators more; raises LeewardError, and adds none, for a node without room for all."""
        if self.room(node) < count:
            raise _full(node, self.hosted(node))
        self._hosted[node] += count
        self.free -= count

    def check(self, node: int) -> None:
        """Raises LeewardError for a node that is not among them."""
        if node not in self._hosted:
            raise LeewardError(
                f"node {node:032x} is not one of the overlay's {len(self._hosted)} nodes.",
                remedy="Name a node that has joined.",
            )


class Draft:
    """Loads beside which one application is being placed; nothing is added to them before `commit`.

    A node that decides on several operators of an application counts those that it has placed, however old its
    knowledge of other loads is.
    """

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._own: Counter[int] = Counter()

    def room(self, node: int) -> int:
        """Operators that a node can still hold."""
        return self._loads.room(node) - self._own[node]

    def share(self, node: int) -> float:
        """Its operators over its capacity."""
        return self._loads.share(node, self._own[node])

    def check(self, node: int) -> None:
        """Raises LeewardError for an unknown node."""
        self._loads.check(node)

    def add(self, node: int) -> None:
        """One operator more; raises LeewardError for a node without room."""
        if self.room(node) < 1:
            raise _full(node, self._loads.hosted(node) + self._own[node])
        self._own[node] += 1

    def commit(self) -> None:
        """Add all of them to the loads."""
        for node, count in self._own.items():
            self._loads.add(node, count)


def _full(node: int, operators: int) -> LeewardError:
    return LeewardError(
        f"node {node:032x} holds {operators} operators, as many as it can.",
        remedy="End an application on it, or raise its capacity.",
    )
