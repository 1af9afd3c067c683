"""A topology that is planned before Storm has placed it: its tasks by Storm's rule, and Storm's first placement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.control.early import cluster_before, tasks_of
from leeward.control.reservations import Reservations
from leeward.control.snapshot import read_snapshot
from leeward.core.errors import ProtocolError
from leeward.core.placing import carry
from leeward.core.plan import Plan, Slot
from leeward.core.table import replicas
from tests.helpers.control_early_stage import CONF, STRUCTURE, TASKS, component, published, serve


def test_storm_sorts_components_by_name_and_counts_through():
    assert tasks_of(STRUCTURE) == TASKS
    capital = replace(STRUCTURE, components=(component("a", 2), component("Z", 1), component("_b", 1)))
    assert tasks_of(capital) == {1: "Z", 2: "_b", 3: "a", 4: "a"}


@pytest.mark.parametrize(
    "changes",
    [
        {"components": (component("to", None),)},
        {"conf": {"topology.acker.executors": None, "topology.eventlogger.executors": 0}},
        {"conf": {"topology.acker.executors": 1, "topology.eventlogger.executors": 0}},
        {"conf": {}},
        {"conf": CONF | {"topology.metrics.consumer.register": [{"class": "a.Consumer"}]}},
    ],
)
def test_nothing_is_guessed_where_storm_has_tasks_of_its_own_or_a_number_is_missing(changes: dict[str, object]):
    assert tasks_of(replace(STRUCTURE, **changes)) is None  # type: ignore[arg-type]


def test_the_cluster_before_has_the_slots_of_others_and_nothing_of_the_new_topology():
    other = published("other-1", slots=dict.fromkeys(TASKS, Slot("n1", 1)))
    cluster = cluster_before(other, STRUCTURE, TASKS)
    assert cluster is not None and cluster.tasks == TASKS and cluster.assigned.slots == {}
    assert cluster.taken == {Slot("n1", 1)} and cluster.others == {"other-1"}
    assert cluster_before(published(STRUCTURE.id), STRUCTURE, TASKS) is None
    assert cluster_before(None, STRUCTURE, TASKS) is None


def test_a_topology_that_waits_for_its_first_plan_is_not_placed_yet():
    cluster = cluster_before(published(STRUCTURE.id, waiting=True), STRUCTURE, TASKS)
    assert cluster is not None and cluster.tasks == TASKS and cluster.assigned.slots == {} and not cluster.others
    assert read_snapshot(published(STRUCTURE.id, waiting=True), STRUCTURE.id).waiting
    assert not read_snapshot(published(STRUCTURE.id), STRUCTURE.id).waiting


class FromFacts:
    """A policy that needs no rates: one replica of each component on n2."""

    at_once = True

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view, *, now, rng) -> Plan:
        self.asked += 1
        return carry(view, {component.id: {"n2": 1} for component in view.components}, reason="facts")


def test_storms_first_placement_is_the_plan():
    policy = FromFacts()
    world, sink = serve(policy)
    actions = [action for action, _ in sink.events if action not in ("measured", "learnt", "cluster_seen")]
    assert actions[:4] == ["service_started", "leading", "plan_made", "first_record"]
    assert sink.of("first_placement") == [{"topology": "new", "by_plan": True, "why": ""}]
    assert not sink.of("reconfiguration_started"), "it is where it is wanted"
    assert world.placement.topology_id == STRUCTURE.id and set(world.placement.slots) == set(TASKS)
    owners = {name: replicas(table) for name, table in world.record.tables.items()}
    assert owners == {"from": (1,), "to": (3,)}
    assert {world.placement.slots[task].node for task in (1, 3)} == {"n2"}


class InTime(FromFacts):
    """Has its plan when it is asked for the third time."""

    def decide(self, view, *, now, rng) -> Plan:
        plan = super().decide(view, now=now, rng=rng)
        return plan if self.asked > 2 else replace(plan, tables=view.tables, placement=view.assignment)


def test_a_topology_that_waits_for_its_first_plan_is_placed_by_it_however_late_the_service_is():
    """Nimbus was faster in each of four topologies of a run: each was started by Storm, and again by the plan."""
    policy = InTime()
    world, sink = serve(policy, waiting=True)
    assert sink.of("first_placement") == [{"topology": "new", "by_plan": True, "why": ""}]
    assert policy.asked >= 3 and not sink.of("reconfiguration_started")
    assert {world.placement.slots[task].node for task in (1, 3)} == {"n2"}


def test_a_topology_that_waits_for_its_first_plan_in_vain_is_led_when_storm_has_placed_it():
    world, sink = serve(NoRoom(), waiting=True)
    assert not sink.of("first_placement") and world.placement is None
    assert sink.of("first_record") and sink.of("plan_made")[-1]["deployment"] == {"from": {"n1": 1}, "to": {"n1": 1}}


@pytest.mark.parametrize(
    ("after", "then"), [(1, ["first_record", "plan_made"]), (2, ["plan_made", "first_record", "plan_made"])]
)
def test_a_topology_that_storm_has_placed_is_led_as_before(after: int, then: list[str]):
    _, sink = serve(FromFacts(), after=after)
    assert not sink.of("first_placement")
    actions = [action for action, _ in sink.events if action not in ("measured", "learnt", "cluster_seen")]
    assert actions[2 : 2 + len(then)] == then


class AtFirst(FromFacts):
    """Leaves a topology alone once a plan of its own is in force."""

    def decide(self, view, *, now, rng) -> Plan:
        plan = super().decide(view, now=now, rng=rng)
        return plan if view.first else replace(plan, tables=view.tables, placement=view.assignment)


def test_a_first_plan_that_came_too_late_for_storms_pass_is_made_again():
    _, sink = serve(AtFirst(), begun=True)
    assert sink.of("first_placement") == [{"topology": "new", "by_plan": False, "why": "no plan"}]
    plans = sink.of("plan_made")
    assert len(plans) == 2 and plans[1]["changes"], "the policy was not told that its first plan is not in force"


class NoRoom(FromFacts):
    """Refuses, as a joint policy does for a topology that finds no room."""

    def decide(self, view, *, now, rng) -> Plan:
        self.asked += 1
        return Plan(tables=view.tables, placement=view.assignment, reason="no room")


def test_a_topology_whose_first_plan_is_refused_is_led_when_storm_has_placed_it():
    policy = NoRoom()
    _, sink = serve(policy)
    plans = sink.of("plan_made")
    assert [plan["reason"] for plan in plans] == ["no room"] * policy.asked and policy.asked > 1
    assert "deployment" not in plans[0] and plans[-1]["deployment"] == {"from": {"n1": 1}, "to": {"n1": 1}}
    assert not sink.of("reconfiguration_started")


def test_slots_are_reserved_until_nimbus_has_made_its_pass():
    kept = Reservations()
    serve(FromFacts(), after=1000, reservations=kept)
    assert kept.of_others("another") == frozenset(), "a term that ends lets go"
    kept.claim("another", {Slot("n2", 1), Slot("n2", 2), Slot("n1", 1), Slot("n1", 2)})
    world, sink = serve(FromFacts(), after=1000, reservations=kept)
    assert world.placement is None and not sink.of("first_placement")


def test_a_policy_that_needs_rates_is_not_asked_before_tasks_are_known():
    policy = FromFacts()
    policy.at_once = False  # type: ignore[misc]
    world, _ = serve(policy, after=1000)
    assert policy.asked == 0 and world.record is None


def test_another_numbering_than_storms_is_told_not_followed():
    with pytest.raises(ProtocolError, match="numbers the tasks of new"):
        serve(FromFacts(), tasks={1: "to", 2: "to", 3: "from"})
