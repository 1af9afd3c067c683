"""Limits of one plan: moves, cost, what it saves; components that are to be apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.control.guard import check_plan
from leeward.control.limits import does_not_pay, moves, only_ends, over_limits
from leeward.control.monitor import apart_of
from leeward.control.ports import ComponentFacts, Structure
from leeward.core.errors import ConfigError, PlanError
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings
from leeward.core.table import even_table
from tests.helpers.control_views import node, view


def plan(before, work, **estimate):
    tables = {**before.tables, "work": even_table(work)}
    return Plan(tables=tables, placement=before.assignment, estimate=Estimate(**estimate))


@pytest.mark.parametrize(
    ("now", "then", "number"),
    [((2,), (2,), 0), ((2,), (3,), 1), ((2,), (2, 3), 1), ((2, 3, 4), (2,), 2), ((2, 3), (3, 4), 1)],
)
def test_a_replica_that_changes_nodes_is_one_move(now, then, number):
    before = view(work=now)
    assert moves(plan(before, then), before) == number


def test_too_many_moves_are_refused_with_both_numbers():
    before, settings = view(work=(2,)), Settings(most_moves=1)
    assert over_limits(plan(before, (2, 3)), before, settings) == ""
    assert over_limits(plan(before, (2, 3, 4)), before, settings) == "2 moves are over most_moves 1"
    assert over_limits(plan(before, (2, 3, 4)), before, Settings()) == "", "0 is no limit"
    first = view(work=(2,), first=True)
    assert over_limits(plan(first, (2, 3, 4)), first, settings) == "", "before the first plan nothing is at its place"


def test_replicas_that_leave_a_draining_node_are_no_moves():
    nodes = (node("n1", draining=True), node("n2"), node("n3"))
    before = view(work=(2,), nodes=nodes)
    assert moves(plan(before, (3,)), before) == 0
    assert moves(plan(before, (3, 4)), before) == 1, "the second one is a choice"


def test_cost_cap():
    before, settings = view(work=(2,)), Settings(cost_cap=4.0)
    assert over_limits(plan(before, (2, 3)), before, settings) == ""
    assert over_limits(plan(before, (2, 3, 4)), before, settings) == "the cost of 5 $/h is over cost_cap 4"
    dear = replace(before, replica_cost=2.0)
    assert over_limits(plan(dear, (2,)), dear, settings) == "the cost of 6 $/h is over cost_cap 4"
    assert "the cost of 9 $/h" in over_limits(plan(before, (2, 3), cost_per_h=9.0), before, settings), "links cost, too"
    three = replace(view(work=(2, 3, 4)), replica_cost=2.0)
    assert over_limits(plan(three, (2, 3)), three, settings) == "", "still over it, but cheaper than now"
    links = plan(three, (2, 3), cost_per_h=16.0, cost_now_per_h=14.0)
    assert "the cost of 16 $/h" in over_limits(links, three, settings), "fewer replicas, and dearer with the links"
    fewer_links = plan(three, (2, 3, 4), cost_per_h=11.0, cost_now_per_h=14.0)
    assert over_limits(fewer_links, three, settings) == "", "as many replicas, and cheaper with the links"


def test_a_plan_that_only_ends_replicas_has_to_save_what_its_pause_costs():
    before, price = view(work=(2, 3)), Settings(pause_price=0.1, horizon_s=600.0)
    saved = 600.0 / 3600.0  # $ for one replica at 1 $/h
    assert does_not_pay(plan(before, (2,)), before, price) == "", f"0.05 s cost 0.005 $, it saves {saved} $"
    slow = plan(before, (2,), downtime_s=2.0)
    assert does_not_pay(slow, before, price) == "it saves 0.1667 $ in 600 s, and its pause of 2 s costs 0.2000 $"
    assert does_not_pay(slow, before, Settings()) == "", "not weighed"
    weighed = plan(before, (2,), downtime_s=2.0, objective=0.4, objective_now=0.5)
    assert does_not_pay(weighed, before, price) == "", "the objective has it in already"
    assert does_not_pay(plan(before, (2, 3, 4), downtime_s=9.0), before, price) == "", "that answers a load"


def test_an_unmeasured_restart_is_weighed_by_its_deadline():
    before = view(work=(2, 3), live=False)
    told = does_not_pay(plan(before, (2,)), before, Settings(pause_price=0.1, horizon_s=600.0))
    assert "its pause of 60 s costs 6.0000 $" in told


def test_only_ends():
    before = view(work=(2, 3))
    assert only_ends(plan(before, (2,)), before) == ("work",)
    assert only_ends(plan(before, (2, 3, 4)), before) == ()
    drains = view(work=(2, 3), nodes=(node("n1", draining=True), node("n2"), node("n3")))
    assert only_ends(plan(drains, (3,)), drains) == (), "the node has to be left"
    broken = Plan(tables={"work": (99,)}, placement={})
    assert only_ends(broken, before) == (), "the guard refuses it by itself"


def test_components_that_are_to_be_apart():
    before = view(work=(2,), apart=(("sink", "work"),))  # sink is on n1, and so is task 2
    with pytest.raises(PlanError, match=r"'sink' and 'work' on 'n1', but they are to be apart\. Place"):
        check_plan(plan(before, (2, 3)), before)
    check_plan(plan(before, (3, 4)), before)
    check_plan(plan(view(), (2, 3)), view())


@pytest.mark.parametrize(
    ("lists", "match"),
    [
        ("a,b", r"has leeward\.apart = 'a,b'\. Give a list of lists"),
        ([["a"]], r"at least two components"),
        ([["a", "x"]], r"names unknown component 'x'\. The topology has \['a', 'b'\]"),
    ],
)
def test_a_wrong_key_is_named(lists, match):
    components = tuple(ComponentFacts(id=name, kind="source", inputs=()) for name in "ab")
    with pytest.raises(ConfigError, match=match):
        apart_of(Structure(id="t-1", name="t", components=components, conf={"leeward.apart": lists}))
    right = Structure(id="t-1", name="t", components=components, conf={"leeward.apart": [["b", "a"]]})
    assert apart_of(right) == (("a", "b"),)
