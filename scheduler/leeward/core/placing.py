"""From "how many replicas where" to tables and slots, moving as little as possible. Pure; ties break by id.

- A replica that stays on its node keeps its task, and its key groups as far as their measured load allows.
- A new replica on a node takes a warm task of its component there; if there is none, a warm task is moved there, if
  possible one out of a slot in which nothing works: then Storm restarts no replica (`core/migration/preparing`).
- A task that does not have to move stays in its slot: a worker whose executors stay the same is not restarted.
- Tasks that move to a node share one slot there, a free one if there is any, else one in which nothing works.
- If warm tasks are to be *apart*, a plan that restarts workers anyway takes them out of slots in which others work:
  they can be brought anywhere then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from leeward.core.balance import TOLERANCE, balance, excess
from leeward.core.errors import PlanError
from leeward.core.model import ClusterView, Component, Measured, Node
from leeward.core.plan import Estimate, Plan, Slot, deployment, restarting
from leeward.core.table import Table, replicas

Deployment = Mapping[str, Mapping[str, int]]


def present_deployment(view: ClusterView) -> dict[str, dict[str, int]] | None:
    """Component -> node -> replicas as they are; None if a replica is not placed or its node is gone."""
    nodes = {node.id for node in view.nodes}
    for table in view.tables.values():
        for task in replicas(table):
            if task not in view.assignment or view.assignment[task].node not in nodes:
                return None
    return deployment(view.tables, view.assignment)


def must_leave(view: ClusterView) -> bool:
    """Replicas are on a node that drains."""
    drains = {node.id for node in view.nodes if node.draining}
    tasks = [task for table in view.tables.values() for task in replicas(table)] if drains else []
    return any(view.assignment[task].node in drains for task in tasks if task in view.assignment)


def unbalanced(view: ClusterView, over: float) -> dict[str, float]:
    """Components whose replicas can be balanced clearly better -> the share by which one now gets more than the mean.

    Only those where that share is more than `over`.
    """
    found: dict[str, float] = {}
    for component in view.components:
        table, load = view.tables[component.id], _group_load(view, component)
        share = excess(table, load)
        if share > over and share - excess(balance(table, replicas(table), load), load) >= TOLERANCE:
            found[component.id] = share
    return found


def carry(
    view: ClusterView,
    wanted: Deployment,
    *,
    reason: str = "",
    estimate: Estimate | None = None,
    rebalance: Collection[str] = (),
) -> Plan:
    """The plan that has `wanted` replicas on each node. Raises PlanError if there are not enough tasks or slots.

    A component whose replicas stay the same keeps its table, unless `rebalance` names it.
    """
    nodes = {node.id: node for node in view.nodes}
    if not (view.first or rebalance or _homeless(view, nodes, {}, False)) and wanted == present_deployment(view):
        load = {component.id: _group_load(view, component) for component in view.components}
        return Plan(
            tables=view.tables, placement=view.assignment, reason=reason, estimate=estimate or Estimate(), load=load
        )
    homes: dict[int, str] = {}  # task -> node it has to go to
    tables: dict[str, Table] = {}
    busy = _busy(view, view.tables, view.assignment)
    for component in view.components:
        chosen = _choose(view, component, wanted.get(component.id, {}), busy, nodes)
        for task, node in chosen.items():
            here = view.assignment.get(task)
            if here is None or here.node != node:
                homes[task] = node
        table = view.tables[component.id]
        stays = set(chosen) == set(table) and component.id not in rebalance
        tables[component.id] = table if stays else balance(table, sorted(chosen), _group_load(view, component))
    for leave in (False, True):  # replicas leave a draining node by tables, its tasks when workers restart anyway
        placement = _slots(view, nodes, homes | _homeless(view, nodes, homes, leave), busy)
        if view.first or not stops_work(view, placement):
            break
    if view.warm_apart and (view.first or stops_work(view, placement)):
        placement = _apart(view, tables, placement)
    load = {component.id: _group_load(view, component) for component in view.components}
    return Plan(tables=tables, placement=placement, reason=reason, estimate=estimate or Estimate(), load=load)


def stops_work(view: ClusterView, placement: Mapping[int, Slot]) -> bool:
    """Storm would restart a worker in which a task works now."""
    if placement == view.assignment:
        return False
    return not _warm(view, view.tables).issuperset(restarting(view.assignment, placement))


def tasks_by_node(view: ClusterView) -> dict[str, dict[str, int]]:
    """Component -> node -> tasks that run there, replicas and warm ones."""
    nodes = {node.id for node in view.nodes}
    at = {task: slot.node for task, slot in view.assignment.items() if slot.node in nodes}
    return {c.id: dict(Counter(at[task] for task in c.tasks if task in at)) for c in view.components}


def places(view: ClusterView) -> dict[str, dict[str, int]]:
    """Component -> node -> tasks that could be replicas there with no worker restarted in which a task works.

    They run there, or are warm in a slot in which nothing works, and the node has such a slot for them, too. Of those
    each is counted wherever it could be brought, though it can be in one place only.
    """
    nodes, warm = {node.id for node in view.nodes}, _warm(view, view.tables)
    busy = _busy(view, view.tables, view.assignment)
    used: dict[str, set[int]] = {}
    for slot in busy:
        used.setdefault(slot.node, set()).add(slot.port)
    room = sorted(node.id for node in view.nodes if not used.get(node.id, frozenset()).issuperset(node.ports))
    idle = {
        task: slot.node for task, slot in view.assignment.items()
        if task in warm and slot.node in nodes and slot not in busy
    }  # fmt: skip
    here = tasks_by_node(view)
    return {c.id: _reach(here[c.id], [idle[task] for task in c.tasks if task in idle], room) for c in view.components}


def _reach(here: Mapping[str, int], idle: Sequence[str], room: Sequence[str]) -> dict[str, int]:
    """`here`, and on each node of `room` one more for each idle task on another node. By node."""
    found = dict.fromkeys(room, len(idle)) if idle else {}
    known = len(found)
    for node in idle:
        if node in found:
            found[node] -= 1
    for node, count in here.items():
        found[node] = found.get(node, 0) + count
    return found if len(found) == known else dict(sorted(found.items()))  # sorting a thousand nodes takes long


def _warm(view: ClusterView, tables: Mapping[str, Table]) -> set[int]:
    owners = {task for table in tables.values() for task in table}
    return {task for component in view.components for task in component.tasks} - owners


def _busy(view: ClusterView, tables: Mapping[str, Table], placement: Mapping[int, Slot]) -> set[Slot]:
    """Slots in which a task works, or one of Storm's own is."""
    if not placement:
        return set()
    warm = _warm(view, tables)
    return {slot for task, slot in placement.items() if task not in warm}


