"""Two topologies on one node never count on the same free slots: what one has beyond its own is no room for others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leeward.control.nodes_seen import NodesSeen
from leeward.control.overhang import crowded_out, overhang
from leeward.control.reservations import Reservations
from leeward.control.snapshot import ClusterSnapshot, Supervisor
from leeward.core.orders import Assigned
from leeward.core.plan import Plan, Slot
from leeward.core.table import even_table
from tests.helpers.control_stage import Script, replicas_of_work, stage
from tests.helpers.control_twins import Cluster

NODE, PORTS, EPS = "n1", (1, 2, 3, 4), 4


def snapshot(taken=(), crowded=None):
    assigned = Assigned(managed=False, epoch=None, reason="", slots={})
    return ClusterSnapshot(
        supervisors=(Supervisor(node=NODE, ports=PORTS),), tasks={}, assigned=assigned, taken=frozenset(taken),
        crowded=crowded or {},
    )  # fmt: skip


def placed(count: int, slots: int, first_port: int = 1) -> Plan:
    """So many replicas in so many slots of the node, as even as can be."""
    tasks = range(1, count + 1)
    placement = {task: Slot(NODE, first_port + task % slots) for task in tasks}
    return Plan(tables={"work": even_table(list(tasks))}, placement=placement)


def test_replicas_beyond_eps_max_in_each_slot_hang_over():
    many, few = placed(16, 2), placed(8, 2)
    assert overhang(many.tables, many.placement, EPS) == {NODE: 8}
    assert overhang(few.tables, few.placement, EPS) == {}
    warm = {**few.placement, **{task: Slot(NODE, 1) for task in range(9, 17)}}
    assert overhang(few.tables, warm, EPS) == {}, "warm tasks are no replicas"


def test_others_have_that_much_less_room():
    [node] = NodesSeen().of(snapshot([Slot(NODE, 1), Slot(NODE, 2)], {NODE: 5}), frozenset(), EPS, {})
    assert (node.ports, node.capacity) == ((3, 4), 3)
    [node] = NodesSeen().of(snapshot([Slot(NODE, 1), Slot(NODE, 2)], {NODE: 9}), frozenset(), EPS, {})
    assert node.capacity == 0


def test_an_overhang_counts_from_the_plan_to_the_end_of_the_topology_here():
    kept = Reservations()
    kept.stands("one", {"n1": 1, "n2": 2})
    assert kept.claim("one", {Slot("n1", 1)}, {"n1": 3}) is None
    assert kept.over_of_others("two") == {"n1": 3, "n2": 2} and kept.over_of_others("one") == {}
    kept.stands("three", {"n1": 1})
    kept.release("one")
    assert kept.over_of_others("two") == {"n1": 2, "n2": 2}
    kept.leave("one")
    assert kept.over_of_others("two") == {"n1": 1}


@given(st.lists(st.tuples(st.integers(1, 16), st.integers(1, 4)), min_size=1, max_size=4))
def test_plans_that_find_room_one_after_another_never_hold_more_than_the_node_may(wanted):
    kept, used, ports = Reservations(), Counter(), list(PORTS)
    for number, (count, slots) in enumerate(wanted):
        if slots > len(ports) or count < slots:
            continue
        plan = placed(count, slots, first_port=ports[0])
        taken = {Slot(NODE, port) for port in PORTS if port not in ports}
        if crowded_out(plan, snapshot(taken, kept.over_of_others(str(number))), EPS):
            continue
        assert kept.claim(str(number), set(plan.placement.values()), overhang(plan.tables, plan.placement, EPS)) is None
        used[number], ports = count, ports[slots:]
    assert used.total() <= EPS * len(PORTS)


def test_a_plan_whose_room_another_topology_has_taken_meanwhile_is_refused():
    """The view of the plan was made before; the other topology's plan was accepted first."""
    kept = Reservations()
    policy = Script(lambda view: kept.stands("other", {"n2": 8}) or replicas_of_work([2, 3])(view))
    refused = lambda sink, _: bool(sink.of("plan_refused"))  # noqa: E731
    service, clock, sink, _ = stage(policy, until=refused, cluster=Cluster())
    service._reservations = kept
    service.run(clock.stop)
    assert "'n2' has room for 0 of" in sink.of("plan_refused")[0]["why"]
    assert not sink.of("reconfiguration_started")
