"""Cool-down, the delay of ending replicas, and no way back soon, second by second."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from leeward.control.calm import Calm
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings
from leeward.core.table import even_table
from tests.helpers.control_views import node, view


def plan(before, work):
    return Plan(tables={**before.tables, "work": even_table(work)}, placement=before.assignment)


def test_cool_down():
    calm, before = Calm(Settings(cool_down_s=20.0, scale_down_s=0.0)), view(work=(2,))
    assert calm.objection(plan(before, (2, 3)), before, 0.0) == "" and not calm.cools(0.0)
    calm.ended(100.0)
    assert calm.cools(119.9) and not calm.cools(120.0)
    assert calm.objection(plan(before, (2, 3)), before, 108.0) == "cool-down: 12.0 s are left of 20 s"
    assert calm.objection(plan(before, (2, 3)), before, 120.0) == ""


def test_fewer_replicas_wait_until_the_need_has_lasted():
    calm, before = Calm(Settings(scale_down_s=60.0)), view(work=(2, 3))
    fewer, same = plan(before, (2,)), plan(before, (2, 3))
    for now, wish, objects in ((0, fewer, True), (30, fewer, True), (40, same, False), (50, fewer, True)):
        calm.heard(wish, before, now)
        assert bool(calm.objection(wish, before, now)) is objects
    calm.heard(fewer, before, 109)
    assert "are wanted for 59 s, less than scale_down_s 60" in calm.objection(fewer, before, 109)
    calm.heard(fewer, before, 110)
    assert calm.objection(fewer, before, 110) == "", "it was wanted without a break since 50"


def test_more_replicas_never_wait():
    calm, before = Calm(Settings(scale_down_s=60.0)), view(work=(2,))
    calm.heard(plan(before, (2, 3)), before, 0.0)
    assert calm.objection(plan(before, (2, 3)), before, 0.0) == ""


def test_a_reconfiguration_begins_the_delay_anew():
    calm, before = Calm(Settings(scale_down_s=60.0, cool_down_s=0.0)), view(work=(2, 3, 4))
    calm.heard(plan(before, (2, 3)), before, 0.0)
    calm.ended(50.0)
    calm.heard(plan(before, (2,)), before, 60.0)
    assert "wanted for 0 s" in calm.objection(plan(before, (2,)), before, 60.0)


def moved_away():
    """(guard, view): `work` went from n1 to n2 at 100, and has one replica there."""
    calm = Calm(Settings(cool_down_s=0.0, scale_down_s=0.0, no_return_s=300.0))
    calm.ended(100.0, {"work": {"n1": 1}})
    return calm, view(work=(3,))


def test_what_was_moved_does_not_come_back():
    calm, before = moved_away()
    back, elsewhere = plan(before, (2,)), plan(before, (4,))
    assert calm.objection(back, before, 160.0) == "'work' was moved 60 s ago, less than no_return_s 300"
    assert calm.objection(elsewhere, before, 160.0) == "", "no return"
    assert "299 s ago" in calm.objection(back, before, 399.0)
    assert calm.objection(back, before, 400.0) == ""


def test_what_got_more_replicas_keeps_them():
    calm, before = Calm(Settings(cool_down_s=0.0, scale_down_s=0.0, no_return_s=300.0)), view(work=(2, 3))
    calm.ended(100.0, {"work": {"n1": 1}})
    for fewer in ((2,), (3,)):  # as it was, and one replica on another node
        assert "was given more replicas 100 s ago" in calm.objection(plan(before, fewer), before, 200.0)
        assert calm.objection(plan(before, fewer), before, 400.0) == ""
    calm.ended(500.0, {"work": {"n1": 1, "n2": 1, "n3": 1}})
    assert calm.objection(plan(before, (3,)), before, 510.0) == "", "it went down before, and goes on"


@pytest.mark.parametrize(("rate", "waits"), [(120.0, True), (130.0, False)])
def test_what_lost_a_replica_gets_it_back_only_when_it_is_busy(rate, waits):
    calm, before = Calm(Settings(cool_down_s=0.0, no_return_s=300.0)), view(work=(2,), rate=rate)  # of 150/s
    calm.ended(100.0, {"work": {"n1": 1, "n2": 1}})
    why = calm.objection(plan(before, (2, 3)), before, 160.0)
    assert why == ("'work' was given fewer replicas 60 s ago, less than no_return_s 300" if waits else "")
    assert calm.objection(plan(before, (2, 3, 4)), before, 160.0) == "", "three are no return"
    assert calm.objection(plan(before, (2, 3)), before, 400.0) == ""


@pytest.mark.parametrize(
    "answers",
    [
        lambda before, plan: (before, replace(plan, tables={**plan.tables, "sink": even_table((5, 6))})),
        lambda before, plan: (before, replace(plan, estimate=Estimate(objective=0.1, objective_now=math.inf))),
        lambda before, plan: (replace(before, first=True), plan),
        lambda before, plan: (replace(before, nodes=(node("n1"), node("n2", draining=True), node("n3"))), plan),
    ],
)
def test_what_has_to_be_may_go_back(answers):
    """Another component gets more replicas; a bound is broken; it is the first plan; a node drains."""
    calm, before = moved_away()
    before = replace(before, assignment=before.assignment | {6: before.assignment[5]})
    back = plan(before, (2,))
    back = replace(back, placement=before.assignment)
    assert "was moved" in calm.objection(back, before, 160.0)
    seen, wanted = answers(before, back)
    assert calm.objection(wanted, seen, 160.0) == ""


def test_only_the_last_change_of_a_component_counts():
    calm, before = moved_away()
    calm.ended(200.0, {"work": {"n3": 1}})
    assert calm.objection(plan(before, (2,)), before, 210.0) == ""
    assert calm.objection(plan(before, (4,)), before, 210.0) != ""
    calm.ended(250.0)
    assert calm.objection(plan(before, (4,)), before, 260.0) != "", "a reset, say, is no change"
