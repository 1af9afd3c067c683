"""Cool-down and the delay of ending replicas, second by second."""

from __future__ import annotations

from control_views import view

from leeward.control.calm import Calm
from leeward.core.plan import Plan
from leeward.core.settings import Settings
from leeward.core.table import even_table


def plan(before, work):
    return Plan(tables={**before.tables, "work": even_table(work)}, placement=before.assignment)


def test_cool_down():
    calm, before = Calm(Settings(cool_down_s=20.0)), view(work=(2,))
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
