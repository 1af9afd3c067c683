"""Why tasks have no place: which topologies hold the slots. Pure."""

from __future__ import annotations

from collections import Counter

from leeward.control.snapshot import ClusterSnapshot
from leeward.core.plan import Slot

#: Of a slot that the snapshot does not show as used: another topology's plan wants it.
RESERVED = "a plan that is about to begin"


def unplaced(cluster: ClusterSnapshot, tasks: frozenset[int]) -> tuple[int, ...]:
    """Those of the tasks that Storm has given no slot, ascending."""
    return tuple(sorted(tasks - cluster.assigned.slots.keys()))


def no_room(cluster: ClusterSnapshot, node: str | None = None) -> str:
    """ "no free slot: 6 of 6 are taken by a (4), b (2)"; empty if this topology has, or may have, one of them.

    Of one node only, if `node` is given. A cluster without a supervisor has no slot, and the text says that.
    """
    slots = [Slot(s.node, port) for s in cluster.supervisors if node in (None, s.node) for port in s.ports]
    if not slots:
        return "no slot: no supervisor runs" if node is None else ""
    if not cluster.taken.issuperset(slots):
        return ""
    holders = Counter(cluster.owners.get(slot, RESERVED) for slot in slots)
    by = ", ".join(f"{name} ({count})" for name, count in sorted(holders.items()))
    return f"no free slot: {len(slots)} of {len(slots)} are taken by {by}"


def not_placed(cluster: ClusterSnapshot, tasks: frozenset[int]) -> str:
    """Why tasks of this topology have no slot; empty if each has one."""
    without = unplaced(cluster, tasks)
    if not without:
        return ""
    return no_room(cluster) or f"{len(without)} of {len(tasks)} tasks are not placed yet"
