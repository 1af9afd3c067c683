"""From "how many replicas where" to tables and slots, moving as little as possible. Pure; ties break by id.

- A replica that stays on its node keeps its task, and its key groups as far as their measured load allows.
- A new replica on a node takes a warm task of its component there; if there is none, a warm task is moved there, if
  possible one out of a slot in which nothing works: then Storm restarts nobody who works (`core/migration/preparing`).
- A task that does not have to move stays in its slot: a worker whose executors stay the same is not restarted.
- What moves to a node shares one slot there, a free one if there is any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from leeward.core.balance import TOLERANCE, balance, excess
from leeward.core.errors import PlanError
from leeward.core.model import ClusterView, Component, Measured, Node
from leeward.core.plan import Plan, Slot, deployment
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
    view: ClusterView, wanted: Deployment, *, reason: str = "", expected: Mapping[str, float] | None = None,
    rebalance: Collection[str] = (),
) -> Plan:  # fmt: skip
    """The plan that has `wanted` replicas on each node. Raises PlanError if there are not enough tasks or slots.

    A component whose replicas stay the same keeps its table, unless it is named by `rebalance`.
    """
    nodes = {node.id: node for node in view.nodes}
    homes: dict[int, str] = {}  # task -> node it has to go to
    tables: dict[str, Table] = {}
    busy = {view.assignment[task] for table in view.tables.values() for task in table if task in view.assignment}
    for component in view.components:
        chosen = _choose(view, component, wanted.get(component.id, {}), busy)
        for task, node in chosen.items():
            here = view.assignment.get(task)
            if here is None or here.node != node:
                homes[task] = node
        table = view.tables[component.id]
        stays = set(chosen) == set(table) and component.id not in rebalance
        tables[component.id] = table if stays else balance(table, sorted(chosen), _group_load(view, component))
    homes |= _homeless(view, nodes, homes)
    placement = _slots(view, nodes, homes)
    load = {component.id: _group_load(view, component) for component in view.components}
    return Plan(tables=tables, placement=placement, reason=reason, expected=dict(expected or {}), load=load)


def _group_load(view: ClusterView, component: Component) -> Mapping[int, float]:
    return view.measured.get(component.id, Measured()).group_load


def _choose(
    view: ClusterView, component: Component, wanted: Mapping[str, int], busy: Collection[Slot]
) -> dict[int, str]:
    """The tasks that are to be replicas, and on which node: task -> node. `busy`: slots in which some task works."""
    table = view.tables[component.id]
    owns = Counter(table)
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
    # then tasks from elsewhere: those that have to leave anyway, then warm ones, best out of a slot in which nothing
    # works, then replicas given up
    draining = {node.id for node in view.nodes if node.draining}
    spare = sorted(
        (task for task in component.tasks if task not in chosen),
        key=lambda task: (
            at.get(task) not in draining and task in at,
            owns[task],
            view.assignment.get(task) in busy,
            task,
        ),
    )
    for node, count in sorted(missing.items()):
        for _ in range(count):
            chosen[spare.pop(0)] = node
    return chosen


def _homeless(view: ClusterView, nodes: Mapping[str, Node], homes: Mapping[int, str]) -> dict[int, str]:
    """Where tasks go that have no place: not assigned, their node is gone, or it drains and others move anyway."""
    usable = sorted(node.id for node in view.nodes if not node.draining) or sorted(nodes)
    load = Counter(slot.node for task, slot in view.assignment.items() if task not in homes)
    load.update(homes.values())
    result: dict[int, str] = {}
    component_of = {task: component for component in view.components for task in component.tasks}
    for task in sorted({*component_of, *view.assignment}):
        if task in homes:
            continue
        slot = view.assignment.get(task)
        gone = slot is None or slot.node not in nodes or slot.port not in nodes[slot.node].ports
        leaves = slot is not None and slot.node in nodes and nodes[slot.node].draining and bool(homes)
        if not (gone or leaves):
            continue
        component = component_of.get(task)
        allowed = [node for node in usable if not component or not component.pinned or node in component.pinned]
        home = min(allowed or usable, key=lambda node: (load[node], node))
        result[task] = home
        load[home] += 1
    return result


def _slots(view: ClusterView, nodes: Mapping[str, Node], homes: Mapping[int, str]) -> dict[int, Slot]:
    placement = {task: slot for task, slot in view.assignment.items() if task not in homes}
    load = Counter(placement.values())
    for node in sorted(set(homes.values())):
        ports = nodes[node].ports if node in nodes else ()
        if not ports:
            raise PlanError(f"node {node!r} has no free slot.", remedy="Name a node with a supervisor that has one.")
        port = min(ports, key=lambda port: (load[Slot(node, port)], port))
        for task, home in homes.items():
            if home == node:
                placement[task] = Slot(node, port)
    return dict(sorted(placement.items()))
