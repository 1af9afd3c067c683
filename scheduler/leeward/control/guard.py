"""Checks of the loop before a plan is carried out. Policies suggest, the loop protects. Pure."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import combinations

from leeward.core.errors import PlanError
from leeward.core.model import ClusterView, Node
from leeward.core.outside import FORCE, warning
from leeward.core.placing import carry, must_leave, present_deployment
from leeward.core.plan import Estimate, Plan, Slot, deployment, restarting
from leeward.core.settings import Settings
from leeward.core.table import check_table, replicas

#: Least gain of the first plan: ties are no reason to move anything.
_ANY_GAIN = 1e-6


def check_form(plan: object) -> None:
    """Raises PlanError, naming field, value and remedy, unless it is a Plan whose fields have their types.

    The service tells a plan before `check_plan` judges it, and an error in its telling would end the service.
    """
    if not isinstance(plan, Plan):
        raise PlanError(
            f"the policy returned {reprlib.repr(plan)}, which is no Plan.",
            remedy="Return a Plan; one with the view's tables and assignment changes nothing.",
        )
    for name, kind in (("tables", Mapping), ("placement", Mapping), ("load", Mapping), ("reason", str)):
        _require(isinstance(getattr(plan, name), kind), f"{name!r}", getattr(plan, name), f"a {kind.__name__}")
    _require(isinstance(plan.estimate, Estimate), "'estimate'", plan.estimate, "an Estimate")
    for name, value in asdict(plan.estimate).items():
        _require(value is None or isinstance(value, int | float), f"'estimate.{name}'", value, "a number, or None")
    for name, table in plan.tables.items():
        _require(isinstance(name, str), "'tables', name of a component,", name, "a str")
        right = isinstance(table, tuple) and all(isinstance(task, int) for task in table)
        _require(right, f"'tables' of {name!r}", table, "a tuple of task ids")
    for task, slot in plan.placement.items():
        _require(type(task) is int, "'placement', id of a task,", task, "an int")
        right = isinstance(slot, Slot) and isinstance(slot.node, str) and type(slot.port) is int
        _require(right, f"'placement' of task {task}", slot, "a Slot of a node's name and a port")
    for name, load in plan.load.items():
        right = isinstance(load, Mapping) and all(isinstance(rate, int | float) for rate in load.values())
        _require(right, f"'load' of {name!r}", load, "tuples/s by key group")


def _require(right: bool, field: str, value: object, wanted: str) -> None:
    if not right:
        raise PlanError(f"plan field {field} is {reprlib.repr(value)}.", remedy=f"Give {wanted}.")


def check_plan(plan: Plan, view: ClusterView) -> None:
    """Raises PlanError, naming field, value and remedy, for a plan that cannot or must not be carried out."""
    _check_tables(plan, view)
    _check_placement(plan, view)
    _check_replicas(plan, view)
    _check_apart(plan, view)


def _check_tables(plan: Plan, view: ClusterView) -> None:
    known = {component.id: component for component in view.components}
    for name in sorted(plan.tables.keys() - known.keys()):
        raise PlanError(f"plan names unknown component {name!r}.", remedy=f"The topology has {sorted(known)}.")
    for name in sorted(known.keys() - plan.tables.keys()):
        raise PlanError(f"plan has no table for component {name!r}.", remedy="Give one for each component.")
    for name, component in known.items():
        count = len(replicas(check_table(name, plan.tables[name], component.tasks)))
        if count > component.max_replicas:
            raise PlanError(
                f"plan gives {name!r} {count} replicas, over its {component.max_replicas}.",
                remedy=f"Give at most {component.max_replicas}.",
            )


def _check_placement(plan: Plan, view: ClusterView) -> None:
    nodes = {node.id: node for node in view.nodes}
    for task, slot in sorted(plan.placement.items()):
        if slot.node not in nodes:
            raise PlanError(
                f"plan puts task {task} on unknown node {slot.node!r}.",
                remedy=f"Supervisors run on {sorted(nodes)}.",
            )
        if slot.port not in nodes[slot.node].ports:
            raise PlanError(
                f"plan puts task {task} on port {slot.port} of {slot.node!r}.",
                remedy=f"Free slots there are {list(nodes[slot.node].ports)}.",
            )
    tasks = {task for component in view.components for task in component.tasks} | view.assignment.keys()
    for task in sorted(tasks - plan.placement.keys()):
        raise PlanError(f"plan does not place task {task}.", remedy="Place every task of the topology.")
    for task in sorted(plan.placement.keys() - tasks):
        raise PlanError(f"plan places unknown task {task}.", remedy=f"The topology's tasks are {sorted(tasks)}.")


def _check_replicas(plan: Plan, view: ClusterView) -> None:
    used: Counter[str] = Counter()
    for component in view.components:
        for task in replicas(plan.tables[component.id]):
            host = plan.placement[task].node
            used[host] += 1
            if component.pinned and host not in component.pinned:
                raise PlanError(
                    f"plan puts a replica of {component.id!r} on {host!r}, but it is pinned.",
                    remedy=f"It may run on {list(component.pinned)}.",
                )
    for node in view.nodes:
        if node.draining and used[node.id]:
            raise PlanError(
                f"plan puts {used[node.id]} replicas on {node.id!r}, which drains.",
                remedy="Place them elsewhere, or undo the drain.",
            )
    if (over := over_capacity(plan, view.nodes)) is not None:
        node, count = over
        raise PlanError(
            f"plan puts {count} replicas on {node.id!r}, over its capacity of {node.capacity}.",
            remedy="Capacity is slots x eps_max: use fewer replicas, more nodes or a higher eps_max.",
        )


def over_capacity(plan: Plan, nodes: Iterable[Node]) -> tuple[Node, int] | None:
    """The first of the nodes that would have more replicas than it may hold, and how many; None if none would."""
    used = Counter(plan.placement[task].node for table in plan.tables.values() for task in replicas(table))
    return next(((node, used[node.id]) for node in nodes if used[node.id] > node.capacity), None)


def _check_apart(plan: Plan, view: ClusterView) -> None:
    """Plan's tables and placement are known to be right."""
    hosts = deployment(plan.tables, plan.placement) if view.apart else {}
    for names in view.apart:
        for first, second in combinations(names, 2):
            both = sorted(hosts[first].keys() & hosts[second].keys())
            if both:
                raise PlanError(
                    f"plan puts replicas of {first!r} and {second!r} on {both[0]!r}, but they are to be apart.",
                    remedy="Place them on different nodes, or change leeward.apart of the topology.",
                )


