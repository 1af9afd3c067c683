"""Replicas of a topology beyond `eps_max` in each of its slots on a node: room that other topologies do not have. Pure.

The capacity of a node is that of all its slots, and a topology sees the slots that no other one has. But it may have
more replicas there than its own slots stand for, as a handover takes no new slot. That is its *overhang*: without it
two topologies would both count on the same free slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from leeward.control.guard import over_capacity
from leeward.control.nodes_seen import NodesSeen
from leeward.control.snapshot import ClusterSnapshot
from leeward.core.plan import Plan, Slot
from leeward.core.table import Table, replicas


def overhang(tables: Mapping[str, Table], placement: Mapping[int, Slot], eps_max: int) -> dict[str, int]:
    """Node -> replicas beyond `eps_max` in each of the topology's slots there; only nodes that have some."""
    slots = Counter(slot.node for slot in set(placement.values()))
    used = Counter(placement[task].node for table in tables.values() for task in replicas(table) if task in placement)
    return {node: count - room for node, count in used.items() if count > (room := eps_max * slots[node])}


def crowded_out(plan: Plan, cluster: ClusterSnapshot, eps_max: int) -> str:
    """Why the plan's replicas find no room beside other topologies; "" if they find it.

    `cluster`: with all slots taken that others have, and their overhang.
    """
    over = over_capacity(plan, NodesSeen().of(cluster, frozenset(), eps_max, {}))
    if over is None:
        return ""
    node, count = over
    return f"{node.id!r} has room for {node.capacity} of {count} replicas beside other topologies"
