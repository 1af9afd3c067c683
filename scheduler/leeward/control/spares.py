"""Spares: warm tasks that are brought to nodes without one ahead of need. Pure; ties are broken by id.

A worker starts in seconds. Where a warm task of the component is already in a slot of the node, a plan that wants a
replica there is a handover of milliseconds. A spare changes no table, and only warm tasks are restarted for it: it
takes a slot in which no other topology is, and leaves one in which no task works.
"""

from __future__ import annotations

from collections import Counter

from leeward.control.limits import utilisation
from leeward.core.apart import barred, rivals_of
from leeward.core.model import ClusterView, Component, Node
from leeward.core.plan import Plan, Slot, deployment
from leeward.core.table import replicas

#: Of a warm task, MB resident and share of a processor; of a worker, share of a processor (docs/measurements.md, "Idle
#: topologies").
TASK_MB, TASK_PROCESSORS, WORKER_PROCESSORS = 40.0, 0.001, 0.035


def spare(view: ClusterView) -> Plan | None:
    """The plan that brings one warm task to a node with a free slot and no warm task; None if there is none to bring.

    The task is of the component with the highest utilisation that can be scaled there, and comes from the node with
    the most warm tasks, which keeps one. No plan where a task has no place.
    """
    tasks = {task for component in view.components for task in component.tasks}
    if not tasks <= view.assignment.keys():
        return None
    idle, hosts = idle_tasks(view), deployment(view.tables, view.assignment)
    warm = Counter(view.assignment[task].node for task in _warm(view))
    movable = {task for task in idle if warm[view.assignment[task].node] > 1}
    used = Counter(node for counts in hosts.values() for node in Counter(counts).elements())
    rivals = rivals_of(view.apart)
    needy = [node for node in view.nodes if not node.draining and not warm[node.id] and used[node.id] < node.capacity]
    for component in sorted(view.components, key=lambda component: (-utilisation(view, component.id), component.id)):
        mine = sorted(movable.intersection(component.tasks), key=lambda t: (-warm[view.assignment[t].node], t))
        if not mine or not _can_grow(view, component):
            continue
        away = barred(component.id, rivals, hosts)
        for node in needy:
            slot = _free_slot(view, node)
            if slot is not None and node.id not in away and (not component.pinned or node.id in component.pinned):
                reason = f"a spare of {component.id} to {node.id}, which has no warm task"
                return Plan(tables=view.tables, placement={**view.assignment, mine[0]: slot}, reason=reason)
    return None


def idle_tasks(view: ClusterView) -> frozenset[int]:
    """Warm tasks in slots in which no task works: they can be brought elsewhere while the stream goes on."""
    warm = _warm(view)
    busy = {slot for task, slot in view.assignment.items() if task not in warm}
    return frozenset(task for task in warm if view.assignment.get(task) not in busy)


def standing_spares(view: ClusterView) -> dict[str, dict[str, int]]:
    """Node -> component -> idle warm tasks: those in workers of their own."""
    names = {task: component.id for component in view.components for task in component.tasks}
    found: dict[str, Counter[str]] = {}
    for task in idle_tasks(view):
        if task in view.assignment:
            found.setdefault(view.assignment[task].node, Counter())[names[task]] += 1
    return {node: dict(sorted(counts.items())) for node, counts in sorted(found.items())}


def _can_grow(view: ClusterView, component: Component) -> bool:
    return not component.source and len(replicas(view.tables[component.id])) < component.max_replicas


def _warm(view: ClusterView) -> frozenset[int]:
    owners = {task for table in view.tables.values() for task in table}
    return frozenset(task for component in view.components for task in component.tasks if task not in owners)


def _free_slot(view: ClusterView, node: Node) -> Slot | None:
    """The first slot of the node in which no task is. The ports of a view are without those that others use."""
    taken = set(view.assignment.values())
    return next((slot for port in sorted(node.ports) if (slot := Slot(node.id, port)) not in taken), None)


def spares_fields(view: ClusterView) -> dict[str, object]:
    """Warm tasks that stand ready in workers of their own, by node, and what they cost as measured elsewhere.

    `memory_mb` is that of the Python processes; a worker's JVM
    takes what the cluster's settings give it.
    """
    standing = standing_spares(view)
    tasks = sum(sum(counts.values()) for counts in standing.values())
    workers = len({view.assignment[task] for task in idle_tasks(view) if task in view.assignment})
    return {
        "nodes": standing, "tasks": tasks, "workers": workers, "memory_mb": round(tasks * TASK_MB),
        "processors": round(tasks * TASK_PROCESSORS + workers * WORKER_PROCESSORS, 3),
    }  # fmt: skip
