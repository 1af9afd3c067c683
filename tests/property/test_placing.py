"""Where `places` says that a task could work, `carry` takes one without restarting a worker in which a task works."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leeward.core.model import ClusterView
from leeward.core.placing import carry, places, present_deployment, stops_work
from leeward.core.plan import Slot, deployment
from leeward.core.table import even_table
from tests.helpers.control_views import node, view

NODES = ("n1", "n2", "n3", "n4")


@st.composite
def views(draw: st.DrawFn) -> ClusterView:
    """source 1 -> work 2,3,4 -> sink 5 on any slots, any of `work` at work, any node draining."""
    nodes = tuple(
        node(name, ports=range(1, 1 + draw(st.integers(1, 3))), draining=draw(st.booleans())) for name in NODES
    )
    slots = [Slot(n.id, port) for n in nodes for port in n.ports]
    owners = draw(st.sets(st.sampled_from((2, 3, 4)), min_size=1))
    assignment = {task: draw(st.sampled_from(slots)) for task in range(1, 6)}
    if draw(st.booleans()):
        assignment[9] = draw(st.sampled_from(slots))  # one of Storm's own
    before = view(nodes=nodes, first=draw(st.booleans()))
    return replace(before, assignment=assignment, tables=before.tables | {"work": even_table(sorted(owners))})


def works(before: ClusterView) -> set[Slot]:
    idle = set(before.component("work").tasks) - set(before.tables["work"])
    return {slot for task, slot in before.assignment.items() if task not in idle}


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # one in six is a change that there can be
@given(views(), st.sampled_from(NODES), st.sampled_from((None, *NODES)))
def test_one_more_replica_or_one_elsewhere_is_as_cheap_as_it_was_said_to_be(before, to, leaves):
    present = present_deployment(before)
    wanted = {**present["work"], to: present["work"].get(to, 0) + 1}
    if leaves is not None:
        assume(wanted.get(leaves, 0) > 0 and leaves != to)
        wanted[leaves] -= 1
    assume(sum(wanted.values()) <= 3 and not any(n.draining and wanted.get(n.id) for n in before.nodes))
    plan = carry(before, present | {"work": wanted})
    assert deployment(plan.tables, plan.placement)["work"] == {n: c for n, c in sorted(wanted.items()) if c}
    assert stops_work(before, plan.placement) == (wanted[to] > places(before)["work"].get(to, 0))


@given(views())
def test_apart_nobody_who_works_shares_a_slot_with_a_warm_task_but_where_its_node_has_no_other(before):
    plan = carry(replace(before, first=True, warm_apart=True), present_deployment(before))
    after = replace(before, assignment=plan.placement)
    busy = works(after)
    assert plan.tables == before.tables and busy == works(before), "who works stays"
    for task in set(before.component("work").tasks) - set(before.tables["work"]):
        slot = plan.placement[task]
        assert slot.node == before.assignment[task].node
        ports = next(n.ports for n in before.nodes if n.id == slot.node)
        assert slot not in busy or {Slot(slot.node, port) for port in ports} <= busy
