"""No registered policy gives a plan that breaks a pin, uses a node that drains, or joins what is to be apart."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward.control.guard import changes_nothing, check_plan
from leeward.control.registry import names
from leeward.core.errors import LeewardError, PlanError
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Slot
from leeward.core.policy import Policy
from leeward.policies.edge_cloud.settings import METHODS
from tests.helpers.limited_views import NAMES, broken, carried_out, limited_views, policy_of

#: Examples of each policy: those that solve, or play messages, take longest.
EXAMPLES = {"edrp": 12, "agiledart-overlay": 12}
#: Solved to the end, or not at all: an example may take as long as it likes.
SETTINGS = {"edrp": {"method": "exact"}}
DRAINS = st.sets(st.sampled_from(NAMES), max_size=2)


def plan_of(policy: Policy, view: ClusterView, now: float) -> Plan | None:
    """None: the policy has no plan for this view, or leaves it as it is."""
    try:
        plan = policy.decide(view, now=now, rng=random.Random(0))
    except LeewardError:
        return None
    return None if changes_nothing(plan, view) else plan


def keeps_limits(policy: Policy, view: ClusterView, drains: list[set[str]]) -> int:
    """Asks again after each plan, with other nodes that drain; the number of plans that were given."""
    given = 0
    for step, draining in enumerate((*drains, set[str]())):
        plan = plan_of(policy, view, 100.0 * step)
        if plan is not None:
            assert not broken(plan, view), plan.reason
            check_plan(plan, view)
            given += 1
            view = carried_out(view, plan, draining)
    return given


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_every_plan_of_a_registered_policy_keeps_pins_drains_and_apart(name):
    plans = []

    @settings(max_examples=EXAMPLES.get(name, 40), suppress_health_check=list(HealthCheck))
    @given(view=limited_views(), drains=st.lists(DRAINS, max_size=1))
    def run(view, drains):
        with policy_of(name, **SETTINGS.get(name, {})) as policy:
            plans.append(keeps_limits(policy, view, drains))

    run()
    assert any(plans), "no example got a plan"


@pytest.mark.long
@pytest.mark.parametrize("rebalance", ["none", "vertex-edge"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_edge_and_cloud_keeps_them(method, rebalance):
    if method == "gag" and rebalance != "none":
        return

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(view=limited_views(), drains=st.lists(DRAINS, max_size=1))
    def run(view, drains):
        with policy_of("edge-cloud", method=method, rebalance=rebalance) as policy:
            keeps_limits(policy, view, drains)

    run()


@given(view=limited_views())
def test_without_a_load_a_node_that_drains_is_left_within_the_limits_or_all_stays(view):
    silent = {name: replace(one, arrival_rate=0.0) for name, one in view.measured.items()}
    view = replace(view, measured=silent, first=False)
    with policy_of("edrp") as policy:
        plan = plan_of(policy, view, 100.0)
    if plan is not None:
        assert not broken(plan, view) and any(node.draining for node in view.nodes)
        check_plan(plan, view)


@given(view=limited_views(), data=st.data())
def test_the_guard_refuses_what_breaks_them_and_nothing_else(view, data):
    slots = st.sampled_from([Slot(node.id, port) for node in view.nodes for port in node.ports])
    placement = {task: data.draw(slots) for one in view.components for task in one.tasks}
    plan = Plan(tables=view.tables, placement=placement)
    wrong = broken(plan, view)
    if not wrong:
        check_plan(plan, view)
        return
    with pytest.raises(PlanError, match=r"pinned|drains|apart"):
        check_plan(plan, view)
