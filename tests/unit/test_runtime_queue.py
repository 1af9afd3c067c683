"""A bolt with a queue behind a pipe: a discipline orders what waits, and nothing that is promised gets out of order."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from leeward.core.control import ControlRecord, Phase
from leeward.core.metrics import TaskMetrics
from leeward.core.table import even_table
from leeward.policies.dssp.disciplines import EarliestDeadline, StrictPriority
from leeward.runtime import ElasticBolt, keyed, ordered_by
from leeward.runtime.pipe.waiting import FAR_S
from tests.helpers.pipe_twin import Twin
from tests.helpers.queue_bolts import FIELDS, Keyed, Urgent, queue_conf
from tests.helpers.task_worker import BOLT, TABLES, FakeCourier, asked, begin_handover, emitted, starting


class Telling:
    """Keeps what it was asked."""

    asked = []

    def next_item(self, waiting, *, now):
        self.asked.append((list(waiting), now))
        return len(waiting) - 1


class Failing:
    answer = 7

    def next_item(self, waiting, *, now):
        if self.answer is None:
            raise ZeroDivisionError("of the discipline")
        return self.answer


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path, beat=True) as begin:

        def start(cls, twin=None, *, conf=None, grouping=None, queue=None, **context):
            marker = BOLT["source->stream->fields"]["pass"]["marker"]
            fields = {"pass": {"default": FIELDS, "more": FIELDS, "bare": ["key"], "marker": marker}}
            conf = queue_conf(cls, grouping, queue=queue) | (conf or {})
            return begin(cls, twin, conf=conf, **{"source->stream->fields": fields}, **context)

        yield start


def data(worker, values, task=3, source="pass", stream="default"):
    tup_id = f"{values[0]}" if values else stream
    if worker.twin:
        return worker.twin.tuple(tup_id, source, stream, task, values)
    message = {"id": tup_id, "comp": source, "stream": stream, "task": task, "tuple": values}
    return json.dumps(message).encode() + b"\nend\n"


def pulse(worker, counts=""):
    return data(worker, ["pulse", 1, "", counts, "{}"], stream="marker")


def tick(worker):
    return data(worker, [1], task=-1, source="__system", stream="__tick")


def send(worker, *parts):
    """At once, so that all of it waits when the bolt looks; pairs of key and due are tuples."""
    parts = [part if isinstance(part, bytes) else data(worker, list(part)) for part in parts]
    os.write(worker._to_child, b"".join(parts))


def said(worker, emits):
    """Messages until so many tuples were emitted."""
    messages = []
    while len(emitted(messages)) < emits:
        messages.append(worker._next_message())
    return messages


def keys(worker, emits):
    return [values[0] for values in emitted(said(worker, emits))]


# --- order


def test_the_next_tuple_is_the_most_urgent_of_those_that_wait(start, twin):
    worker = start(Urgent, twin)
    send(worker, ("c", 3.0), ("a", 1), ("d", 4.0), ("b", 2.5))
    assert keys(worker, 4) == ["a", "b", "c", "d"]
    worker.beat()
    assert twin is None or twin.taken >= 5, "four tuples and the first heartbeat"


def test_what_waits_is_not_taken_yet(start):
    """The worker sends 1,024 tuples ahead; a marker has no more than these in front of it."""
    worker = start(Urgent, Twin(ids=False))
    Urgent.gate.clear()
    send(worker, ("gate", 0.0), ("b", 2.0), ("a", 1.0))
    while worker.component._loop.waiting != 2:
        pass
    assert worker.component.serializer.taken + worker.twin.taken <= 2, "the first heartbeat, and the one at the gate"
    Urgent.gate.set()
    said(worker, 3)


def test_what_comes_while_the_bolt_is_busy_is_looked_at_when_it_is_free(start):
    worker = start(Urgent, Twin(ids=False))
    Urgent.gate.clear()
    send(worker, ("gate", 0.0))
    send(worker, ("late", 9.0))
    send(worker, ("soon", 1.0))
    Urgent.gate.set()
    assert keys(worker, 3) == ["gate", "soon", "late"]


def test_no_tuple_overtakes_a_marker_and_its_count_is_right(start, twin):
    worker = start(Urgent, twin)
    send(worker, pulse(worker, "5:0"))
    send(worker, ("c", 3.0), ("b", 2.0), data(worker, ["pulse", 2, "", "5:3", "{}"], stream="marker"), ("a", 1.0))
    assert keys(worker, 5) == ["pulse", "b", "c", "pulse", "a"]
    assert not [entry for entry in worker.link.done if entry[0] == "recover"]


def test_a_marker_is_a_fence_for_tuples_of_other_channels_too(start):
    worker = start(Urgent, Twin(ids=False), conf={"leeward.replicas": {"pass": 2}})
    other = data(worker, ["b", 2.0], task=4)
    send(worker, ("c", 3.0), other, pulse(worker), data(worker, ["a", 1.0], task=4), ("d", 0.0))
    assert keys(worker, 3) == ["b", "c", "a"], "d is behind the marker of its channel, which is not in from the other"
    send(worker, data(worker, ["pulse", 1, "", "", "{}"], task=4, stream="marker"))
    assert keys(worker, 2) == ["pulse", "d"]


def test_no_tuple_overtakes_a_tick(start, twin):
    worker = start(Urgent, twin)
    send(worker, ("c", 3.0), ("b", 2.0), tick(worker), ("a", 1.0))
    assert keys(worker, 4) == ["b", "c", "tick", "a"]


def test_a_heartbeat_cuts_nothing_and_is_answered_while_tuples_wait(start, twin):
    worker = start(Urgent, twin)
    send(worker, ("c", 3.0), data(worker, [], task=-1, source="", stream="__heartbeat"), ("a", 1.0))
    assert emitted(worker.read_until_sync()) == []
    assert keys(worker, 2) == ["a", "c"]


def test_no_more_are_read_ahead_than_may_wait(start):
    worker = start(Urgent, Twin(ids=False), queue=ordered_by(EarliestDeadline, due="due", most=2))
    send(worker, *((f"{due}", due) for due in (5, 4, 3, 2, 1)))
    assert keys(worker, 5) == ["4", "3", "2", "1", "5"]


def test_tuples_that_wait_are_published_as_the_length_of_the_queue(start):
    worker = start(Urgent, Twin(ids=False))
    Urgent.gate.clear()
    send(worker, ("gate", 0.0), ("b", 2.0), ("a", 1.0))
    while worker.component._loop.waiting != 2:
        pass
    assert TaskMetrics.from_line(worker.link.metrics()).buffered == 2
    Urgent.gate.set()
    assert keys(worker, 3) == ["gate", "a", "b"]
    assert TaskMetrics.from_line(worker.link.metrics()).buffered == 0


# --- order by key


def in_frames(*positions):
    return Twin(ids=False, keyed={("pass", "default"): positions or [0]})


def test_tuples_of_one_key_keep_their_order_also_where_it_costs_a_deadline(start):
    worker = start(Keyed, in_frames(), grouping=keyed("key"))
    send(worker, ("a", 9.0), ("b", 5.0), ("a", 1.0), ("c", 7.0))
    assert emitted(said(worker, 4)) == [["b", 5.0], ["c", 7.0], ["a", 9.0], ["a", 1.0]]


def test_a_stateless_bolt_with_keyed_input_keeps_it_too(start):
    worker = start(Urgent, in_frames(), grouping=keyed("key"))
    send(worker, ("a", 9.0), ("b", 5.0), ("a", 1.0))
    assert keys(worker, 3) == ["b", "a", "a"]


def test_where_the_worker_tells_no_groups_nothing_is_overtaken(start):
    """As with Storm's own serializer."""
    worker = start(Urgent, None, grouping=keyed("key"))
    send(worker, ("b", 5.0), ("a", 1.0))
    assert keys(worker, 2) == ["b", "a"]


