"""S-EDRP's mapping, with the real solver on a small topology, and what it does when there is no answer."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest

from leeward.control.guard import check_plan, not_worth_it
from leeward.core.balance import excess
from leeward.core.errors import PlanError
from leeward.core.model import HandoverCost
from leeward.core.plan import Slot, deployment
from leeward.core.settings import Settings
from leeward.core.table import replicas
from leeward.policies.baselines.even import Even
from leeward.policies.baselines.settings import EvenSettings
from leeward.policies.edrp.loosened import loosened
from leeward.policies.edrp.policy import RAISE_MAX, Edrp, build_problem
from leeward.policies.edrp.problem.evaluate import evaluate
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Unknown
from leeward.policies.edrp.settings import EdrpSettings
from tests.helpers.control_views import node, view

SETTINGS = EdrpSettings(headroom=0.0, link_delay_s=0.0, solve_limit_s=60.0)


def decide(before, settings=SETTINGS, **options):
    return Edrp(settings, **options).decide(before, now=0.0, rng=random.Random(1))


def test_the_mapping_of_section_5():
    problem, remarks = build_problem(view(), SETTINGS)
    work = problem.operators[2]
    assert (work.id, work.k, work.cost, work.res, work.curve.mu, work.state_bytes) == ("work", 3, 1.0, 1.0, 150.0, 1000)
    assert problem.operators[1].source_rate == 100.0
    assert [n.res for n in problem.nodes] == [8.0, 8.0, 8.0]
    assert problem.current["work"] == {"n1": 1}
    assert (problem.sync_s, problem.downtime_model) == (6.0, "live")
    assert (problem.bounds.r, problem.bounds.c, problem.bounds.d) == (0.15, 15.0, 60.0)
    assert remarks == ()


def test_the_live_model_takes_what_handovers_cost_and_where_tasks_are():
    problem, _ = build_problem(replace(view(), handover_cost=HandoverCost(0.02, 3e-9)), SETTINGS)
    assert (problem.live.constant_s, problem.live.per_byte_s) == (0.02, 3e-9)
    here = {"sink": {"n1": 1}, "source": {"n1": 1}}
    brought = {"n1": 3, "n2": 2, "n3": 2}  # a warm task alone in its slot can be brought to any free one
    assert problem.live.tasks == here | {"work": brought}
    restarting, _ = build_problem(replace(view(), live=False), replace(SETTINGS, downtime_model="live"))
    assert restarting.live.tasks == here | {"work": {"n1": 1, "n2": 1, "n3": 1}}
    gone = replace(view(), nodes=view().nodes[:2])
    assert build_problem(gone, SETTINGS)[0].live.tasks["work"] == {"n1": 2, "n2": 1}


@pytest.mark.parametrize(
    ("live", "options", "model"),
    [
        (True, {}, "live"),
        (False, {}, "storm"),
        (False, {"downtime_model": "live"}, "live"),
        (True, {"downtime_model": "generic"}, "generic"),
    ],
)
def test_the_downtime_model_follows_the_mode_unless_it_is_named(live, options, model):
    problem, _ = build_problem(replace(view(), live=live), replace(SETTINGS, **options))
    assert problem.downtime_model == model


def crowded(**changes):
    """All tasks of `work` are on n1, the other nodes are empty."""
    before = view(rate=140.0, **changes)
    slots = dict(before.assignment) | {3: Slot("n1", 1), 4: Slot("n1", 1)}
    return replace(before, assignment=slots, handover_cost=HandoverCost(0.01, 0.0))


def test_a_change_among_warm_tasks_is_priced_as_a_handover_and_any_other_as_a_restart():
    priced = replace(SETTINGS, w_r=0.2, w_c=0.2, w_d=0.6, t_d_max_s=10.0)
    stay = decide(crowded(), priced)
    assert len(replicas(stay.tables["work"])) == 2 and stay.placement == crowded().assignment
    assert stay.reason.startswith("work scale-out 1 -> 2; source 140/s; priced as a handover of 0.01 s")
    assert (stay.estimate.downtime_s, stay.estimate.restart) == (0.01, False)
    full = tuple(node(n, capacity=3 if n == "n1" else 8) for n in ("n1", "n2"))  # no room for the warm ones there
    keep = decide(crowded(nodes=full), priced)
    assert keep.placement == crowded().assignment and "present deployment is best" in keep.reason
    assert keep.estimate.restart is False and "priced" not in keep.reason
    move = decide(crowded(nodes=full), replace(priced, w_r=0.6, w_c=0.3, w_d=0.1))
    assert len(replicas(move.tables["work"])) == 2 and move.placement != crowded().assignment
    assert "priced as a restart of 6.6 s" in move.reason and move.estimate.restart is True
    paper = decide(replace(crowded(), live=False), replace(priced, w_r=0.6, w_c=0.3, w_d=0.1))
    assert "priced as a restart of" in paper.reason and paper.placement == crowded().assignment


def aside(*warm: int, others=("n2",)):
    """As `crowded`, but these tasks of `work` are in a slot of n1 in which nothing works, and n1 has no more room."""
    before = crowded(nodes=(node("n1", capacity=3), *(node(name) for name in others)))
    return replace(before, assignment=before.assignment | dict.fromkeys(warm, Slot("n1", 2)))


def test_a_warm_task_that_can_be_brought_is_priced_as_a_handover():
    priced = replace(SETTINGS, w_r=0.2, w_c=0.2, w_d=0.6, t_d_max_s=10.0)
    plan = decide(aside(3, 4), priced)
    assert "priced as a handover of 0.01 s; warm tasks are brought first: work on n2" in plan.reason
    assert (plan.estimate.downtime_s, plan.estimate.restart) == (0.01, False)
    assert plan.placement == aside(3, 4).assignment | {3: Slot("n2", 1)}
    assert replicas(plan.tables["work"]) == (2, 3)


@pytest.mark.parametrize("first", [False, True])
def test_a_warm_task_that_is_counted_on_twice_is_counted_once(first: bool):
    asked = []

    def solver(problem, **options):
        asked.append(problem.live.tasks["work"])
        wanted = {**problem.current, "work": {"n1": 1, "n2": 1, "n3": 1} if len(asked) == 1 else {"n1": 1, "n2": 1}}
        metrics = evaluate(problem, wanted)
        return Feasible(deployment=wanted, metrics=metrics, bound=0.0, effort=Effort(method="exact", seconds=0.0))

    settings = replace(SETTINGS, w_r=0.9, w_c=0.05, w_d=0.05)
    plan = decide(replace(aside(4, others=("n2", "n3")), first=first), settings, solver=solver)
    assert asked == [{"n1": 3, "n2": 1, "n3": 1}, {"n1": 3}]
    assert "brought" not in plan.reason and plan.estimate.restart is True, "only what is there for certain is cheap"


def test_the_first_plan_that_takes_warm_tasks_apart_says_that_workers_restart():
    before = crowded(first=True)
    together, apart = (decide(replace(before, warm_apart=it)) for it in (False, True))
    assert together.tables == apart.tables and len(replicas(apart.tables["work"])) == 2
    assert (together.estimate.restart, together.placement) == (False, before.assignment)
    assert apart.estimate.restart is True and apart.reason == f"{together.reason}, but workers restart"


def test_downtime_has_no_weight_in_the_first_plan_where_every_change_is_a_restart():
    weights = build_problem(replace(view(first=True), live=False), SETTINGS)[0].weights
    assert (weights.r, weights.c, weights.d) == (0.5, 0.5, 0.0)
    assert build_problem(view(), SETTINGS)[0].weights.d == 0.1


@pytest.mark.parametrize(("delay_s", "moves"), [(0.001, False), (0.010, True)])
def test_the_first_plan_stops_a_stream_that_flows_only_for_more_than_that_costs(delay_s: float, moves: bool):
    """In a run of Table V it did so for 7.3 s, to save 1.2 ms: its changes had no price."""
    away = dict.fromkeys((("n1", "n2"), ("n2", "n1")), delay_s)
    before = view(rate=50.0, work=(3,), first=True, delay_s=away)
    before = replace(before, assignment={**before.assignment, **dict.fromkeys((2, 3, 4), Slot("n2", 1))})
    plan = decide(before)
    assert (plan.placement != before.assignment) is moves
    assert plan.estimate.restart is moves


def test_head_room_and_backlog_raise_the_rates():
    settings = EdrpSettings(headroom=0.1, drain_s=30.0)
    assert build_problem(view(rate=100), settings)[0].load_tps[1] == pytest.approx(110)
    assert build_problem(view(rate=100, queued=600), settings)[0].load_tps[1] == pytest.approx(130)
    assert build_problem(view(rate=100, queued=10**6), settings)[0].load_tps[1] == pytest.approx(100 * RAISE_MAX)


def test_scales_out_under_load_and_in_without():
    busy = decide(view(rate=140.0))
    assert len(replicas(busy.tables["work"])) == 2
    assert busy.estimate.objective < busy.estimate.objective_now
    assert "work scale-out 1 -> 2" in busy.reason and "source 140/s" in busy.reason
    for method, left in (("restricted", 2), ("both", 1), ("ilp", 1)):  # the restricted problem takes one step at a time
        idle = decide(view(rate=20.0, work=(2, 3, 4)), replace(SETTINGS, method=method))
        assert len(replicas(idle.tables["work"])) == left, method


def test_the_reason_says_which_method_found_the_plan_and_how_far_off_the_other_was():
    idle = decide(view(rate=20.0, work=(2, 3, 4)))
    assert re.search(r"by the exact search \(proven optimal\); rEDRP [\d.]+ % worse", idle.reason)
    assert "rEDRP" not in decide(view(rate=20.0, work=(2, 3, 4)), replace(SETTINGS, method="restricted")).reason


def test_stays_when_it_is_best():
    before = view(rate=50.0)
    plan = decide(before)
    assert plan.tables == before.tables and plan.placement == before.assignment
    assert "the present deployment is best" in plan.reason


def test_optima_that_tie_move_nothing_even_in_the_first_plan():
    for place in ((2,), (3,), (4,)):
        before = view(rate=50.0, work=place, first=True)
        plan = decide(before)
        assert plan.tables == before.tables and plan.placement == before.assignment


def uneven(rate=200.0, **changes):
    """Task 2 gets three times what task 3 gets."""
    before = view(rate=rate, work=(2, 3), **changes)
    load = dict.fromkeys(range(0, 128, 2), 3.0) | dict.fromkeys(range(1, 128, 2), 1.0)
    work = replace(before.measured["work"], group_load=load)
    return replace(before, measured=before.measured | {"work": work}), load


def test_an_uneven_load_changes_owners_only():
    before, load = uneven()
    plan = decide(before)
    assert plan.placement == before.assignment and replicas(plan.tables["work"]) == (2, 3)
    assert excess(plan.tables["work"], load) < 0.1 < excess(before.tables["work"], load)
    assert "a replica of work has 1.5 times the mean load" in plan.reason
    assert not_worth_it(plan, before, SETTINGS) == ""


@pytest.mark.parametrize(("live", "over"), [(False, 0.25), (True, 0.6)])
def test_an_uneven_load_that_is_not_worth_it_stays(live, over):
    before = replace(uneven()[0], live=live)
    assert decide(before, replace(SETTINGS, rebalance_over=over)).tables == before.tables


def test_a_gain_that_is_refused_does_not_keep_load_uneven():
    before, load = uneven(rate=20.0)
    calm = replace(before, measured=before.measured | {"work": replace(before.measured["work"], group_load={})})
    tempting = decide(calm)
    gain = tempting.estimate.objective_now - tempting.estimate.objective
    assert tempting.tables != before.tables and gain > 0
    plan = decide(before, replace(SETTINGS, tie=gain + 0.01))
    assert replicas(plan.tables["work"]) == (2, 3) and excess(plan.tables["work"], load) < 0.1
    assert plan.estimate.relieves and not_worth_it(plan, before, Settings()) == ""


def test_a_plan_that_mends_a_broken_bound_need_not_gain():
    """By cost alone one replica is the cheapest, and was kept although the response time broke R_max."""
    by_cost = replace(SETTINGS, w_r=0.0, w_c=0.6, w_d=0.4, r_max_s=0.05)
    before = view(rate=140.0)
    calm, late = decide(before, replace(by_cost, r_max_s=10.0)), decide(before, by_cost)
    assert calm.tables == before.tables and math.isfinite(calm.estimate.objective_now)
    assert len(replicas(late.tables["work"])) == 2 and late.estimate.objective_now == math.inf
    assert late.estimate.response_s <= 0.05 and not_worth_it(late, before, Settings()) == ""


def test_waits_for_a_load():
    before = view(rate=0.0)
    plan = decide(before)
    assert plan.tables == before.tables and plan.reason == "no source emits: nothing is known of the load"


def test_the_cost_of_now_is_told_beside_that_of_the_plan():
    before = view(rate=140.0)
    plan = decide(before)
    grown = sum(deployment(plan.tables, plan.placement)["work"].values()) - 1
    told = plan.estimate
    assert grown > 0 and told.cost_per_h - told.cost_now_per_h == pytest.approx(grown * before.replica_cost)


def test_a_node_that_drains_is_left_without_a_load_too():
    """Maintenance is at night, when nothing comes; as many replicas as before go to others."""
    nodes = (node("n1"), node("n2", draining=True), node("n3"))
    before = view(rate=0.0, nodes=nodes, work=(2, 3))
    was = deployment(before.tables, before.assignment)["work"]
    plan = decide(before)
    after = deployment(plan.tables, plan.placement)
    assert was.get("n2") and not any("n2" in counts for counts in after.values())
    assert sum(after["work"].values()) == sum(was.values()) == 2 and "leave nodes that drain" in plan.reason


def test_without_a_load_a_replica_that_may_be_nowhere_else_keeps_all_in_place():
    nodes = (node("n1"), node("n2", draining=True), node("n3"))
    before = view(rate=0.0, nodes=nodes, work=(2, 3))
    pinned = tuple(replace(one, pinned=("n2",)) if one.id == "work" else one for one in before.components)
    plan = decide(replace(before, components=pinned))
    assert plan.tables == before.tables and plan.placement == before.assignment and "find no other nodes" in plan.reason


def test_without_a_load_pins_that_storm_did_not_keep_are_kept_when_a_node_is_left():
    nodes = (node("n1"), node("n2", draining=True), node("n3"))
    before = view(rate=0.0, nodes=nodes, work=(2, 3))
    was = deployment(before.tables, before.assignment)
    (other,) = {"n1", "n3"} - set(was["sink"])
    pinned = tuple(replace(one, pinned=(other,)) if one.id == "sink" else one for one in before.components)
    plan = decide(replace(before, components=pinned))
    assert deployment(plan.tables, plan.placement)["sink"] == {other: 1}


def test_new_replicas_go_where_warm_tasks_are():
    before = view(rate=140.0)
    plan = decide(before)
    assert plan.placement == before.assignment, "no executor moves"


def test_replicas_leave_a_draining_node():
    nodes = (node("n1"), node("n2", draining=True), node("n3"))
    before = view(nodes=nodes, work=(3,))
    after = decide(before)
    assert "n2" not in deployment(after.tables, after.placement)["work"]


def test_overload_is_planned_with_all_replicas_and_says_so():
    plan = decide(view(rate=1000.0, work=(2, 3)))
    assert len(replicas(plan.tables["work"])) == 3
    assert "work is overloaded: 1000/s for 3 replicas of 150/s" in plan.reason


#: Response time alone is worth something, but for a little that a change costs.
FAST = replace(SETTINGS, w_r=0.9, w_c=0.0, w_d=0.1)


@pytest.mark.parametrize(("c_max", "count"), [(4.0, 2), (15.0, 3)])
def test_a_response_time_that_cannot_be_met_yields_to_the_bound_of_the_cost(c_max: float, count: int):
    plan = decide(view(rate=140.0), replace(FAST, r_max_s=0.008, c_max=c_max))
    assert len(replicas(plan.tables["work"])) == count
    assert "R_max 0.008 s or T_D,max 60 s cannot be met: 10 times as much is allowed" in plan.reason


def test_a_cost_that_cannot_be_met_is_exceeded_by_no_more_than_the_load_takes():
    plan = decide(view(rate=200.0), replace(FAST, c_max=3.5))
    assert len(replicas(plan.tables["work"])) == 2, "three would be faster"
    assert "C_max 3.5 $/h cannot be met: this load takes 4 $/h" in plan.reason


@pytest.mark.parametrize("least_cost", [3.0, 40.0])
def test_looser_bounds_change_no_comparison_of_two_deployments(least_cost: float):
    problem, _ = build_problem(view(rate=140.0), SETTINGS)
    looser, _ = loosened(problem, least_cost)
    one, two = ({"source": {"n1": 1}, "work": work, "sink": {"n1": 1}} for work in ({"n1": 1}, {"n1": 1, "n2": 1}))
    before, after = (evaluate(of, one).F / evaluate(of, two).F for of in (problem, looser))
    assert after == pytest.approx(before)
    assert looser.bounds.c == max(15.0, least_cost)


def test_a_replica_whose_node_is_gone():
    before = view(work=(3,))
    lost = replace(before, nodes=(before.nodes[0], before.nodes[2]))
    plan = decide(lost)
    assert all(slot.node != "n2" for slot in plan.placement.values())
    assert len(replicas(plan.tables["work"])) >= 1


@pytest.mark.parametrize("outcome", [Unknown, Infeasible])
@pytest.mark.parametrize(("first", "expected"), [("both", ["both"] * 2), ("restricted", ["restricted"] * 2 + ["auto"])])
def test_no_answer_keeps_the_present_one(outcome, first, expected):
    asked = []

    def solver(problem, *, method, **_):
        asked.append(method)
        return outcome(why="time" if outcome is Unknown else ("no",), effort=Effort(method=method, seconds=1.0))

    before = view()
    plan = decide(before, replace(SETTINGS, method=first), solver=solver)
    assert plan.tables == before.tables and plan.placement == before.assignment
    assert "no deployment found: the present one stays" in plan.reason
    assert asked == expected


def test_same_view_same_plan():
    assert decide(view(rate=140.0)).tables == decide(view(rate=140.0)).tables


def test_even_needs_load_only():
    before = view(rate=140.0)
    plan = Even(EvenSettings(headroom=0.0)).decide(before, now=0.0, rng=random.Random(1))
    assert len(replicas(plan.tables["work"])) == 2
    assert plan.placement.keys() == before.assignment.keys()


def even(shown, **settings):
    plan = Even(EvenSettings(**({"headroom": 0.0} | settings))).decide(shown, now=0.0, rng=random.Random(1))
    check_plan(plan, shown)
    return deployment(plan.tables, plan.placement)


def test_even_ends_a_replica_only_when_a_greater_load_needs_it_no_more():
    two, boundary = view(rate=106.0, work=(2, 3)), 0.7 * 150.0
    assert len(even(view(rate=boundary - 1))["work"]) == 1 and len(even(view(rate=boundary + 1))["work"]) == 2
    for rate in (boundary + 1, boundary - 1, boundary / 1.15 + 1):
        assert even(replace(two, measured=view(rate=rate).measured))["work"] == {"n1": 1, "n2": 1}
    assert even(replace(two, measured=view(rate=boundary / 1.15 - 1).measured))["work"] == {"n2": 1}, (
        "n1 holds the most"
    )


def test_even_leaves_others_where_they_are_when_one_grows():
    """A turn that went on from component to component moved all that came after the one that grew."""
    shown = view(rate=140.0, work=(2,))
    shown = replace(shown, assignment=shown.assignment | {5: Slot("n3", 1), 1: Slot("n2", 1)})
    grown = even(shown)
    assert (grown["source"], grown["sink"]) == ({"n2": 1}, {"n3": 1})
    assert sum(grown["work"].values()) == 2 and grown["work"]["n1"] >= 1


@pytest.mark.parametrize("work", [(2,), (2, 3), (2, 3, 4)])
def test_even_keeps_components_apart(work):
    shown = view(rate=290.0, work=work, apart=(("sink", "work"),))
    found = even(shown)
    assert not found["sink"].keys() & found["work"].keys() and sum(found["work"].values()) >= 2
    alone = replace(shown, nodes=(node("n1"),), assignment=dict.fromkeys(shown.assignment, Slot("n1", 1)))
    with pytest.raises(PlanError, match=r"find no nodes of their own.*leeward\.apart"):
        even(alone)


@pytest.mark.parametrize("method", ["both", "restricted", "exact", "auto"])
def test_edrp_keeps_components_apart(method):
    shown = view(rate=140.0, apart=(("sink", "work"), ("source", "work")))  # all are on n1
    plan = decide(shown, replace(SETTINGS, method=method))
    check_plan(plan, shown)
    assert "no deployment found" not in plan.reason


def test_edrp_says_so_where_components_cannot_be_apart():
    shown = view(nodes=(node("n1"),), apart=(("sink", "work"),))
    shown = replace(shown, assignment=dict.fromkeys(shown.assignment, Slot("n1", 1)))
    assert "leeward.apart" in decide(shown).reason


def test_even_leaves_draining_nodes_alone():
    nodes = (node("n1", capacity=3), node("n2", capacity=1), node("n3", draining=True))
    plan = Even(EvenSettings(headroom=0.0)).decide(view(rate=140.0, nodes=nodes), now=0.0, rng=random.Random(1))
    assert set(deployment(plan.tables, plan.placement)["work"]) <= {"n1", "n2"}
