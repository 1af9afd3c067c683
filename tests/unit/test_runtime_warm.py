"""Warm tasks: no call of user code reaches them, and nothing that they emit leaves, until they become replicas."""

from __future__ import annotations

import json

import pytest

from leeward.core.control import ControlRecord
from leeward.core.metrics import TaskMetrics
from leeward.core.table import even_table
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import TABLES, Worker, begin_handover, emitted, starting


class Calls:
    """Notes each call of user code, and emits in each."""

    outputs = ("call",)

    def initialize(self, conf, context):
        self.calls = []
        self.emit(["initialize"])

    def called(self, name):
        self.calls.append(name)
        self.emit([name])

    def resumed(self):
        self.called("resumed")

    def process_tick(self, tup):
        self.called("tick")

    def before_checkpoint(self, cut):
        self.called(f"before {cut}")

    def committed(self, cut):
        self.called(f"committed {cut}")


class Top(Calls, StatefulBolt):
    def process(self, tup):
        self.called(tup.values[0])

    def regrouped(self, gained, lost):
        self.called(f"{len(gained)} gained, {len(lost)} lost")


class Turns(Calls, ElasticBolt):
    def process(self, tup):
        self.called(tup.values[0])


class Feed(Calls, StatefulSpout):
    def next_tuple(self):
        self.called("next")

    def activate(self):
        self.called("activate")

    def deactivate(self):
        self.called("deactivate")

    def ack(self, tup_id):
        self.called(f"ack {tup_id}")


@pytest.fixture(params=["json", "binary"])
def start(request, tmp_path):
    with starting(tmp_path) as start:
        yield lambda cls, **context: start(cls, None if request.param == "json" else Twin(ids=False), **context)


def tick(worker):
    worker.tuple("__system", -1, [1], stream="__tick")
    return emitted(worker.beat())


def metrics(worker):
    return TaskMetrics.from_line(worker.link.metrics())


def test_ticks_and_hooks_reach_a_replica(start):
    worker = start(Top)
    assert emitted(worker.beat()) == [["resumed"]] and tick(worker) == [["tick"]]
    assert metrics(worker).dropped == 1, "before the task has read a record there is no table to route by"


def test_no_tick_and_no_hook_reaches_a_warm_task(start):
    worker = start(Top, taskid=6)
    worker.beat()
    assert tick(worker) == []
    worker.link.show(ControlRecord(committed=(1,), checkpoint=1, tables=TABLES))
    for task in (3, 4):
        worker.marker("pass", task, "checkpoint", 1, body=ControlRecord(checkpoint=1, tables=TABLES).to_json())
    said = worker.beat()
    assert [values[:2] for values in emitted(said, "marker")] == [["checkpoint", 1]], "it takes part all the same"
    assert worker.component.calls == []


def test_what_a_warm_task_emits_is_dropped_and_counted(start):
    worker = start(Top, taskid=6)
    worker.beat()
    worker.component.emit(["plain"])
    worker.component.emit(("a tuple",), stream="other")
    assert worker.component.emit(["ids"], need_task_ids=True) == []
    said = worker.beat()
    assert emitted(said) == emitted(said, "other") == []
    assert metrics(worker).dropped == 4 and not metrics(worker).sent.get("default")
    assert [message for message in said if message.get("command") == "log"] == [], "it was said at the first one"


@pytest.mark.parametrize(("cls", "hooks"), [(Top, ["resumed", "64 gained, 0 lost"]), (Turns, ["resumed"])])
def test_a_warm_task_that_becomes_a_replica_is_called_from_then_on(start, cls, hooks):
    worker = start(cls, taskid=6)
    worker.beat()
    emit = worker.component.emit  # as kept by a user's initialize
    begin_handover(worker, even_table([5, 6]))
    if cls is Top:
        groups = range(1, 128, 2)
        worker.link.post(lambda: worker.component._handovers._arrived(1, {group: {} for group in groups}, 0))
        worker.beat()
    assert worker.component.calls == hooks
    assert tick(worker) == [["tick"]]
    emit(["kept"])
    assert ["kept"] in emitted(worker.beat())


def test_a_replica_that_becomes_warm_gets_no_ticks_but_what_its_cuts_need(start):
    worker = start(Turns)
    worker.beat()
    begin_handover(worker, even_table([6]))
    assert tick(worker) == []
    tables = TABLES | {"count": even_table([6])}
    record = ControlRecord(epoch=1, handover=1, checkpoint=1, tables=tables)
    for task in (3, 4):
        worker.marker("pass", task, "checkpoint", 1, body=record.to_json())
    assert emitted(worker.beat()) == []
    worker.link.show(ControlRecord(epoch=1, handover=1, checkpoint=1, committed=(1,), tables=tables))
    assert emitted(worker.beat()) == []
    assert worker.component.calls == ["resumed", "before 1", "committed 1"]
    assert metrics(worker).dropped == 3


def test_a_spare_spout_is_activated_when_it_takes_over(tmp_path):
    context = {
        "task->component": {"1": "feed", "2": "feed", "3": "count"},
        "componentid": "feed",
        "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
    }
    spare = Worker(Feed, tmp_path, None, taskid=2, **context)
    for name, tup_id in (("activate", ""), ("next", ""), ("deactivate", ""), ("activate", ""), ("ack", "7")):
        spare.command(name, tup_id)
        spare.read_until_sync()
    assert spare.component.calls == []
    tables = {"feed": even_table([2]), "count": even_table([3])}
    spare.link.show(ControlRecord(epoch=1, handover=1, tables=tables))
    spare.next()
    spare.link.post(lambda: spare.component._handovers._arrived(1, {group: {} for group in range(128)}, 0))
    spare.next()
    assert [name for name in spare.component.calls if name != "next"] == ["activate", "resumed"]
    spare.command("deactivate")
    said = spare.read_until_sync()
    assert json.loads(json.dumps(emitted(said)))[-1] == ["deactivate"]
    spare.close()