def test_tuples_that_may_touch_any_key_neither_overtake_nor_are_overtaken(start):
    worker = start(Keyed, Twin(ids=False, keyed={("pass", "more"): [0]}), grouping=keyed("key"))
    a, b, d, e = (
        data(worker, [key, due], stream="more") for key, due in (("a", 9.0), ("b", 8.0), ("d", 2.0), ("e", 1.0))
    )
    send(worker, a, b, ("c", 5.0), d, e)
    assert [key for key, _ in emitted(said(worker, 5))] == ["b", "a", "c", "e", "d"], "c has no key that is known"


# --- acks and errors


def test_tuples_are_acked_in_the_order_in_which_they_are_processed(start):
    worker = start(Urgent, Twin(ids=True))
    send(worker, ("b", 2.0), ("a", 1.0))
    messages = [m for m in said(worker, 2) + worker.beat() if "stream" not in m and m["command"] in ("emit", "ack")]
    shown = [message.get("id") or (message["tuple"], message["anchors"]) for message in messages]
    assert shown == [(["a"], ["a"]), "a", (["b"], ["b"]), "b"]


def test_an_exception_fails_its_own_tuple_and_the_others_go_on(start, twin):
    worker = start(Urgent, twin)
    send(worker, ("c", 3.0), ("bad", 1.0), ("b", 2.0))
    messages = said(worker, 2)
    assert emitted(messages) == [["b"], ["c"]]
    assert "'bad'" in next(message["msg"] for message in messages if message.get("command") == "error")
    failed = [message["id"] for message in messages if message.get("command") == "fail"]
    assert failed == (["bad"] if worker.component.serializer.form.ids else [])


