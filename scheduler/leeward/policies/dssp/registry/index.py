"""Where a capability is offered: boxes of the domains that have it, in a tree and beside it.

A tree (shapely's STRtree) cannot change.  New boxes stand beside it, where one comparison of arrays looks at all of
them, until they are many for its size; then a discovery builds it anew.  So a registration never pays for a tree, and
an index of n boxes is built about once in n / `SHARE` registrations.  Boxes of domains that have left stay: their
leases are over, which a discovery looks at anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import shapely

from leeward.policies.dssp.model.area import Area, Box
from leeward.policies.dssp.registry.entries import DomainEntry
from leeward.policies.dssp.registry.slots import GONE, Slots

#: Boxes that may stand beside a tree, or be left in it, of n: LEAST + n / SHARE.
LEAST, SHARE = 256, 16

Ints = npt.NDArray[np.int64]


class CapabilityIndex:
    """Boxes of one capability.  The first `_built` are in the tree, ordered by the name of their domain."""

    def __init__(self, slots: Slots) -> None:
        self._table = slots
        self._edges = np.empty((4, 16))  #: [edge, box]: west, south, east, north in degrees
        self._slots: Ints = np.empty(16, dtype=np.int64)  #: [box]: the domain's slot
        self._count = self._built = self._left = 0
        self._tree = shapely.STRtree([])

    @property
    def empty(self) -> bool:
        """Whether all domains have left."""
        return self._left == self._count

    def add(self, areas: Iterable[Area], slot: int) -> None:
        """The domain of a slot offers the capability there."""
        for box in _boxes(areas):
            if self._count == len(self._slots):
                self._edges = np.concatenate([self._edges, np.empty_like(self._edges)], axis=1)
                self._slots = np.concatenate([self._slots, np.empty_like(self._slots)])
            self._edges[:, self._count] = box
            self._slots[self._count] = slot
            self._count += 1

    def forget(self, areas: Iterable[Area]) -> None:
        """A domain with these areas has left; its slot is free by now."""
        self._left += len(_boxes(areas))

    def find(self, area: Area, now: float) -> list[DomainEntry]:
        """Domains under lease that offer the capability in some part of an area, ordered by name."""
        if max(self._count - self._built, self._left) > LEAST + self._built / SHARE:
            self._build()
        boxes = area.boxes()
        hits = np.concatenate([self._tree.query(shapely.box(*box)) for box in boxes])
        hits.sort()
        found = self._entries(self._slots[hits], now)
        beside = self._entries(self._beside(boxes), now)
        if beside:
            found = sorted(found + beside, key=attrgetter("name"))
        return found

    def offered(self, now: float) -> bool:
        """Whether any domain that offers the capability is under lease."""
        return bool((self._table.until[self._slots[: self._count]] > now).any())

    def hull(self, now: float) -> Box:
        """The smallest box that has all areas of domains under lease, degrees; at least one is (`offered`)."""
        edges = self._edges[:, : self._count][:, self._table.until[self._slots[: self._count]] > now]
        west, south, east, north = edges[0].min(), edges[1].min(), edges[2].max(), edges[3].max()
        return float(west), float(south), float(east), float(north)

    def _beside(self, boxes: Iterable[Box]) -> Ints:
        """Slots of boxes beside the tree that meet one of these; those of a domain are neighbours, as it added them."""
        edges, meet = self._edges[:, self._built : self._count], np.zeros(self._count - self._built, dtype=bool)
        for west, south, east, north in boxes:
            meet |= (edges[0] <= east) & (edges[2] >= west) & (edges[1] <= north) & (edges[3] >= south)
        return self._slots[self._built : self._count][meet]

    def _entries(self, slots: Ints, now: float) -> list[DomainEntry]:
        """Entries under lease; equal slots, of a domain with several areas, are neighbours."""
        keep = self._table.until[slots] > now
        keep[1:] &= slots[1:] != slots[:-1]
        found: list[DomainEntry] = self._table.entries[slots[keep]].tolist()
        return found

    def _build(self) -> None:
        """The tree of all boxes whose domains have not left."""
        there = np.flatnonzero(self._table.until[self._slots[: self._count]] > GONE)
        names = [entry.name for entry in self._table.entries[self._slots[there]]]
        there = there[sorted(range(len(names)), key=names.__getitem__)]  # stable: a domain's boxes stay neighbours
        # shapes of the tree before are kept: making them again would take most of the time
        beside = shapely.box(*self._edges[:, self._built : self._count])
        self._tree = shapely.STRtree(np.concatenate([self._tree.geometries, beside])[there])
        self._edges, self._slots = self._edges[:, there], self._slots[there]
        self._count = self._built = len(there)
        self._left = 0


def _boxes(areas: Iterable[Area]) -> list[Box]:
    return [box for area in areas for box in area.boxes()]
