"""How much one plan may change, cost and risk (settings of the service). Pure.

A node that drains has to be left, so replicas that leave it are no moves that count here.
"""

from __future__ import annotations

from leeward.control.preview import preview
from leeward.core.errors import PlanError
from leeward.core.model import ClusterView
from leeward.core.placing import must_leave, present_deployment
from leeward.core.plan import Change, Plan, deployment, diff
from leeward.core.settings import Settings
from leeward.core.table import replicas


def over_limits(plan: Plan, view: ClusterView, settings: Settings) -> str:
    """The limit that the plan is over, with both numbers; empty if it is over none. Of plans by hand, too."""
    return _too_many(plan, view, settings) or _too_dear(plan, view, settings)


def check_limits(plan: Plan, view: ClusterView, settings: Settings) -> None:
    """Raises PlanError for a plan by hand that is over a limit."""
    over = over_limits(plan, view, settings)
    if over:
        raise PlanError(f"{over}.", remedy="Ask for less, or raise the limit in the service's settings.")


def moves(plan: Plan, view: ClusterView) -> int:
    """Replicas that begin or end on a node; a replica that goes from one node to another counts once."""
    return sum(_moves(change, view) for change in changes(plan, view))


def _moves(change: Change, view: ClusterView) -> int:
    drains = {node.id for node in view.nodes if node.draining}
    nodes = change.before.keys() | change.after.keys()
    grown = {node: change.after.get(node, 0) - change.before.get(node, 0) for node in nodes}
    left = -sum(n for node, n in grown.items() if node in drains)
    come = sum(n for n in grown.values() if n > 0) - left
    gone = -sum(n for node, n in grown.items() if n < 0 and node not in drains)
    return max(come, gone, 0)


def changes(plan: Plan, view: ClusterView) -> tuple[Change, ...]:
    """The components whose replicas change in number or place; none of a plan, or now, where a replica has no place."""
    before, owners = present_deployment(view), {task for table in plan.tables.values() for task in table}
    if before is None or not owners <= plan.placement.keys():
        return ()
    return diff(before, deployment(plan.tables, plan.placement))


def only_ends(plan: Plan, view: ClusterView) -> tuple[str, ...]:
    """Components that shall have fewer replicas, if none shall have more; () if one shall, or if it is no choice.

    No choice is a plan that empties a node, and the first plan.
    """
    kinds = {change.component: change.kind for change in changes(plan, view)}
    if view.first or must_leave(view) or "scale-out" in kinds.values():
        return ()
    return tuple(sorted(name for name, kind in kinds.items() if kind == "scale-in"))


def utilisation(view: ClusterView, component: str) -> float:
    """Share of its time that a replica is busy by the measured rates, over 1 if they cannot keep up; 0 if not known."""
    measured = view.measured.get(component)
    if measured is None or not measured.service_rate:
        return 0.0
    return measured.arrival_rate / (measured.service_rate * len(replicas(view.tables[component])))


def _too_many(plan: Plan, view: ClusterView, settings: Settings) -> str:
    if not settings.most_moves or view.first:
        return ""
    number = moves(plan, view)
    return f"{number} moves are over most_moves {settings.most_moves}" if number > settings.most_moves else ""


def _too_dear(plan: Plan, view: ClusterView, settings: Settings) -> str:
    told, present = plan.estimate, present_deployment(view)
    replicas_only = _price(deployment(plan.tables, plan.placement), view)
    wanted = max(replicas_only, told.cost_per_h or 0.0)
    if not settings.cost_cap or wanted <= settings.cost_cap:
        return ""
    if told.cost_now_per_h is not None:  # with links, as `wanted`
        cheaper = wanted < told.cost_now_per_h
    else:
        cheaper = present is not None and replicas_only < _price(present, view)
    if cheaper:
        return ""
    return f"the cost of {wanted:g} $/h is over cost_cap {settings.cost_cap:g}"


def does_not_pay(plan: Plan, view: ClusterView, settings: Settings) -> str:
    """Why a plan that only ends replicas saves less than its pause costs; empty if it does not, or is not weighed.

    A policy's objective has weighed both by itself: then `minimum_gain` is what is asked for. Not weighed either is a
    plan that answers a load, as it saves nothing by intention.
    """
    if not settings.pause_price or plan.estimate.objective is not None or not only_ends(plan, view):
        return ""
    pause_s = plan.estimate.downtime_s
    if pause_s is None:
        told = preview(plan, view)["wait_s"]  # none for a restart, of which nobody has measured the stop
        pause_s = float(told) if isinstance(told, int | float) else settings.restore_s
    present = present_deployment(view) or {}
    saved = _price(present, view) - _price(deployment(plan.tables, plan.placement), view)
    saved *= settings.horizon_s / 3600.0
    price = pause_s * settings.pause_price
    if saved > price:
        return ""
    return f"it saves {saved:.4f} $ in {settings.horizon_s:g} s, and its pause of {pause_s:.3g} s costs {price:.4f} $"


def _price(placed: dict[str, dict[str, int]], view: ClusterView) -> float:
    """Of the replicas, $/h."""
    return view.replica_cost * sum(sum(counts.values()) for counts in placed.values())
