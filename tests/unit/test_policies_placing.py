"""From replicas on nodes to tables and slots: nothing moves that need not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from leeward.core.errors import PlanError
from leeward.core.model import Measured
from leeward.core.placing import carry, places, present_deployment, stops_work, unbalanced
from leeward.core.plan import Slot, deployment
from leeward.core.table import replicas
from tests.helpers.control_views import node, view

STAY = {"sink": {"n1": 1}, "source": {"n1": 1}}


def moved(plan, before):
    return sum(a != b for a, b in zip(plan.tables["work"], before.tables["work"], strict=True))


def test_scale_out_onto_a_warm_task_moves_no_executor():
    before = view()
    plan = carry(before, {**STAY, "work": {"n1": 1, "n3": 1}})
    assert plan.placement == before.assignment
    assert replicas(plan.tables["work"]) == (2, 4)
    assert Counter(plan.tables["work"]) == {2: 64, 4: 64}
    assert moved(plan, before) == 64


def loaded(before, load):
    return replace(before, measured={**before.measured, "work": Measured(arrival_rate=100.0, group_load=load)})


def test_scale_out_by_load_moves_what_is_hot():
    before = loaded(view(), dict.fromkeys(range(128), 1.0) | {40: 127.0})
    plan = carry(before, {**STAY, "work": {"n1": 1, "n3": 1}})
    assert [group for group in range(128) if plan.tables["work"][group] == 4] == [40]


def test_who_stays_keeps_a_table_that_is_uneven_by_number():
    before = loaded(view(work=(2, 3)), {})
    uneven = replace(before, tables=before.tables | {"work": (2,) * 3 + (3,) * 125})
    plan = carry(uneven, {"sink": {"n1": 1}, "source": {"n1": 1}, "work": {"n1": 1, "n2": 1}})
    assert plan.tables == uneven.tables


def test_who_is_unbalanced():
    load = dict.fromkeys(range(0, 128, 2), 3.0) | dict.fromkeys(range(1, 128, 2), 1.0)
    assert unbalanced(loaded(view(work=(2, 3)), load), 0.4) == {"work": pytest.approx(0.5)}
    assert unbalanced(loaded(view(work=(2, 3)), load), 0.6) == {}
    assert unbalanced(loaded(view(work=(2, 3)), {7: 100.0}), 0.25) == {}, "nothing can be done about one hot group"


def test_scale_in_keeps_the_others_groups():
    before = view(work=(2, 3, 4))
    plan = carry(before, {**STAY, "work": {"n1": 1, "n2": 1}})
    assert plan.placement == before.assignment
    assert replicas(plan.tables["work"]) == (2, 3)
    assert moved(plan, before) == Counter(before.tables["work"])[4]


def test_move_onto_a_warm_task_is_a_change_of_tables_only():
    before = view()
    plan = carry(before, {**STAY, "work": {"n2": 1}})
    assert plan.placement == before.assignment
    assert replicas(plan.tables["work"]) == (3,)


def test_two_replicas_on_a_node_fetch_a_warm_task_into_a_free_slot():
    before = view()
    plan = carry(before, {**STAY, "work": {"n1": 2}})
    assert replicas(plan.tables["work"]) == (2, 3)
    changed = {t: s for t, s in plan.placement.items() if before.assignment[t] != s}
    assert changed == {3: Slot("n1", 2)}, "port 1 would restart the workers of 1, 2 and 5"


def test_a_warm_task_comes_out_of_a_slot_where_nothing_works():
    before = view()
    beside = replace(before, assignment=before.assignment | {5: Slot("n2", 1)})
    plan = carry(beside, {"sink": {"n2": 1}, "source": {"n1": 1}, "work": {"n1": 2}})
    changed = {t: s for t, s in plan.placement.items() if beside.assignment[t] != s}
    assert changed == {4: Slot("n1", 2)}, "task 3 would have the sink's worker restarted"


def test_a_sink_that_moves_takes_its_task_along():
    before = view()
    plan = carry(before, {**STAY, "sink": {"n2": 1}, "work": {"n1": 1}})
    assert plan.placement[5] == Slot("n2", 2)
    assert deployment(plan.tables, plan.placement)["sink"] == {"n2": 1}


def test_what_leaves_a_draining_node_goes_along_with_other_changes_only():
    nodes = (node("n1"), node("n2"), node("n3", draining=True))
    before = view(nodes=nodes)
    alone = carry(before, {**STAY, "work": {"n2": 1}})
    assert alone.placement[4] == Slot("n3", 1), "a warm task is no reason to restart a worker"
    together = carry(before, {**STAY, "work": {"n1": 2}})
    assert together.placement[4] == Slot("n1", 2), "the draining node's task is the one that is moved"
    assert together.placement[3] == Slot("n2", 1)


def beside(before, *tasks):
    """These tasks share a slot with the source and the sink."""
    return replace(before, assignment=before.assignment | dict.fromkeys(tasks, Slot("n1", 1)))


def test_where_a_task_could_work_without_a_restart():
    before = beside(view(), 3)
    assert places(before)["work"] == {"n1": 3, "n2": 1, "n3": 1}, "task 3 would have the source's worker restarted"
    full = tuple(node(n.id, ports=(1,)) for n in before.nodes)
    assert places(replace(before, nodes=full))["work"] == {"n1": 2, "n2": 1, "n3": 1}, "no free slot on n1"
    assert places(before)["sink"] == {"n1": 1}


def test_warm_tasks_go_apart_where_workers_restart_anyway():
    before = beside(view(), 3, 4)
    wanted = {**STAY, "sink": {"n2": 1}, "work": {"n1": 1}}
    assert carry(before, wanted).placement == before.assignment | {5: Slot("n2", 1)}
    plan = carry(replace(before, warm_apart=True), wanted)
    assert plan.placement == before.assignment | {5: Slot("n2", 1), 3: Slot("n1", 2), 4: Slot("n1", 2)}
    after = replace(before, assignment=plan.placement, tables=plan.tables)
    assert not stops_work(after, carry(after, {**wanted, "work": {"n3": 1}}).placement)


def test_warm_tasks_go_apart_with_the_first_plan():
    before = beside(view(first=True), 3)
    stay = {**STAY, "work": {"n1": 1}}
    assert carry(replace(before, warm_apart=True), stay).placement == before.assignment | {3: Slot("n1", 2)}
    assert carry(replace(before, first=False, warm_apart=True), stay).placement == before.assignment
    full = replace(before, nodes=(node("n1", ports=(1,)), *before.nodes[1:]))
    assert carry(replace(full, warm_apart=True), stay).placement == before.assignment, "n1 has no slot for it"


def test_what_is_brought_prefers_a_slot_in_which_nothing_works():
    before = replace(view(), assignment=view().assignment | {3: Slot("n3", 1), 5: Slot("n2", 1)})
    busy = replace(before, nodes=(node("n1", ports=(1,)), node("n2", ports=(1, 2)), node("n3")))
    more = replace(busy, assignment=busy.assignment | {9: Slot("n2", 1)})  # one of Storm's own
    plan = carry(more, {"source": {"n1": 1}, "sink": {"n2": 1}, "work": {"n1": 1, "n2": 1}})
    assert plan.placement[3] == Slot("n2", 2) and not stops_work(more, plan.placement)


def test_a_draining_nodes_workers_stay_while_a_warm_task_is_brought():
    nodes = (node("n1"), node("n2"), node("n3", draining=True))
    before = view(nodes=nodes, work=(2, 4))
    moved = replace(before, assignment=before.assignment | {3: Slot("n1", 2)})
    plan = carry(moved, {**STAY, "work": {"n1": 1, "n2": 1}})
    assert plan.placement == moved.assignment | {3: Slot("n2", 1)} and not stops_work(moved, plan.placement)


def test_tasks_without_a_place_get_one():
    before = view()
    lost = replace(before, nodes=before.nodes[:2], assignment={t: s for t, s in before.assignment.items() if t != 3})
    plan = carry(lost, {**STAY, "work": {"n1": 1}})
    assert {plan.placement[3].node, plan.placement[4].node} <= {"n1", "n2"}
    assert plan.placement[2] == before.assignment[2]
    assert set(plan.placement) == set(before.assignment)


def test_pinned_warm_tasks_without_a_place_stay_among_their_nodes():
    before = view(pinned=("n1", "n3"))
    lost = replace(before, assignment={t: s for t, s in before.assignment.items() if t != 4})
    assert carry(lost, {**STAY, "work": {"n1": 1}}).placement[4].node in ("n1", "n3")


@pytest.mark.parametrize("pinned", [(), ("n1", "n2")])
def test_tasks_without_a_place_go_to_no_node_whose_slots_are_all_taken(pinned):
    """A new topology beside others that fill n2: once its plan was refused, as warm tasks were sent there."""
    nodes = (node("n1"), node("n2", ports=(), capacity=0), node("n3"))
    plan = carry(view(nodes=nodes, pinned=pinned, assignment={}, first=True), {**STAY, "work": {"n1": 1}})
    assert {slot.node for slot in plan.placement.values()} == ({"n1"} if pinned else {"n1", "n3"})


def test_system_tasks_are_placed_where_they_are():
    before = view()
    with_acker = replace(before, assignment={**before.assignment, 9: Slot("n2", 2)})
    assert carry(with_acker, {**STAY, "work": {"n1": 2}}).placement[9] == Slot("n2", 2)


@pytest.mark.parametrize(("work", "match"), [({"n1": 4}, "shall have 4 replicas"), ({}, "shall have 0 replicas")])
def test_too_many_or_none(work, match):
    with pytest.raises(PlanError, match=match):
        carry(view(), {**STAY, "work": work})


def test_no_free_slot():
    nodes = (node("n1"), node("n2", ports=(), capacity=0), node("n3"))
    with pytest.raises(PlanError, match="node 'n2' has no free slot"):
        carry(view(nodes=nodes), {**STAY, "work": {"n2": 3}})


def test_present_deployment():
    before = view(work=(2, 3))
    assert present_deployment(before)["work"] == {"n1": 1, "n2": 1}
    assert present_deployment(replace(before, nodes=before.nodes[:1])) is None
    assert present_deployment(replace(before, assignment={})) is None
