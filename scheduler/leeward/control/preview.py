"""Tell how a plan would be carried out: by which way, with which moves, for which price; nothing is changed. Pure."""

from __future__ import annotations

from leeward.control.guard import changes_nothing
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, deployment, diff, restarting
from leeward.core.table import Table


def preview(plan: Plan, view: ClusterView) -> dict[str, object]:
    """The way, the changes, the tasks that get another slot, the key groups that move, the price.

    `wait_s` is the longest wait of a tuple in s, by the measured cost of handovers; null for a restart, in which the
    stream stops until all workers are back.
    """
    way, why = _way(plan, view)
    before, after = deployment(view.tables, view.assignment), deployment(plan.tables, plan.placement)
    moved = {name: _moved(view.tables[name], plan.tables[name]) for name in sorted(plan.tables)}
    size = sum(_bytes(view, name, groups) for name, groups in moved.items())
    cost = view.handover_cost
    return {
        "topology": view.topology,
        "way": way,
        "why": why,
        "changes": [
            {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
            for c in diff(before, after)
        ],
        "tasks": _moves(plan, view),
        "key_groups": {name: groups for name, groups in moved.items() if groups},
        "state_bytes": round(size),
        "wait_s": {"nothing": 0.0, "restart": None}.get(way, round(cost.constant_s + size * cost.per_byte_s, 4)),
    }


def _way(plan: Plan, view: ClusterView) -> tuple[str, str]:
    """As `core/migration/pausing.is_live` decides it, with the reason."""
    if changes_nothing(plan, view):
        return "nothing", "the topology is as asked for"
    if not view.live:
        return "restart", "mode is restart"
    sources = [c.id for c in view.components if c.source and plan.tables[c.id] != view.tables[c.id]]
    if sources:
        return "restart", f"source {sources[0]!r} has other replicas: it stops before they begin"
    stopped = restarting(view.assignment, plan.placement)
    owners = {task for table in view.tables.values() for task in table}
    working = sorted(owners.intersection(stopped))
    if working:
        return "restart", f"workers restart in which tasks {working} work"
    if stopped:
        return "handover", f"after warm tasks {list(stopped)} have started in other workers"
    return "handover", "no worker restarts"


def _moved(before: Table, after: Table) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


def _moves(plan: Plan, view: ClusterView) -> list[dict[str, object]]:
    names = {task: component.id for component in view.components for task in component.tasks}
    return [
        {
            "task": task,
            "component": names.get(task, "of Storm"),
            "from": f"{view.assignment[task].node}:{view.assignment[task].port}" if task in view.assignment else "",
            "to": f"{slot.node}:{slot.port}",
        }
        for task, slot in sorted(plan.placement.items())
        if view.assignment.get(task) != slot
    ]


def _bytes(view: ClusterView, component: str, groups: int) -> float:
    """The state of so many of its key groups, as if all were of one size."""
    measured = view.measured.get(component)
    return measured.state_bytes * groups / len(view.tables[component]) if measured else 0.0
