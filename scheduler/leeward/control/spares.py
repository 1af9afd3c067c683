"""Spares: warm tasks that are brought to nodes without one ahead of need. Pure; ties are broken by id.

A worker starts in seconds. Where a warm task of the component is already in a slot of the node, a plan that wants a
replica there is a handover of milliseconds. A spare changes no table, and only warm tasks are restarted for it: it
takes a slot in which no other topology is, and leaves one in which no task works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from leeward.control.limits import utilisation
from leeward.control.ports import Structure
from leeward.control.worker_heap import Heap, log_writer_heap, worker_heap
from leeward.core.apart import barred, rivals_of
from leeward.core.model import ClusterView, Component, Node
from leeward.core.plan import Plan, Slot, deployment
from leeward.core.table import replicas

#: Of a warm task, MB resident where it is not measured, and share of a processor; of a worker, share of a processor
#: (docs/measurements.md, "Idle topologies").
TASK_MB, TASK_PROCESSORS, WORKER_PROCESSORS = 40.0, 0.001, 0.035


def spare(view: ClusterView, costs: Callable[[int], str] | None = None) -> Plan | None:
    """The plan that brings one warm task to a node with a free slot and no warm task; None if there is none to bring.

    The task is of the component with the highest utilisation that can be scaled there, and comes from the node with
    the most warm tasks, which keeps one. No plan where a task has no place. `costs`: of this task as a spare, in words.
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
                if costs is not None:
                    reason = f"{reason}; {costs(mine[0])}"
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


def spares_fields(view: ClusterView, structure: Structure, resident: Mapping[int, int]) -> dict[str, object]:
    """Warm tasks that stand ready in workers of their own, by node, and what they cost.

    `resident`: task -> bytes of its Python process, where measured. `memory_mb` is that of the Python processes, and
    `memory_from` how it is known. `worker_heap_mb` is the most that the heaps of the workers' JVMs may take, and
    `log_writer_heap_mb` that of the JVMs that write their logs; each with the key of the topology's configuration that
    says so, and null where none does.
    """
    standing = standing_spares(view)
    spares = [task for task in idle_tasks(view) if task in view.assignment]
    workers = {view.assignment[task] for task in spares}
    known = [resident[task] / 1e6 for task in spares if resident.get(task)]
    heaps, log_writer = [_heap(view, structure, slot) for slot in sorted(workers)], log_writer_heap(structure.conf)
    return {
        "nodes": standing, "tasks": len(spares), "workers": len(workers),
        "memory_mb": round(sum(known) + (len(spares) - len(known)) * TASK_MB),
        "memory_from": f"{len(known)} of {len(spares)} processes are measured, others count {TASK_MB:g} MB",
        "worker_heap_mb": _total([heap.mb for heap in heaps]), "worker_heap_from": heaps[0].key if heaps else "",
        "log_writer_heap_mb": _total([log_writer.mb] * len(workers)),
        "log_writer_heap_from": log_writer.key if heaps else "",
        "processors": round(len(spares) * TASK_PROCESSORS + len(workers) * WORKER_PROCESSORS, 3),
    }  # fmt: skip


def price_of(task: int, view: ClusterView, structure: Structure, resident: Mapping[int, int]) -> str:
    """The cost of this spare in a worker of its own, in words."""
    mb = resident.get(task, 0) / 1e6
    python = f"{mb:.0f} MB (measured)" if mb else f"some {TASK_MB:g} MB"
    heap = worker_heap(structure.conf, [_conf(task, view, structure)])
    jvm = (
        f"a heap of at most {heap.mb:.0f} MB ({heap.key})"
        if heap.mb is not None
        else f"a heap without bound ({heap.key})"
    )
    processors = TASK_PROCESSORS + WORKER_PROCESSORS
    return f"it costs a Python process of {python}, a worker with {jvm}, and {processors:g} processors"


def _heap(view: ClusterView, structure: Structure, slot: Slot) -> Heap:
    inside = [task for task, at in view.assignment.items() if at == slot]
    return worker_heap(structure.conf, [_conf(task, view, structure) for task in inside])


def _conf(task: int, view: ClusterView, structure: Structure) -> Mapping[str, object]:
    """Of the component of a task; of Storm's own components there is none."""
    names = {task: component.id for component in view.components for task in component.tasks}
    return next((entry.conf for entry in structure.components if entry.id == names.get(task)), {})


def _total(sizes: Sequence[float | None]) -> float | None:
    known = [size for size in sizes if size is not None]
    return round(sum(known), 1) if len(known) == len(sizes) else None