def would_lose(plan: Plan, view: ClusterView) -> str:
    """Why the plan loses state that a component keeps, or may keep, outside of `self.state`; empty if it does not."""
    stopped = set(restarting(view.assignment, plan.placement))
    for component in view.components:
        attributes = view.measured[component.id].outside if component.id in view.measured else None
        table = view.tables[component.id]
        if attributes is not None and (plan.tables[component.id] != table or stopped.intersection(table)):
            return " ".join((*warning(component.id, attributes), FORCE))
    return ""


def by_hand(replicas: Mapping[str, Mapping[str, int]], view: ClusterView, *, force: bool = False) -> Plan:
    """The plan for these replicas of some components, the others as they are. Raises PlanError.

    `force`: also if it loses state that a component keeps outside of `self.state`.
    """
    present = present_deployment(view)
    if present is None:
        raise PlanError(
            "a replica has no place.", remedy="See leeward status; end a topology, add a supervisor, or wait."
        )
    plan = carry(view, with_present(replicas, view, present), reason="asked for by hand")
    check_plan(plan, view)
    lost = would_lose(plan, view)
    if lost and not force:
        raise PlanError(lost)
    return plan


def changes_nothing(plan: Plan, view: ClusterView) -> bool:
    """The plan is what there is."""
    return dict(plan.tables) == dict(view.tables) and dict(plan.placement) == dict(view.assignment)


def not_worth_it(plan: Plan, view: ClusterView, settings: Settings) -> str:
    """Why the plan's gain does not justify a reconfiguration; empty if it does, or if the policy names no gain."""
    old, new = plan.estimate.objective_now, plan.estimate.objective
    if old is None or new is None or plan.estimate.relieves:
        return ""
    least = _ANY_GAIN if view.first else settings.minimum_gain  # nothing was placed by measured load before
    if must_leave(view) or old - new >= least:
        return ""
    return f"the gain {old - new:.4f} is below minimum_gain {least:g}"


def parse_replicas(items: list[str]) -> dict[str, dict[str, int]]:
    """`component=node:count,node:count` texts as a deployment.

    Raises PlanError for what cannot be read and for a component or node named twice.
    """
    wanted: dict[str, dict[str, int]] = {}
    for item in items:
        name, equals, rest = item.partition("=")
        if not (name and equals and rest):
            raise PlanError(f"replicas {item!r} cannot be read.", remedy="Write component=node:count,node:count.")
        if name in wanted:
            raise PlanError(f"replicas name component {name!r} twice.", remedy="Name it once, with all its nodes.")
        counts: dict[str, int] = {}
        for part in rest.split(","):
            node, colon, count = part.rpartition(":")
            if not (node and colon and count.isdigit() and int(count) > 0):
                raise PlanError(
                    f"replicas of {name!r}: {part!r} cannot be read.", remedy="Write node:count, count at least 1."
                )
            if node in counts:
                raise PlanError(f"replicas of {name!r} name node {node!r} twice.", remedy="Add the counts up.")
            counts[node] = int(count)
        wanted[name] = counts
    return wanted


def with_present(
    wanted: Mapping[str, Mapping[str, int]], view: ClusterView, present: Mapping[str, Mapping[str, int]]
) -> dict[str, Mapping[str, int]]:
    """The present deployment with the components of `wanted` replaced; raises PlanError for unknown names."""
    known, nodes = {c.id for c in view.components}, {n.id for n in view.nodes}
    for name, counts in wanted.items():
        if name not in known:
            raise PlanError(f"replicas name unknown component {name!r}.", remedy=f"The topology has {sorted(known)}.")
        for node in counts:
            if node not in nodes:
                raise PlanError(
                    f"replicas of {name!r} name unknown node {node!r}.", remedy=f"Supervisors run on {sorted(nodes)}."
                )
    return {**present, **wanted}
