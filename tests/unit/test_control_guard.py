"""Every plan that must not be carried out is refused with field, value and remedy."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from leeward.control.guard import changes_nothing, check_plan, not_worth_it, parse_replicas, with_present
from leeward.core.errors import PlanError
from leeward.core.plan import Estimate, Plan, Slot
from leeward.core.settings import Settings
from leeward.core.table import even_table
from tests.helpers.control_views import node, view


def plan(before, tables=None, slots=None, **more):
    return Plan(tables={**before.tables, **(tables or {})}, placement={**before.assignment, **(slots or {})}, **more)


def test_what_is_right_passes():
    before = view()
    check_plan(plan(before, {"work": even_table([2, 3, 4])}, {5: Slot("n3", 2)}), before)


@pytest.mark.parametrize(
    ("tables", "slots", "match"),
    [
        ({"other": even_table([2])}, {}, r"unknown component 'other'\. The topology has \['sink', 'source', 'work'\]"),
        ({"work": even_table([2, 5])}, {}, r"table of 'work' gives group 1 to 5, .* Its tasks are \[2, 3, 4\]"),
        ({"work": (2, None) * 64}, {}, r"table of 'work' gives group 1 to None"),
        ({"work": (-1,) * 128}, {}, r"table of 'work' gives group 0 to -1"),
        ({"work": (2,) * 100}, {}, r"has 100 entries, not 128"),
        ({}, {2: Slot("n9", 1)}, r"task 2 on unknown node 'n9'\. Supervisors run on \['n1', 'n2', 'n3'\]"),
        ({}, {2: Slot("n1", 9)}, r"task 2 on port 9 of 'n1'\. Free slots there are \[1, 2\]"),
        ({}, {77: Slot("n1", 1)}, r"unknown task 77"),
    ],
)
def test_refusals(tables, slots, match):
    before = view()
    with pytest.raises(PlanError, match=match):
        check_plan(plan(before, tables, slots), before)


def test_missing_component_and_task():
    before = view()
    with pytest.raises(PlanError, match="no table for component 'work'"):
        tables = {name: table for name, table in before.tables.items() if name != "work"}
        check_plan(Plan(tables=tables, placement=before.assignment), before)
    with pytest.raises(PlanError, match="does not place task 4"):
        check_plan(Plan(tables=before.tables, placement={t: before.assignment[t] for t in (1, 2, 3, 5)}), before)


def test_capacity_pins_drain_and_most_replicas():
    small = view(nodes=(node("n1", capacity=2), node("n2"), node("n3")))
    with pytest.raises(PlanError, match=r"3 replicas on 'n1', over its capacity of 2\. Capacity is slots x eps_max"):
        check_plan(plan(small), small)
    pinned = view(pinned=("n1",))
    with pytest.raises(PlanError, match=r"replica of 'work' on 'n2', but it is pinned\. It may run on \['n1'\]"):
        check_plan(plan(pinned, {"work": even_table([3])}), pinned)
    drains = view(nodes=(node("n1"), node("n2", draining=True), node("n3")))
    with pytest.raises(PlanError, match="1 replicas on 'n2', which drains"):
        check_plan(plan(drains, {"work": even_table([3])}), drains)
    components = tuple(replace(c, max_replicas=2) if c.id == "work" else c for c in view().components)
    limited = view(components=components)
    with pytest.raises(PlanError, match="3 replicas, over its 2"):
        check_plan(plan(limited, {"work": even_table([2, 3, 4])}), limited)


def test_gain():
    before, settings = view(), Settings(minimum_gain=0.02)
    small = plan(before, estimate=Estimate(objective=0.49, objective_now=0.5))
    assert "0.0100 is below minimum_gain 0.02" in not_worth_it(small, before, settings)
    assert not_worth_it(plan(before, estimate=Estimate(objective=0.4, objective_now=0.5)), before, settings) == ""
    assert not_worth_it(plan(before, estimate=Estimate(objective=9, objective_now=inf)), before, settings) == ""
    assert not_worth_it(plan(before), before, settings) == "", "people need not give a gain"
    assert not_worth_it(small, view(first=True), settings) == ""
    tie = plan(before, estimate=Estimate(objective=0.5, objective_now=0.5))
    assert "gain 0.0000 is below" in not_worth_it(tie, view(first=True), settings), "nothing moves for a tie"
    drains = view(nodes=(node("n1", draining=True), node("n2"), node("n3")))
    assert not_worth_it(small, drains, settings) == "", "who drains a node wants it empty"
    assert changes_nothing(plan(before), before)
    assert not changes_nothing(plan(before, {"work": even_table([3])}), before)


def test_replicas_by_hand():
    assert parse_replicas(["work=n1:2,n2:1", "sink=n3:1"]) == {"work": {"n1": 2, "n2": 1}, "sink": {"n3": 1}}


@pytest.mark.parametrize(
    ("items", "match"),
    [
        (["work=n1:1", "work=n2:1"], "name component 'work' twice. Name it once"),
        (["work=n1:1,n1:2"], "'work' name node 'n1' twice"),
        (["work"], "'work' cannot be read. Write component=node:count"),
        (["work="], "cannot be read"),
        (["work=n1"], "'n1' cannot be read"),
        (["work=n1:0"], "count at least 1"),
        (["work=n1:-1"], "cannot be read"),
        (["=n1:1"], "cannot be read"),
    ],
)
def test_replicas_by_hand_that_are_wrong(items, match):
    with pytest.raises(PlanError, match=match):
        parse_replicas(items)


def test_replicas_by_hand_of_unknown_names():
    before = view()
    assert with_present({"work": {"n2": 1}}, before, {"work": {"n1": 1}, "sink": {"n1": 1}}) == {
        "work": {"n2": 1}, "sink": {"n1": 1},
    }  # fmt: skip
    with pytest.raises(PlanError, match="unknown component 'x'"):
        with_present({"x": {"n1": 1}}, before, {})
    with pytest.raises(PlanError, match="'work' name unknown node 'n9'"):
        with_present({"work": {"n9": 1}}, before, {})
