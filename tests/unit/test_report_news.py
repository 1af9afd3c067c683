"""The cluster is told when it has changed: free slots a little late, all else at once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from leeward.control.report.telling import SLOTS_LATE_S, News
from leeward.control.snapshot import ClusterSnapshot, Supervisor
from leeward.core.model import ClusterView, Component, Node
from leeward.core.orders import Assigned
from leeward.core.plan import Slot

TWO = tuple(Supervisor(node=name, ports=(1, 2)) for name in ("n1", "n2"))
FREE = ClusterSnapshot(
    supervisors=TWO, tasks={}, assigned=Assigned(managed=False, epoch=None, reason="", slots={}), taken=frozenset()
)
TAKEN = replace(FREE, taken=frozenset({Slot("n1", 2)}))
VIEW = ClusterView(
    topology="taxi", topology_id="taxi-1-1", epoch=1,
    components=(Component(id="work", tasks=(1, 2), stateful=True, max_replicas=2),), streams=(),
    nodes=(Node(id="n1", ports=(1, 2), capacity=8),), tables={"work": (1,) * 128}, assignment={}, measured={},
)  # fmt: skip


def test_slots_that_others_take_are_told_once_in_a_while():
    news = News()
    assert news.steady(FREE, 0.0) is FREE
    assert news.steady(TAKEN, SLOTS_LATE_S / 2).taken == frozenset()
    assert news.steady(TAKEN, SLOTS_LATE_S).taken == TAKEN.taken


def test_a_node_that_is_gone_is_told_at_once():
    news = News()
    news.steady(FREE, 0.0)
    gone = replace(TAKEN, supervisors=TWO[:1])
    assert news.steady(gone, 0.1) is gone


def test_what_is_assigned_is_never_late():
    news = News()
    news.steady(FREE, 0.0)
    moved = replace(TAKEN, assigned=replace(FREE.assigned, slots={1: Slot("n2", 1)}))
    assert news.steady(moved, 0.1).assigned == moved.assigned


def test_a_view_is_told_when_its_nodes_or_components_have_changed():
    news = News()
    assert news.of(VIEW)["nodes"] == [{"id": "n1", "slots": 2, "capacity": 8, "draining": False}]
    assert news.of(replace(VIEW, measured={})) is None
    assert news.of(replace(VIEW, nodes=deepcopy(VIEW.nodes))) is None  # equal ones in another tuple
    drained = replace(VIEW, nodes=(replace(VIEW.nodes[0], draining=True),))
    assert news.of(drained)["nodes"][0]["draining"]
    stateless = replace(drained, components=(replace(VIEW.components[0], stateful=False),))
    assert not news.of(stateless)["components"][0]["stateful"]
