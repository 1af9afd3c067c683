"""The policy: agents in one process map topologies, and the loop's views become plans."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from leeward.control.joint import Joint
from leeward.core.errors import ConfigError
from leeward.core.fields import FieldError
from leeward.core.keys import GROUPS
from leeward.core.model import ClusterView, Node
from leeward.core.plan import Plan
from leeward.policies.bimodal.facts import components_of, task_of
from leeward.policies.bimodal.mapping.play import PlayedPost, agents_of, deliver, gossip_round
from leeward.policies.bimodal.mapping.rules import METHODS
from leeward.policies.bimodal.model.agents_file import read_agents
from leeward.policies.bimodal.model.stream_file import HEADROOM, Stream, stream_from_json, stream_to_json
from leeward.policies.bimodal.policy import BiModal
from leeward.policies.bimodal.settings import BiModalSettings

STREAM = Stream(
    name="s", source="v0", delivery="v3", services=(0, 1), cpu=(1.0, 1.0), mbps=(1.0, 1.0, 1.0), rate=20.0
)  # fmt: skip
NODES = tuple(Node(id=f"v{v}", ports=(6700, 6701, 6702), capacity=99) for v in range(4))


def files(folder: Path, cpu: float = 1.0) -> BiModalSettings:
    """A ring of four servers; 1 and 2 host both services, with CPU for one each."""
    document = {
        "format": "bimodal-agents/1", "direction": "each",
        "servers": [
            {"id": v, "cpu": cpu, "services": [0, 1] if v in (1, 2) else [], "uplink": 0,
             "address": f"127.0.0.1:{7000 + v}", "node": f"v{v}"}
            for v in range(4)
        ],
        "links": [{"a": v, "b": (v + 1) % 4, "bandwidth": 2, "cost": 1, "delay": 0} for v in range(4)],
    }  # fmt: skip
    (agents := folder / "agents.json").write_text(json.dumps(document))
    (secret := folder / "secret").write_text("0123456789abcdef")
    return BiModalSettings(agents=str(agents), secret=str(secret))


def view_of(stream: Stream, **changes: object) -> ClusterView:
    components = components_of(stream)
    names = [component.id for component in components]
    whole = ClusterView(
        topology=stream.name, topology_id=f"{stream.name}-1", epoch=0, nodes=NODES, components=components,
        streams=tuple(pairwise(names)),
        tables={component.id: component.tasks * GROUPS for component in components}, assignment={}, first=True,
    )  # fmt: skip
    return replace(whole, **changes)


class World:
    """The policy as the loop sees it, and the agents that it asks."""

    def __init__(self, folder: Path, **changes: float) -> None:
        settings = files(folder, **changes)
        self.agents = agents_of(read_agents(Path(settings.agents)).network, METHODS["survey"])
        self.rng, self.now = random.Random(0), 0.0
        for _ in range(3):
            gossip_round(self.agents, now=0.0, rng=self.rng)
        self.post = PlayedPost(self.agents, self.rng)
        self.policy = BiModal(settings)
        self.joint = Joint(self.policy, self.post)

    def decide(self, view: ClusterView, after: float = 1.0) -> Plan:
        self.now += after
        self.post.now = self.now
        return self.joint.decide(view, now=self.now, rng=self.rng)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for server, agent in sorted(self.agents.items()):
            sends = [(server, send) for send in agent.tick(self.now, self.rng)]
            deliver(self.agents, sends, now=self.now, rng=self.rng)

    def held(self) -> set[str]:
        return {task for agent in self.agents.values() for task in agent.reservations.tasks}


def places(plan: Plan) -> list[str]:
    return [plan.placement[task].node for task in sorted(plan.placement)]


def test_a_topology_is_mapped_in_its_first_decision_and_stays_there(tmp_path):
    world = World(tmp_path)
    view = view_of(STREAM)
    plan = world.decide(view)
    assert places(plan) == ["v0", "v1", "v2", "v3"] and "3 hops over dedicated links, 0 over" in plan.reason
    assert world.held() == {"s-1"}
    running = replace(view, assignment=plan.placement, first=False)
    again = world.decide(running)
    assert again.placement == plan.placement and "leaves it" in again.reason


def test_a_topology_that_has_ended_holds_nothing_any_more(tmp_path):
    world = World(tmp_path)
    world.decide(view_of(STREAM))
    world.joint.forget("s")
    assert world.held() == {"s-1"}, "this service stops, the topology goes on"
    world.decide(view_of(STREAM))
    world.joint.forget("s", gone=True)
    assert world.held() == set()


def test_what_the_agents_refuse_is_told_and_tried_again_later(tmp_path):
    world = World(tmp_path)
    first, late = view_of(STREAM), view_of(replace(STREAM, name="late"))
    world.decide(first)
    assert "no map with room" in world.decide(late).reason
    world.joint.forget("s", gone=True)
    assert "no map with room" in world.decide(late).reason, "not yet"
    for _ in range(4):
        plan = world.decide(late, after=15.0)
    assert places(plan) == ["v0", "v1", "v2", "v3"] and world.held() == {"late-1/try-2"}


def test_a_service_that_is_started_anew_asks_before_it_submits(tmp_path):
    world = World(tmp_path)
    view = view_of(STREAM)
    plan = world.decide(view)
    world.joint = Joint(BiModal(files(tmp_path)), world.post)
    assert places(world.decide(view)) == places(plan)
    assert world.agents[3].portals["s-1"].turn == 1


def test_a_task_that_the_agents_map_anew_moves(tmp_path):
    world = World(tmp_path, cpu=2.0)
    view = view_of(STREAM)
    plan = world.decide(view)
    lost = places(plan)[1]
    running = replace(view, assignment=plan.placement, first=False)
    del world.agents[int(lost[1:])]
    for _ in range(20):
        world.pass_time(5.0)
    plan = world.decide(running)
    assert lost not in places(plan) and places(plan) == ["v0", *[f"v{3 - int(lost[1:])}"] * 2, "v3"]


def test_an_agent_that_does_not_answer_is_named(tmp_path):
    world = World(tmp_path)
    del world.post.agents[3]
    plan = world.decide(view_of(STREAM))
    assert plan.reason == "the agent of server 3 has not answered" and plan.placement == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"services": (0, 7)}, "service 7 is hosted nowhere"),
        ({"cpu": (5.0, 1.0)}, "the largest server that hosts it has 1"),
        ({"mbps": (9.0, 9.0, 9.0)}, "the widest link has 2"),
        ({"delivery": "v9"}, "pinned = 'v9': has no agent"),
    ],
)
def test_a_topology_that_no_network_can_carry_is_refused_with_the_bound(tmp_path, changes, why):
    reason = World(tmp_path).decide(view_of(replace(STREAM, **changes))).reason
    assert why in reason


def test_a_topology_that_is_no_chain_is_refused(tmp_path):
    view = view_of(STREAM, streams=(("c00", "c01"), ("c00", "c02"), ("c02", "c03")))
    assert "are no chain" in World(tmp_path).decide(view).reason


def test_files_have_to_be_named():
    with pytest.raises(ConfigError, match=r"bimodal\.agents is not set"):
        BiModal(BiModalSettings()).directory()


def test_a_stream_reserves_more_than_its_events_and_its_file_is_read_back():
    stream = replace(STREAM, mbps=(0.4, 0.2, 0.1), price=2.0)
    assert stream_from_json(json.loads(json.dumps(stream_to_json(stream)))) == stream
    assert stream.event_bytes(0) == pytest.approx(2500) and stream.event_bytes(2) == pytest.approx(625)
    view = view_of(stream)
    task = task_of("t", view.components, view.streams, {node.id: v for v, node in enumerate(NODES)})
    assert task.bandwidth == pytest.approx([0.4 * HEADROOM, 0.2 * HEADROOM, 0.1 * HEADROOM])
    assert (task.source, task.delivery, task.services, task.price) == (0, 3, (0, 1), 2.0)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("rate", 0, "rate"),
        ("mbps", [1, 1], "does not fit 2 services"),
        ("services", "x", "services"),
        ("speed", 1, "speed"),
    ],
)
def test_a_wrong_stream_file_is_told_by_its_field(field, value, says):
    with pytest.raises(FieldError, match=says):
        stream_from_json(stream_to_json(STREAM) | {field: value})


def drained(view: ClusterView, plan: Plan, *names: str) -> ClusterView:
    nodes = tuple(replace(node, draining=node.id in names) for node in view.nodes)
    return replace(view, assignment=plan.placement, tables=plan.tables, first=False, nodes=nodes)


def test_services_leave_a_node_that_drains_and_what_they_had_reserved_there_is_free(tmp_path):
    world = World(tmp_path, cpu=2.0)
    view = view_of(STREAM)
    plan = world.decide(view)
    lost = places(plan)[1]
    running = drained(view, plan, lost)
    plan = world.decide(running)
    assert lost not in places(plan) and world.held() == {"s-1/try-2"}
    assert "leaves it" in world.decide(drained(running, plan, lost)).reason
    assert "leaves it" in world.decide(drained(running, plan)).reason, "it may come back, and does not have to"
    world.joint = Joint(BiModal(files(tmp_path, cpu=2.0)), world.post)
    again = world.decide(drained(running, plan, lost))
    assert places(again) == places(plan) and world.held() == {"s-1/try-2"}, "a new process finds the try that runs"


def test_a_source_or_sink_on_a_node_that_drains_is_named_and_its_end_is_still_told(tmp_path):
    world = World(tmp_path)
    view = view_of(STREAM)
    running = drained(view, world.decide(view), "v3")
    assert "component c03: pinned = 'v3': drains" in world.decide(running).reason
    world.joint.forget("s", gone=True)
    assert world.held() == set()


def test_services_that_are_to_be_apart_share_no_server(tmp_path):
    together = places(World(tmp_path, cpu=9.0).decide(view_of(STREAM)))
    assert together[1] == together[2]
    apart = places(World(tmp_path, cpu=9.0).decide(view_of(STREAM, apart=(("c01", "c02"),))))
    assert apart == ["v0", "v1", "v2", "v3"]


def test_a_service_runs_where_it_is_pinned(tmp_path):
    view = view_of(STREAM)

    def pinned(node: str) -> Plan:
        components = tuple(replace(one, pinned=(node,)) if one.id == "c01" else one for one in view.components)
        return World(tmp_path, cpu=9.0).decide(replace(view, components=components))

    for node in ("v1", "v2"):
        assert places(pinned(node))[1] == node
    assert "none has an agent" in pinned("v7").reason
