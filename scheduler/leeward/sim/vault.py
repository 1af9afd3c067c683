"""The cuts of a simulated topology, in Redis and in the nodes' swap areas. Rules as in `runtime/state/store.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.errors import FencedError, SnapshotError
from leeward.runtime.state import snapshot
from leeward.sim.memory import World

OLDER = "The coordinator falls back to the cut before it."


@dataclass(frozen=True, slots=True)
class Part:
    """One task's part of a cut."""

    owned: frozenset[int]
    blobs: Mapping[int, bytes]  #: in Redis
    swap: Mapping[int, bytes]  #: on the node
    node: str


@dataclass(slots=True)
class Vault:
    """See the module. `world` decides whether Redis answers, and holds the fence."""

    world: World
    topology_id: str
    parts: dict[int, dict[str, dict[int, Part]]] = field(default_factory=dict)  #: cut -> component -> task
    full: bool = False  #: Redis has no memory left
    lost_swap: set[tuple[str, int]] = field(default_factory=set)  #: (node, cut): swap files that are gone
    unreadable: set[int] = field(default_factory=set)  #: cuts that Redis has lost, until a person brings them back

    def export(
        self, *, cut: int, epoch: int, component: str, task: int, node: str, owned: Iterable[int],
        blobs: Mapping[int, bytes], swap: Mapping[int, bytes],
    ) -> None:  # fmt: skip
        """Raises FencedError, ClusterRefusedError, MemoryError."""
        self.world.check("redis")
        if self.full:
            raise MemoryError("command not allowed when used memory > 'maxmemory'")
        fence = self.world.fences.get(self.topology_id, 0)
        if fence > epoch:
            raise FencedError(f"task {task} of epoch {epoch} may not write: epoch {fence} is in force.")
        part = Part(frozenset(owned), dict(blobs), dict(swap), node)
        self.parts.setdefault(cut, {}).setdefault(component, {})[task] = part
        self.world.cuts.setdefault(self.topology_id, set()).add(cut)

    def load(
        self, *, cut: int, component: str, task: int, node: str, groups: Iterable[int]
    ) -> tuple[dict[int, Any], int]:
        """Entries of these groups, and their size. Raises SnapshotError if one cannot be had."""
        self.world.check("redis")
        wanted = list(groups)
        if cut == 0 or not wanted:
            return {group: {} for group in wanted}, 0
        missing, entries, size = set(wanted), {}, 0
        if cut in self.unreadable or cut not in self.world.cuts.get(self.topology_id, ()):
            raise SnapshotError(f"cut {cut} is missing.", remedy=OLDER)
        for owner, part in self.parts.get(cut, {}).get(component, {}).items():
            here = missing & part.owned
            missing -= here
            for group in sorted(here):
                blob = part.blobs.get(group)
                if group in part.swap:
                    if owner != task or part.node != node or (node, cut) in self.lost_swap:
                        raise SnapshotError(f"cut {cut}, group {group} is in a swap area of {part.node}.", remedy=OLDER)
                    blob = part.swap[group]
                where = f"cut {cut}, {component}, group {group}"
                entries[group] = {} if blob is None else snapshot.decode(blob, cut=cut, where=where)
                size += len(blob or b"")
        if missing:
            raise SnapshotError(f"cut {cut}, {component}: nobody exported group {min(missing)}.", remedy=OLDER)
        return entries, size

    def is_in_redis(self, cut: int) -> bool:
        """Every part of the cut can be read from every node."""
        parts = [part for tasks in self.parts.get(cut, {}).values() for part in tasks.values()]
        return cut not in self.unreadable and bool(parts) and not any(part.swap for part in parts)

    def entries(self, cut: int) -> dict[str, list[dict[Any, Any]]]:
        """Component -> all that the cut holds of it, by task; for tests."""
        return {
            component: [
                entry
                for part in tasks.values()
                for blob in (*part.blobs.values(), *part.swap.values())
                for entry in [snapshot.decode(blob, cut=cut, where="")]
            ]
            for component, tasks in self.parts.get(cut, {}).items()
        }

    def forget(self) -> None:
        """Drop what the coordinator has deleted."""
        there = self.world.cuts.get(self.topology_id, set())
        self.parts = {cut: parts for cut, parts in self.parts.items() if cut in there}
