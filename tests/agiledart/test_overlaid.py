"""The policy whose first plan the overlay's agents make, with agents in virtual time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from leeward.adapters.post import PeerPost
from leeward.control.guard import check_plan
from leeward.control.joint import Joint
from leeward.core.errors import ConfigError
from leeward.core.model import ClusterView
from leeward.core.peers import Letter
from leeward.core.plan import Plan, deployment
from leeward.policies.agiledart.deployment.agent import Agent
from leeward.policies.agiledart.deployment.messages import PlacementIs
from leeward.policies.agiledart.overlaid import Overlaid
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.settings import AgileDartSettings
from tests.helpers.agiledart_views import TWELVE, Beside, carried_out, chain
from tests.helpers.control_views import node


def joint(beside: Beside) -> Joint:
    return Joint(Overlaid(AgileDartSettings(window=1)), beside)


def decide(policy: Joint, view: ClusterView, now: float = 0.0) -> Plan:
    plan = policy.decide(view, now=now, rng=random.Random(0))
    check_plan(plan, view)
    return plan


def hosts(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for counts in deployment(plan.tables, plan.placement).values():
        for name, count in counts.items():
            found[name] = found.get(name, 0) + count
    return found


def test_a_topology_is_placed_as_the_agents_said_and_its_rooms_follow_it():
    beside = Beside([one.id for one in TWELVE])
    policy, view = joint(beside), chain(10, pins={"c0": ("n3",), "c9": ("n7",)})
    plan = decide(policy, view)
    assert "placed by the overlay" in plan.reason
    held = {name: count for name, count in beside.held().items() if count}
    assert hosts(plan) == held and held["n3"] >= 1 and held["n7"] >= 1
    running = carried_out(view, plan)
    assert decide(policy, running, 10.0).placement == plan.placement
    beside.at = 5  # another scheduler leads it from now on
    other = joint(beside)
    decide(other, running, 20.0)
    beside.play.kill([0])
    beside.play.beats(16)
    assert {name: count for name, count in beside.held().items() if count} == {
        name: count for name, count in held.items() if name != "n0"
    }
    other.forget("chain", gone=True)
    assert not any(beside.held().values())


def test_nodes_that_drain_or_have_no_slot_get_nothing():
    nodes = (node("n0", draining=True), node("n1", ports=()), node("n2"), node("n3"))
    plan = decide(joint(Beside([one.id for one in nodes])), chain(4, nodes))
    assert set(hosts(plan)) <= {"n2", "n3"}


def test_a_component_whose_nodes_all_drain_goes_to_no_other_node():
    """It was announced without a node, which the overlay took for any."""
    nodes = (node("n0"), node("n1", draining=True), node("n2"))
    policy = joint(Beside([one.id for one in nodes]))
    plan = policy.decide(chain(4, nodes, pins={"c3": ("n1",)}), now=0.0, rng=random.Random(0))
    assert not plan.placement
    assert plan.reason.startswith("component 'c3' is pinned to n1, and none of these can be used")
    assert decide(policy, chain(4, nodes, pins={"c3": ("n2",)}), 1.0).placement


def test_the_reason_stays_when_another_topology_has_the_agents_asked_again():
    nodes = (node("n0"), node("n1", draining=True), node("n2"))
    policy = joint(Beside([one.id for one in nodes]))
    policy.decide(chain(2, nodes, topology="first", topology_id="first-1"), now=0.0, rng=random.Random(0))
    plan = policy.decide(chain(4, nodes, pins={"c3": ("n1",)}), now=1.0, rng=random.Random(0))
    assert plan.reason.startswith("component 'c3' is pinned to n1")


def test_a_node_that_has_less_room_on_storm_than_its_agent_says_is_avoided():
    nodes = (node("n0", ports=(1,), capacity=1), node("n1", ports=(1,), capacity=1), node("n2"))
    plan = decide(joint(Beside([one.id for one in nodes])), chain(6, nodes))
    assert sum(hosts(plan).values()) == 6 and all(hosts(plan).get(name, 0) <= 1 for name in ("n0", "n1"))


def test_an_older_answer_that_names_a_node_without_room_again_is_no_plan():
    """The agent's first answer comes a second time, after the node was found to have no room."""

    class Slow(Beside):
        first: Sequence[tuple[int, Any]] = ()

        def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
            found = super().exchange(letters)
            if any(isinstance(answer, PlacementIs) and answer.status == "placed" for _, answer in found):
                self.first = self.first or found
                return self.first
            return found

    nodes = (node("n0"), node("n1"), node("n2"))
    drains = tuple(replace(one, draining=True) for one in nodes)
    beside = Slow([one.id for one in nodes])
    decide(joint(beside), chain(4, nodes))
    assert beside.first
    plan = joint(beside).decide(chain(4, drains[:2] + nodes[2:]), now=1.0, rng=random.Random(0))
    assert "no room" in plan.reason and plan.placement == chain(4, nodes).assignment


def test_a_topology_without_room_stays_and_is_tried_again():
    nodes = TWELVE[:3]
    beside = Beside([one.id for one in nodes], capacity=2)
    policy, view = joint(beside), chain(7, nodes)
    plan = policy.decide(view, now=0.0, rng=random.Random(0))
    assert "the overlay refuses it: " in plan.reason and "they are full" in plan.reason
    assert plan.placement == view.assignment
    more = contact(id_of("n3"), 9)
    beside.play.add(Agent(more, machine="n3", times=beside.play.times, seeds=[0], zone="z", capacity=2))
    beside.play.beats(6)
    assert "placed by the overlay" in decide(policy, replace(view, nodes=TWELVE[:4]), 10.0).reason


def test_without_an_agent_there_is_no_plan_but_the_reason():
    class Nobody:
        def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
            return []

    plan = Joint(Overlaid(AgileDartSettings()), Nobody()).decide(chain(3), now=0.0, rng=random.Random(0))
    assert "has not answered" in plan.reason


def test_a_topology_that_is_too_large_does_not_keep_others_from_their_plans():
    beside = Beside([one.id for one in TWELVE])
    policy = joint(beside)
    large = replace(chain(450), topology="large", topology_id="large-1-1")
    plan = policy.decide(large, now=0.0, rng=random.Random(0))
    assert "450 operators" in plan.reason and plan.placement == large.assignment
    assert "placed by the overlay" in decide(policy, chain(4), 1.0).reason


def test_a_service_without_an_agent_refuses_the_policy():
    with pytest.raises(ConfigError, match="the agent beside its service, and there is none"):
        PeerPost(Overlaid(AgileDartSettings()).directory())


def test_components_that_are_to_be_apart_share_no_node_though_the_overlay_put_them_together():
    beside = Beside([one.id for one in TWELVE[:2]])
    names = [component.id for component in chain(6).components]
    free = decide(joint(beside), chain(6, TWELVE[:2]))
    hosts_of = deployment(free.tables, free.placement)
    one, other = next((a, b) for a in names for b in names if a < b and hosts_of[a].keys() & hosts_of[b].keys())
    plan = decide(joint(Beside([one.id for one in TWELVE[:2]])), replace(chain(6, TWELVE[:2]), apart=((one, other),)))
    assert "placed by the overlay" in plan.reason
    hosts_of = deployment(plan.tables, plan.placement)
    assert not hosts_of[one].keys() & hosts_of[other].keys()
