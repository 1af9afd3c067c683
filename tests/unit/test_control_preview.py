"""A preview tells the way that the coordinator would take, and what it would move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.control.guard import by_hand
from leeward.control.preview import preview
from leeward.core.errors import PlanError
from leeward.core.model import HandoverCost, Measured
from leeward.core.plan import Plan, Slot
from tests.helpers.control_views import view


def test_nothing_to_change():
    before = view()
    told = preview(Plan(tables=before.tables, placement=before.assignment), before)
    assert (told["way"], told["wait_s"], told["changes"], told["tasks"]) == ("nothing", 0.0, [], [])


def test_a_handover_has_the_price_of_the_bytes_that_move():
    before = view(
        measured={"work": Measured(arrival_rate=10.0, state_bytes=1_000_000)},
        handover_cost=HandoverCost(constant_s=0.05, per_byte_s=1e-6),
    )
    plan = by_hand({"work": {"n1": 1, "n2": 1}}, before)
    told = preview(plan, before)
    assert told["way"] == "handover" and told["key_groups"] == {"work": 64}
    assert told["state_bytes"] == 500_000 and told["wait_s"] == pytest.approx(0.55)
    (change,) = told["changes"]
    assert change["kind"] == "scale-out" and sum(change["after"].values()) == 2


def test_mode_restart_and_working_tasks_that_change_workers_are_a_restart():
    before = view()
    plan = Plan(tables=before.tables, placement={**before.assignment, 2: Slot("n3", 2)})
    told = preview(plan, before)
    assert told["way"] == "restart" and "[2" in told["why"].replace("tasks [1, 2", "[2") and told["wait_s"] is None
    assert told["tasks"] == [{"task": 2, "component": "work", "from": "n1:1", "to": "n3:2"}]
    restart = replace(before, live=False)
    assert preview(plan, restart)["why"] == "mode is restart"


def test_a_source_that_moves_is_a_restart():
    before = view()
    components = tuple(replace(c, source=True) if c.id == "work" else c for c in before.components)
    told = preview(by_hand({"work": {"n1": 1, "n2": 1}}, replace(before, components=components)), before)
    assert told["way"] == "handover"
    told = preview(by_hand({"work": {"n1": 1, "n2": 1}}, before), replace(before, components=components))
    assert told["way"] == "restart" and "source 'work'" in told["why"]


def test_a_replica_without_place_is_refused():
    before = view()
    with pytest.raises(PlanError, match="a replica has no place"):
        by_hand({"work": {"n1": 1}}, replace(before, assignment={}))
