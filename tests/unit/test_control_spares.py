"""Which warm task is brought where ahead of need: by hand, and what holds for any view."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.guard import check_plan
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.spares import idle_tasks, price_of, spare, spares_fields, standing_spares
from leeward.control.worker_heap import FALLBACK, LOG_WRITER, REQUEST, worker_heap
from leeward.core.model import Component, Measured
from leeward.core.plan import Slot, restarting
from leeward.core.table import even_table, replicas
from tests.helpers.control_views import node, view


def structure(conf=None):
    """Each executor of `work` asks for 100 MB."""
    conf = {"worker.childopts": "-Xmx%HEAP-MEM%m", LOG_WRITER: "-Xmx64m", REQUEST: 128.0} if conf is None else conf
    work = ComponentFacts(id="work", kind="stateful", inputs=("source",), conf={REQUEST: 100.0})
    return Structure(id="app-1-1", name="app", components=(work,), conf=conf)


def ready(**changes):
    """Tasks 3 and 4 of `work` are warm, in a slot of n1 of their own."""
    before = view(**changes)
    return replace(before, assignment=before.assignment | dict.fromkeys((3, 4), Slot("n1", 2)))


def moved(before):
    plan = spare(before)
    if plan is None:
        return {}
    check_plan(plan, before)
    return {task: slot for task, slot in plan.placement.items() if before.assignment[task] != slot}


def test_a_warm_task_goes_to_the_first_node_without_one():
    before = ready()
    assert moved(before) == {3: Slot("n2", 1)}
    assert spare(before).reason == "a spare of work to n2, which has no warm task"
    assert spare(before).tables == before.tables


def test_a_node_with_a_warm_task_gets_none_and_the_last_one_stays():
    one = replace(ready(), assignment=ready().assignment | {3: Slot("n2", 1)})
    assert moved(one) == {}, "n3 has none, but nobody can give one away"
    assert standing_spares(one) == {"n1": {"work": 1}, "n2": {"work": 1}}


def test_tasks_that_share_a_slot_with_work_stay():
    before = view()
    before = replace(before, assignment=before.assignment | dict.fromkeys((3, 4), Slot("n1", 1)))
    assert moved(before) == {} and idle_tasks(before) == frozenset()


@pytest.mark.parametrize(
    ("changes", "to"),
    [
        ({"nodes": (node("n1"), node("n2", draining=True), node("n3"))}, "n3"),
        ({"nodes": (node("n1"), node("n2", ports=()), node("n3"))}, "n3"),
        ({"nodes": (node("n1"), node("n2", capacity=0), node("n3"))}, "n3"),
        ({"pinned": ("n1", "n3")}, "n3"),
        ({"pinned": ("n1",)}, None),
    ],
)
def test_nodes_that_cannot_take_a_replica_get_none(changes, to):
    found = moved(ready(**changes))
    assert found == ({3: Slot(to, 1)} if to else {})


def test_a_component_that_cannot_grow_sends_none():
    before = ready()
    full = tuple(replace(c, max_replicas=1) if c.id == "work" else c for c in before.components)
    assert moved(replace(before, components=full)) == {}


def test_nodes_of_rivals_are_left_out():
    before = ready(apart=(("sink", "work"),))
    assert moved(replace(before, assignment=before.assignment | {5: Slot("n2", 1)})) == {3: Slot("n3", 1)}


def test_the_component_that_has_most_to_do_comes_first():
    before = ready()
    more = Component(id="other", tasks=(6, 7), stateful=True, max_replicas=2)
    before = replace(
        before,
        components=(*before.components, more),
        tables={**before.tables, "other": even_table([6])},
        assignment=before.assignment | {6: Slot("n1", 1), 7: Slot("n1", 2)},
        measured=before.measured | {"other": Measured(arrival_rate=99.0, service_rate=100.0)},
    )
    assert moved(before) == {7: Slot("n2", 1)}
    calm = replace(before, measured=before.measured | {"other": Measured(arrival_rate=1.0, service_rate=100.0)})
    assert moved(calm) == {3: Slot("n2", 1)}


def test_status_states_what_they_cost():
    told = spares_fields(ready(), structure(), {3: 51_000_000})
    assert told["nodes"] == {"n1": {"work": 2}} and (told["tasks"], told["workers"]) == (2, 1)
    assert (told["memory_mb"], told["processors"]) == (91, 0.037)
    assert told["memory_from"] == "1 of 2 processes are measured, others count 40 MB"
    assert (told["worker_heap_mb"], told["worker_heap_from"]) == (200.0, REQUEST), "two executors of 100 MB"
    assert (told["log_writer_heap_mb"], told["log_writer_heap_from"]) == (64.0, LOG_WRITER)
    none = spares_fields(view(work=(2, 3, 4)), structure(), {})
    assert (none["nodes"], none["memory_mb"], none["worker_heap_mb"]) == ({}, 0, 0)


def test_the_cost_is_told_with_the_decision():
    conf = {"worker.childopts": "-Xmx128m"}
    price = partial(price_of, view=ready(), structure=structure(conf), resident={3: 51_000_000})
    assert spare(ready(), price).reason == (
        "a spare of work to n2, which has no warm task; it costs a Python process of 51 MB (measured), "
        "a worker with a heap of at most 128 MB (worker.childopts), and 0.036 processors"
    )
    unknown = price_of(3, ready(), structure({"worker.childopts": ""}), {})
    assert "some 40 MB" in unknown and "without bound" in unknown


@pytest.mark.parametrize(
    ("conf", "heap"),
    [
        ({"worker.childopts": "-Xms16m -Xmx1g -Xss512k"}, (1024.0, "worker.childopts")),
        ({"worker.childopts": ["-Xmx96m", "-XX:+UseSerialGC"]}, (96.0, "worker.childopts")),
        (
            {"worker.childopts": "-Xmx96m", "topology.worker.childopts": "-Xmx300000k"},
            (300000 / 1024, "topology.worker.childopts"),
        ),
        ({"worker.childopts": "-Xmx96m", "topology.worker.childopts": None}, (96.0, "worker.childopts")),
        ({"worker.childopts": "-Xmx%HEAP-MEM%m", REQUEST: 128.0}, (228.0, REQUEST)),
        ({"worker.childopts": "-Xmx%HEAP-MEM%m", REQUEST: "much"}, (100.0, REQUEST)),
        ({"worker.childopts": "-Xmxall"}, (None, "worker.childopts")),
        ({}, (None, "no -Xmx is set: the JVM takes a share of the node's memory")),
    ],
)
def test_the_heap_is_that_of_the_last_option(conf, heap):
    assert worker_heap(conf, [{REQUEST: 100.0}, {}]) == (pytest.approx(heap[0]) if heap[0] else None, heap[1])


def test_without_requests_the_heap_is_that_of_the_cluster():
    assert worker_heap({"worker.childopts": "-Xmx%HEAP-MEM%m", FALLBACK: 768}, [{}]) == (768.0, FALLBACK)
    assert worker_heap({"worker.childopts": "-Xmx%HEAP-MEM%m"}, [{}]) == (None, FALLBACK)


def test_where_a_task_has_no_place_nothing_is_brought():
    before = ready()
    assert spare(replace(before, assignment={t: s for t, s in before.assignment.items() if t != 4})) is None


def warm_nodes(shown):
    """Nodes with a warm task."""
    owners = {task for table in shown.tables.values() for task in table}
    return {slot.node for task, slot in shown.assignment.items() if task not in owners}


SLOTS = st.sampled_from([Slot(f"n{n}", port) for n in (1, 2, 3) for port in (1, 2, 3)])


@given(
    places=st.fixed_dictionaries(dict.fromkeys(range(1, 6), SLOTS)),
    ports=st.lists(st.lists(st.sampled_from([1, 2, 3]), unique=True), min_size=3, max_size=3),
    owners=st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=3, unique=True),
)
def test_no_table_no_work_and_no_slot_of_others_is_touched_and_it_ends(places, ports, owners):
    nodes = tuple(node(f"n{n}", ports=mine) for n, mine in zip((1, 2, 3), ports, strict=True))
    before = replace(view(work=tuple(owners), nodes=nodes), assignment=places)
    had = warm_nodes(before)
    for _ in range(10):
        plan = spare(before)
        if plan is None:
            break
        assert plan.tables == before.tables
        (task,) = (t for t in places if plan.placement[t] != before.assignment[t])
        slot = plan.placement[task]
        working = {t for table in before.tables.values() for t in replicas(table)}
        assert working.isdisjoint(restarting(before.assignment, plan.placement))
        assert slot not in before.assignment.values()
        assert slot.port in next(n.ports for n in nodes if n.id == slot.node)
        before = replace(before, assignment=plan.placement)
        assert warm_nodes(before) > had, "one more node has a warm task, and none has lost its last"
        had = warm_nodes(before)
    assert spare(before) is None
