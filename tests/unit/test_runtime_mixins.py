"""pystorm's mixins with elastic classes: BatchingBolt keeps its promises at every cut; the others are refused."""

from __future__ import annotations

from io import BytesIO

import pytest
from pystorm.component import Tuple
from streamparse import BatchingBolt, ReliableSpout, TicklessBatchingBolt

from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ConfigError
from leeward.core.keys import key_group
from leeward.core.metrics import TaskMetrics
from leeward.core.table import even_table
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import TABLES, begin_handover, emitted, starting


class Batches:
    outputs = ("key", "count")

    def group_key(self, tup):
        return tup.values[0]


class Turns(Batches, BatchingBolt, ElasticBolt):
    def process_batch(self, key, tups):
        if key == "bad":
            raise ValueError("of the user")
        self.emit([key, len(tups)])


class Kept(Batches, StatefulBolt, BatchingBolt):
    def process_batch(self, key, tups):
        self.state[key] = self.state.get(key, 0) + len(tups)
        self.emit([key, self.state[key]])


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path, beat=True) as start:
        yield start


def tick(worker):
    worker.tuple("__system", -1, [1], stream="__tick")
    return worker.beat()


def acked(said):
    return [message["id"] for message in said if message.get("command") == "ack"]


@pytest.mark.parametrize("cls", [Turns, Kept])
def test_tuples_between_ticks_are_one_batch_by_key_and_acked_behind_it(start, cls):
    worker = start(cls)
    for key in "aba":
        worker.tuple("pass", 3, [key])
    said = worker.beat() + tick(worker)
    assert emitted(said) == [] and acked(said) == ["__system[1]"], "pystorm waits for one tick more than it is told"
    said = tick(worker)
    assert emitted(said) == [["a", 2], ["b", 1]]
    anchors = [message["anchors"] for message in said if message.get("command") == "emit"]
    assert anchors == [["pass['a']", "pass['a']"], ["pass['b']"]]
    assert acked(said)[0] == "__system[1]" and sorted(acked(said)[1:]) == ["pass['a']", "pass['a']", "pass['b']"]
    assert emitted(tick(worker) + tick(worker)) == [], "a batch is processed once"


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("cls", [Turns, Kept])
def test_a_batch_is_part_of_the_cut_behind_it(start, cls, binary):
    worker = start(cls, Twin(ids=False) if binary else None)
    worker.tuple("pass", 3, ["a"])
    for task in (3, 4):
        worker.marker("pass", task, "checkpoint", 1, body=ControlRecord(checkpoint=1, tables=TABLES).to_json())
    said = [message for message in worker.beat() if message.get("command") == "emit"]
    assert [(message.get("stream"), message["tuple"][0]) for message in said] == [
        (None, "a"),
        ("marker", "checkpoint"),
    ]
    assert cls is Turns or worker.component.state["a"] == 1


def test_a_batch_is_processed_before_its_key_groups_leave_and_before_a_pulse(start):
    worker = start(Kept)
    worker.tuple("pass", 3, ["a"])
    said = begin_handover(worker, even_table([6]))
    assert emitted(said) == [["a", 1]] and worker.component.state.groups == ()
    assert emitted(tick(worker) + tick(worker)) == []


def test_a_pulse_comes_behind_the_batch(start):
    worker = start(Turns)
    worker.tuple("pass", 3, ["a"])
    worker.marker("pass", 3, "pulse", 1, body={})
    said = [message for message in worker.beat() if message.get("command") == "emit"]
    assert [message["tuple"][0] for message in said] == ["a", "pulse"]


def test_a_restored_task_forgets_its_batch_which_comes_again(start):
    worker = start(Kept)
    worker.tuple("pass", 3, ["a"])
    worker.beat()
    record = ControlRecord(epoch=3, phase=Phase.RESTORE, base=3, cut=2, tables=TABLES)
    worker.link.snapshots = {key_group("a"): {"a": 7}}
    worker.link.show(record)
    worker.beat()
    for task in (3, 4):
        worker.marker("pass", task, "probe", 3)
    worker.beat()
    worker.link.show(record.with_phase(Phase.RUN))
    worker.beat()
    worker.tuple("pass", 3, ["a"])
    assert emitted(worker.beat() + tick(worker) + tick(worker)) == [["a", 8]]


def test_a_tick_is_acked_once_also_by_a_warm_task_and_when_it_waits(start):
    worker = start(Kept, taskid=6)
    assert acked(tick(worker)) == ["__system[1]"]
    begin_handover(worker, even_table([5, 6]))
    assert acked(tick(worker) + tick(worker)) == ["__system[1]"], "the second waits until all groups are in"
    groups = {group: {} for group in range(1, 128, 2)}
    worker.link.post(lambda: worker.component._handovers._arrived(1, groups, 0))
    assert acked(worker.beat() + worker.beat()) == ["__system[1]"]


def test_its_batches_are_no_state_outside_of_the_state(start):
    worker = start(Kept)
    worker.tuple("pass", 3, ["a"])
    worker.beat()
    assert TaskMetrics.from_line(worker.link.metrics()).outside == ()


def test_a_batch_that_fails_is_failed_whole_and_the_others_go_on(start):
    class Lasting(Turns):
        exit_on_exception = False

    worker = start(Lasting)
    for key in ("bad", "bad", "a"):
        worker.tuple("pass", 3, [key])
    for task in (3, 4):
        worker.marker("pass", task, "checkpoint", 1, body=ControlRecord(checkpoint=1, tables=TABLES).to_json())
    said, last = [], {}
    while last.get("stream") != "marker":
        last = worker._next_message()
        said.append(last)
    assert [m["id"] for m in said if m.get("command") == "fail"] == ["pass['bad']", "pass['bad']"]
    assert emitted(said) == [["a", 1]] and "of the user" in next(m["msg"] for m in said if m.get("command") == "error")


@pytest.mark.parametrize("cls", [Turns, Kept])
def test_it_works_in_a_unit_test(cls):
    bolt = cls(input_stream=BytesIO(), output_stream=BytesIO(), rdb_signal=None)
    sent = []
    bolt.send_message = sent.append
    word = Tuple(id="7", component="words", stream="default", task=3, values=["dog"])
    bolt.process(word)
    bolt.process(word)
    bolt.process_batches()
    assert [message.get("tuple") or message["id"] for message in sent] == [["dog", 2], "7", "7"]


@pytest.mark.parametrize("bases", [(TicklessBatchingBolt, ElasticBolt), (StatefulBolt, TicklessBatchingBolt)])
def test_a_thread_of_its_own_is_refused_when_the_class_is_built(bases):
    with pytest.raises(ConfigError, match=r"Mixed .*TicklessBatchingBolt.* thread .* Use BatchingBolt"):
        type("Mixed", bases, {})


@pytest.mark.parametrize("bases", [(ReliableSpout, StatefulSpout), (StatefulSpout, ReliableSpout)])
def test_replays_beside_cuts_are_refused_when_the_class_is_built(bases):
    with pytest.raises(ConfigError, match=r"Mixed .*ReliableSpout.* twice.* Derive Mixed from StatefulSpout alone"):
        type("Mixed", bases, {})