NO_NUMBER = "count: its queue is ordered by the field 'due' (due), which is 'soon' in a tuple of pass on the stream "
NO_NUMBER += "'default'. Emit a number there, or leave due out of ordered_by."


def test_a_fact_that_is_no_number_fails_its_tuple_which_is_counted_all_the_same(start, twin):
    worker = start(Urgent, twin)
    send(worker, pulse(worker, "5:0"))
    send(worker, ("c", 3.0), ("x", "soon"), data(worker, ["pulse", 2, "", "5:3", "{}"], stream="marker"))
    messages = said(worker, 3)
    assert emitted(messages) == [["pulse"], ["c"], ["pulse"]]
    assert NO_NUMBER in next(message["msg"] for message in messages if message.get("command") == "error")
    failed = [message["id"] for message in messages if message.get("command") == "fail"]
    assert failed == (["x"] if worker.component.serializer.form.ids else [])
    assert not [entry for entry in worker.link.done if entry[0] == "recover"]


def test_a_field_that_a_tuple_does_not_have_is_named(start):
    worker = start(Urgent, Twin(ids=False))
    send(worker, data(worker, ["a"], stream="bare"), ("b", 2.0))
    text = next(m["msg"] for m in said(worker, 1) if m.get("command") == "error")
    assert "the field 'due' (due), which a tuple of pass on the stream 'bare' does not have. Add 'due' to" in text


@pytest.mark.parametrize(
    ("answer", "error"),
    [(7, "count: Failing.next_item chose 7 of 2 waiting tuples. Return a position"), (None, "of the discipline")],
)
def test_where_the_discipline_fails_the_oldest_tuple_does_and_the_next_are_asked_for_again(start, answer, error):
    Failing.answer = answer
    worker = start(Urgent, Twin(ids=True), queue=ordered_by(Failing, due="due"))
    send(worker, ("b", 2.0), ("a", 1.0), tick(worker))
    messages = said(worker, 1)
    assert emitted(messages) == [["tick"]]
    assert [message["id"] for message in messages if message.get("command") == "fail"] == ["b", "a"]
    assert error in next(message["msg"] for message in messages if message.get("command") == "error")


# --- records


