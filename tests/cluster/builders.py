"""Plans that a test asks for: each takes the view that the service has, and gives a plan."""

from __future__ import annotations

from collections.abc import Callable

from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Slot
from leeward.core.table import even_table, redistribute, replicas

Builder = Callable[[ClusterView], Plan]


def scaled(component: str, count: int) -> Builder:
    """`count` replicas, by tables only: no executor moves."""

    def build(view: ClusterView) -> Plan:
        return Plan(tables=_scale(view, component, count), placement=view.assignment, reason=f"{component} x {count}")

    return build


def scaled_and_moved(component: str, count: int) -> Builder:
    """`count` replicas, and one of them in a slot on another node."""

    def build(view: ClusterView) -> Plan:
        tables = _scale(view, component, count)
        task = replicas(tables[component])[-1]
        return Plan(
            tables=tables,
            placement={**view.assignment, task: elsewhere(view, task)},
            reason=f"{component} x {count}, task {task} moves",
        )

    return build


def moved(component: str) -> Builder:
    """The first replica goes to a slot on another node."""

    def build(view: ClusterView) -> Plan:
        task = replicas(view.tables[component])[0]
        placement = {**view.assignment, task: elsewhere(view, task)}
        return Plan(tables=view.tables, placement=placement, reason=f"task {task} moves")

    return build


def swapped(component: str) -> Builder:
    """Its other task becomes its only replica, by tables only."""

    def build(view: ClusterView) -> Plan:
        (other,) = set(view.component(component).tasks) - set(replicas(view.tables[component]))
        tables = {**view.tables, component: even_table([other])}
        return Plan(tables=tables, placement=view.assignment, reason=f"{component} goes to task {other}")

    return build


def elsewhere(view: ClusterView, task: int) -> Slot:
    """The emptiest slot on another node."""
    here = view.assignment[task].node
    load = list(view.assignment.values())
    slots = [Slot(node.id, port) for node in view.nodes for port in node.ports if node.id != here]
    return min(slots, key=lambda slot: (load.count(slot), slot))


def _scale(view: ClusterView, component: str, count: int) -> dict[str, tuple[int, ...]]:
    """Present replicas stay as far as the count allows, then warm tasks by id."""
    present = replicas(view.tables[component])
    warm = [task for task in view.component(component).tasks if task not in present]
    chosen = sorted([*present, *warm][:count])
    return {**view.tables, component: redistribute(view.tables[component], chosen)}