def _group_load(view: ClusterView, component: Component) -> Mapping[int, float]:
    return view.measured.get(component.id, Measured()).group_load


def _choose(
    view: ClusterView, component: Component, wanted: Mapping[str, int], busy: Collection[Slot],
    nodes: Mapping[str, Node],
) -> dict[int, str]:  # fmt: skip
    """The tasks that are to be replicas, and on which node: task -> node. `busy`: slots in which some task works."""
    table = view.tables[component.id]
    owns = Counter(table if len(component.tasks) > 1 else ())  # of one task there is nothing to choose
    at = {task: view.assignment[task].node for task in component.tasks if task in view.assignment}
    if not 1 <= sum(wanted.values()) <= len(component.tasks):
        raise PlanError(
            f"component {component.id!r} shall have {sum(wanted.values())} replicas.",
            remedy=f"It has {len(component.tasks)} tasks: give 1 to {len(component.tasks)}.",
        )
    missing = {node: count for node, count in sorted(wanted.items()) if count > 0}
    chosen: dict[int, str] = {}
    # replicas that stay, then warm tasks that are there already
    for task in sorted(component.tasks, key=lambda task: (-owns[task], task)):
        node = at.get(task)
        if node is not None and missing.get(node, 0) > 0:
            chosen[task] = node
            missing[node] -= 1
    # then tasks from elsewhere: best out of a slot in which nothing works; those that have to leave anyway, then warm
    # ones, then replicas given up
    spare = sorted(
        (task for task in component.tasks if task not in chosen),
        key=lambda task: (
            view.assignment.get(task) in busy,
            task in at and not (at[task] in nodes and nodes[at[task]].draining),
            owns[task],
            task,
        ),
    )
    for node, count in sorted(missing.items()):
        for _ in range(count):
            chosen[spare.pop(0)] = node
    return chosen


def _homeless(view: ClusterView, nodes: Mapping[str, Node], homes: Mapping[int, str], leave: bool) -> dict[int, str]:
    """Where tasks go that have no place: not assigned, their node is gone, or it drains and they shall `leave`."""
    result: dict[int, str] = {}
    component_of = {task: component for component in view.components for task in component.tasks}
    lost = [
        task
        for task in sorted({*component_of, *view.assignment})
        if task not in homes and not _has_place(view.assignment.get(task), nodes, leave)
    ]
    if not lost:
        return result
    free = [node for node in view.nodes if node.ports] or view.nodes
    usable = sorted(node.id for node in free if not node.draining) or sorted(node.id for node in free)
    load = Counter(slot.node for task, slot in view.assignment.items() if task not in homes)
    load.update(homes.values())
    for task in lost:
        component = component_of.get(task)
        allowed = [node for node in usable if not component or not component.pinned or node in component.pinned]
        home = min(allowed or usable, key=lambda node: (load[node], node))
        result[task] = home
        load[home] += 1
    return result


def _has_place(slot: Slot | None, nodes: Mapping[str, Node], leave: bool) -> bool:
    """The slot is still there, and its task need not `leave` a draining node."""
    if slot is None or slot.node not in nodes or slot.port not in nodes[slot.node].ports:
        return False
    return not (leave and nodes[slot.node].draining)


def _slots(
    view: ClusterView, nodes: Mapping[str, Node], homes: Mapping[int, str], busy: Collection[Slot]
) -> dict[int, Slot]:
    placement = {task: slot for task, slot in view.assignment.items() if task not in homes}
    load = Counter(placement.values())
    for node in sorted(set(homes.values())):
        ports = nodes[node].ports if node in nodes else ()
        if not ports:
            raise PlanError(f"node {node!r} has no free slot.", remedy="Name a node with a supervisor that has one.")
        slots = [Slot(node, port) for port in ports]
        slot = min(slots, key=lambda slot: (slot in busy, load[slot], slot))
        placement |= {task: slot for task, home in homes.items() if home == node}
    return dict(sorted(placement.items()))


def _apart(view: ClusterView, tables: Mapping[str, Table], placement: Mapping[int, Slot]) -> dict[int, Slot]:
    """Warm tasks leave slots in which others work, for one on the same node without a replica, if there is any."""
    busy, warm, used = _busy(view, tables, placement), _warm(view, tables), Counter(placement.values())
    result = dict(placement)
    for node in view.nodes:
        free = [slot for port in node.ports if (slot := Slot(node.id, port)) not in busy]
        if not free:
            continue
        slot = min(free, key=lambda slot: (-used[slot], slot))  # a worker that is there costs no other one
        leave = (task for task, old in placement.items() if task in warm and old.node == node.id and old in busy)
        result |= dict.fromkeys(leave, slot)
    return result
