"""The way off nodes that drain while no source emits: nothing is known of the load, so each component keeps its number
of replicas. Our own part: a node is to become empty for its maintenance at night, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from leeward.core.apart import barred, rivals_of
from leeward.core.model import ClusterView, Component, Node
from leeward.core.placing import Deployment, present_deployment, tasks_by_node


def off_draining(view: ClusterView, hosts: Callable[[Node, Component], bool]) -> Deployment | None:
    """The deployment in force with every replica that is where it may not be on another node; None if one finds none.

    `hosts`: whether a node may have replicas of a component, by drains and pins. Components that few nodes may have are
    seated first. A node where a task is there for the replica comes first, then the one with the most room; ties are
    broken by id.
    """
    wanted, running, rivals = present_deployment(view), tasks_by_node(view), rivals_of(view.apart)
    if wanted is None:
        return None
    allowed = {one.id: [node.id for node in view.nodes if hosts(node, one)] for one in view.components}
    order = sorted(allowed, key=lambda name: (len(allowed[name]), name))
    leaving = {name: sum(wanted[name].pop(n, 0) for n in set(wanted[name]) - set(allowed[name])) for name in order}
    taken = Counter[str]()
    for counts in wanted.values():
        taken.update(counts)
    room = {node.id: node.capacity - taken[node.id] for node in view.nodes}
    for name in order:
        counts, here = wanted[name], running[name]
        for _ in range(leaving[name]):
            shut = barred(name, rivals, wanted)
            free = [node for node in allowed[name] if room[node] > 0 and node not in shut]
            if not free:
                return None
            seat = min(free, key=lambda node: (counts.get(node, 0) >= here.get(node, 0), -room[node], node))
            counts[seat] = counts.get(seat, 0) + 1
            room[seat] -= 1
    fits = min(room.values()) >= 0 and not any(barred(name, rivals, wanted) & wanted[name].keys() for name in order)
    return wanted if fits else None