def test_tuples_that_wait_when_a_reset_comes_are_dropped(start):
    worker = start(Urgent, Twin(ids=False))
    Urgent.gate.clear()
    send(worker, ("gate", 0.0), ("old", 2.0))
    while worker.component._loop.waiting != 1:
        pass
    record = ControlRecord(epoch=3, phase=Phase.RESTORE, base=3, cut=0, tables=TABLES)
    worker.link.show(record)
    Urgent.gate.set()
    assert keys(worker, 1) == ["gate"]
    for task in (3, 4):
        worker.marker("pass", task, "probe", 3)
    while not worker.component._protocol._ready:
        worker.beat()
    worker.link.show(record.with_phase(Phase.RUN))
    while not worker.component._protocol.open:
        worker.beat()
    send(worker, ("new", 9.0))
    assert keys(worker, 1) == ["new"]


def test_tuples_that_came_during_a_pause_are_processed_in_the_queues_order(start):
    worker = start(Urgent, Twin(ids=False))
    pause = ControlRecord(epoch=1, phase=Phase.PAUSE, cut=1, tables=TABLES)
    for task in (3, 4):
        worker.marker("pass", task, "pause", 1, body=pause.to_json())
    while worker.component._protocol.mode != "paused":
        worker.beat()
    for key, due in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        send(worker, (key, due))
        worker.beat()
    worker.link.show(replace(pause, phase=Phase.RUN, epoch=2))
    assert keys(worker, 3) == ["a", "b", "c"]


def test_key_groups_leave_behind_all_tuples_that_came_before_the_marker(start):
    twin = Twin(ids=False, keyed={("pass", "default"): [0]})
    worker = start(Keyed, twin, grouping=keyed("key"), courier=FakeCourier)
    send(worker, ("a", 9.0), ("b", 5.0), ("a", 1.0))
    messages = begin_handover(worker, even_table([6]), before=True) + worker.beat()
    while worker.component.state.groups:
        messages += worker.beat()
    assert emitted(messages) == [["b", 5.0], ["a", 9.0], ["a", 1.0]]
    (sending,) = asked(worker, "send")
    gone = {key: count for items, _ in sending.parcels[6].values() for key, count in items.items()}
    assert gone == {"a": 2, "b": 1}


# --- facts


def test_facts_that_no_field_has_have_defaults(start):
    Telling.asked = []
    worker = start(Urgent, Twin(ids=False), queue=ordered_by(Telling))
    send(worker, ("a", 1.0), ("b", 2.0))
    said(worker, 2)
    waiting, now = Telling.asked[0]
    first = waiting[0]
    assert 0 <= now - first.arrived < 60 and first.due == first.arrived + FAR_S
    assert (first.rank, first.unloaded, first.stages, first.weight) == (0, 0.0, 1, 1.0) and first.execution > 0
    assert first.tup.values.key == "a"


def test_the_mean_execution_is_the_emulated_one_and_the_order_holds_with_it(start):
    Telling.asked = []
    conf = {"leeward.service_times": "emulated", "leeward.service_rate": 100}
    worker = start(Urgent, Twin(ids=False), conf=conf, queue=ordered_by(Telling))
    send(worker, ("a", 1.0), ("b", 2.0), ("c", 0.0))
    assert keys(worker, 3) == ["c", "b", "a"]
    assert Telling.asked[0][0][0].execution == 0.01


def test_numbers_hold_for_all_tuples(start):
    Telling.asked = []
    ordering = ordered_by(Telling, due="due", rank=2, unloaded=0.5, execution=0.2, stages=3, arrived=7.0, weight=0.5)
    worker = start(Urgent, Twin(ids=False), queue=ordering)
    send(worker, ("a", 1.0), ("b", 2.0))
    said(worker, 2)
    one = Telling.asked[0][0][1]
    assert (one.arrived, one.rank, one.due, one.unloaded, one.execution, one.stages) == (7.0, 2, 2.0, 0.5, 0.2, 3)
    assert one.weight == 0.5


class Own(ElasticBolt):
    outputs = ["key"]
    queue = ordered_by(StrictPriority(apart_s=5.0), rank="due")


def test_an_object_stays_in_the_class(start):
    assert queue_conf(Own)["leeward.queue"]["discipline"] is None
    worker = start(Own, Twin(ids=False))
    assert worker.component._loop._queue._discipline == StrictPriority(apart_s=5.0)
