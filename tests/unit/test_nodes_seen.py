"""Nodes of a view that are kept are those that would be made anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leeward.control.nodes_seen import NodesSeen
from leeward.control.snapshot import ClusterSnapshot, Supervisor
from leeward.core.learnt import StoreLink
from leeward.core.model import Node
from leeward.core.orders import Assigned
from leeward.core.plan import Slot

names = st.sampled_from(["n1", "n2", "n3"])
supervisors = st.lists(
    st.builds(Supervisor, node=names, ports=st.sampled_from([(1,), (1, 2), ()]), blacklisted=st.booleans()),
    unique_by=lambda one: one.node, max_size=3,
)  # fmt: skip
taken = st.frozensets(st.builds(Slot, names, st.integers(1, 2)))
crowded = st.dictionaries(names, st.integers(0, 9))


def snapshot(supervisors, taken, crowded=None):
    assigned = Assigned(managed=False, epoch=None, reason="", slots={})
    return ClusterSnapshot(
        supervisors=tuple(supervisors), tasks={}, assigned=assigned, taken=taken, crowded=crowded or {}
    )


@given(
    st.lists(supervisors, min_size=1, max_size=2),
    st.lists(st.tuples(st.booleans(), taken, crowded, st.frozensets(names)), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_each_view_has_the_nodes_that_its_snapshot_says(clusters, found, eps_max):
    seen, drains = NodesSeen(), frozenset()
    for other, taken, crowded, draining in found:
        supervisors, drains = (clusters[-1], draining) if other else (clusters[0], drains)
        free = {one.node: tuple(port for port in one.ports if Slot(one.node, port) not in taken) for one in supervisors}
        assert seen.of(snapshot(supervisors, taken, crowded), drains, eps_max, {}) == tuple(
            Node(
                id=one.node, ports=free[one.node], draining=one.node in drains, meta={},
                capacity=max(0, eps_max * len(free[one.node]) - crowded.get(one.node, 0)),
            )
            for one in supervisors if not one.blacklisted
        )  # fmt: skip


def test_nodes_of_plans_and_of_all_else_are_kept_side_by_side():
    seen, one = NodesSeen(), snapshot([Supervisor(node="n1", ports=(1, 2))], frozenset())
    other = snapshot(one.supervisors, frozenset({Slot("n1", 2)}))
    first, second = seen.of(one, frozenset(), 4, {}), seen.of(other, frozenset(), 4, {})
    assert first is not second
    assert seen.of(one, frozenset(), 4, {}) is first and seen.of(other, frozenset(), 4, {}) is second


def test_a_node_has_its_link_to_the_datastore_once_that_is_known():
    seen, one = (
        NodesSeen(),
        snapshot([Supervisor(node="n1", ports=(1,)), Supervisor(node="n2", ports=(1,))], frozenset()),
    )
    link = StoreLink(trip_s=0.002)
    assert [node.store for node in seen.of(one, frozenset(), 4, {})] == [StoreLink(), StoreLink()]
    assert [node.store for node in seen.of(one, frozenset(), 4, {"n2": link})] == [StoreLink(), link]
