"""Slots and room that accepted plans are about to use, for the topologies that one process leads.

Storm shows a slot as taken only after it has placed a task there, and a placement is in ZooKeeper only when the
coordinator comes to it. Between the acceptance of a plan and that moment its slots stand here, so that the plan of
another topology cannot take them. Between two processes nothing stands in between: the plugin refuses the second one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping

from leeward.control.turns import Turns
from leeward.core.plan import Placement, Slot


class Reservations:
    """See the module. For several threads."""

    def __init__(self, at_once: int = 0) -> None:
        """`at_once`: topologies that may be reconfigured at the same time; 0: all."""
        self.turns = Turns(at_once)
        self._lock = threading.Lock()
        self._slots: dict[str, frozenset[Slot]] = {}
        self._wanted: dict[str, Mapping[str, int]] = {}  # topology -> overhang by its accepted plan
        self._present: dict[str, Mapping[str, int]] = {}  # and as it is

    def claim(
        self, topology: str, slots: Collection[Slot], over: Mapping[str, int] | None = None
    ) -> tuple[str, Slot] | None:
        """Reserve all of `slots` for this topology; (topology, slot) that is in the way, and nothing is reserved.

        `over`: its overhang then, by node (`overhang.py`).
        """
        with self._lock:
            for other, theirs in sorted(self._slots.items()):
                common = theirs.intersection(slots)
                if other != topology and common:
                    return other, min(common)
            self._slots[topology], self._wanted[topology] = frozenset(slots), over or {}
            return None

    def stands(self, topology: str, over: Mapping[str, int]) -> None:
        """Its overhang as it is, by node."""
        with self._lock:
            self._present[topology] = over

    def release(self, topology: str) -> None:
        """Its reconfiguration is over; its turn, too."""
        self.turns.end(topology)
        with self._lock:
            self._slots.pop(topology, None)
            self._wanted.pop(topology, None)

    def leave(self, topology: str) -> None:
        """It is no longer led here."""
        self.release(topology)
        with self._lock:
            self._present.pop(topology, None)

    def of_others(self, topology: str) -> frozenset[Slot]:
        """Slots that the plans of other topologies are about to use."""
        with self._lock:
            return frozenset().union(*(slots for other, slots in self._slots.items() if other != topology))

    def over_of_others(self, topology: str) -> dict[str, int]:
        """Node -> overhang of all other topologies, of each as it is or by its accepted plan, whichever is more."""
        found: Counter[str] = Counter()
        with self._lock:
            for other in (self._present.keys() | self._wanted.keys()) - {topology}:
                found.update(Counter(self._present.get(other)) | Counter(self._wanted.get(other)))
        return dict(found)


def wanted_by_others(placements: Mapping[str, Placement], topology: str, running: Collection[str]) -> frozenset[Slot]:
    """Slots in the placements of other topologies that run. `placements`: by name; `running`: ids."""
    objects: dict[int, Slot] = {}  # the tasks of a slot mostly have one object, and a slot's hash takes long
    for name, placement in placements.items():
        if name != topology and placement.topology_id in running:
            slots = placement.slots.values()
            objects.update(zip(map(id, slots), slots, strict=True))
    return frozenset(objects.values())
