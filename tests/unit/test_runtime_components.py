"""The base classes behind a pipe, as Storm's worker sees them; ZooKeeper and Redis are replaced by a recording link."""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import replace

import pytest
from pystorm.component import StormHandler
from streamparse import JavaBolt, JavaSpout, Spout, Stream
from streamparse.thrift import Bolt, SpoutSpec
from thriftpy2.utils import deserialize, serialize

from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ConfigError, LeewardError
from leeward.core.keys import key_group
from leeward.core.table import even_table, tables_text
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout, balanced, keyed
from leeward.runtime.handover.courier import Courier
from leeward.runtime.pacing import Pacing
from leeward.runtime.state import keyed as keyed_state
from tests.pipe_twin import Twin, frame


class Count(StatefulBolt):
    outputs = ["key", "count"]

    def process(self, tup):
        print("printed by the user")
        self.state[tup.values[0]] = self.state.get(tup.values[0], 0) + 1
        self.emit([tup.values[0], self.state[tup.values[0]]])

    def process_tick(self, tup):
        self.emit(["tick", sum(self.state.values())])

    def pulse(self, pulse):
        self.emit(["pulse", pulse.number])
        return {"seen": self.task_id}


class Pass(ElasticBolt):
    outputs = ["key"]

    def process(self, tup):
        self.emit(list(tup.values))


class Source(StatefulSpout):
    outputs = ["key"]

    def next_tuple(self):
        self.state["n"] = self.state.get("n", 0) + 1
        self.emit([f"k{self.state['n']}"])
        if self.state["n"] % 2 == 0:
            self.emit_pulse(self.state["n"] // 2, {"t": 1})


PACING = Pacing(practice=0)


class FakeLink:
    """Posts the default record at once; keeps what it was asked to do."""

    def __init__(self, *, post, on_record, default, metrics, leisure, **_):
        self.post, self.on_record, self.record, self.metrics = post, on_record, default, metrics
        self.leisure = leisure
        self.done: list[tuple] = []
        self.snapshots: dict[int, dict] = {}

    def start(self):
        self.show(self.record)

    def show(self, record):
        self.record = record
        self.post(lambda: self.on_record(record, True))

    def export(self, cut, epoch, encode, owned, barrier, report, after_s=0.0):
        try:
            blobs, swap = encode()
        except LeewardError as failure:
            self.report(barrier, report(str(failure), 0.0, 0.0))
        else:
            self.done.append(("export", cut, sorted(blobs), sorted(swap), barrier, report("", 0.0, 0.0).error))

    def load(self, cut, groups, done, failed):
        entries = {group: self.snapshots.get(group, {}) for group in groups}
        self.done.append(("load", cut, list(groups)))
        self.post(lambda: done(entries, 10, 0.0))

    def report(self, barrier, report, after_s=0.0):
        self.done.append(("report", barrier, report.error))

    def look(self):
        self.done.append(("look",))

    def soon(self, job, after_s=0.0):
        self.done.append(("soon",))

    def recover(self, epoch, reason, fresh):
        self.done.append(("recover", epoch, reason, fresh))


class Worker:
    """The Java side of the pipe."""

    _answered = False

    def __init__(self, cls, tmp_path, twin=None, *, courier=Courier, pacing=PACING, **context):
        self.twin = twin  # None: it speaks JSON
        cls = type(cls.__name__, (cls,), {"_make_link": FakeLink, "_make_courier": courier, "_pacing": pacing})
        (tmp_path / "workers/w/pids").mkdir(parents=True, exist_ok=True)
        to_child, self._to_child = os.pipe()
        self._from_child, from_child = os.pipe()
        self._in = os.fdopen(to_child, "rb", buffering=0)
        self._out = os.fdopen(from_child, "wb", buffering=0)
        self.component = cls(input_stream=self._in, output_stream=self._out, rdb_signal=None)
        self.component._exit = lambda code: (_ for _ in ()).throw(SystemExit(code))
        self.messages: list[dict] = []
        conf = {
            "storm.id": "t-1",
            "topology.name": "t",
            "leeward.redis.url": "redis://127.0.0.1:1/0",
            "storm.zookeeper.servers": ["127.0.0.1"],
            "storm.zookeeper.port": 1,
            "pystorm.log.level": "error",
        }
        self.send(
            ({"leeward.pipe": twin.offer} if twin else {})
            | {
                "conf": conf | context.pop("conf", {}),
                "context": context,
                "pidDir": str(tmp_path / "workers/w/pids"),
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._reader = os.fdopen(self._from_child, "rb", buffering=0)
        self._data, self._said = b"", deque()
        self._said_pid()

    def _said_pid(self):
        assert self._next_message()["pid"] == self.component.pid
        self._answered = True
        if self.twin:
            self._said += self.twin.messages(self._data)

    def _run(self):
        try:
            self.component.run()
        except SystemExit:
            pass
        finally:
            self._out.close()

    def send(self, message):
        os.write(self._to_child, json.dumps(message).encode() + b"\nend\n")

    def tuple(self, source, task, values, stream="default"):
        tup_id = f"{source}{values}"
        if self.twin:
            os.write(self._to_child, self.twin.tuple(tup_id, source, stream, task, values))
        else:
            self.send({"id": tup_id, "comp": source, "stream": stream, "task": task, "tuple": values})

    def marker(self, source, task, kind, number, counts="", body=None):
        self.tuple(source, task, [kind, number, "", counts, json.dumps(body)], stream="marker")

    def beat(self):
        """A heartbeat; everything that the child said before it answered."""
        self.tuple("", -1, [], stream="__heartbeat")
        return self.read_until_sync()

    def next(self):
        self.command("next")
        return self.read_until_sync()

    def command(self, name, tup_id=""):
        if self.twin:
            os.write(self._to_child, frame(name, tup_id))
        else:
            self.send({"command": name, "id": tup_id})

    def read_until_sync(self):
        seen = []
        while (message := self._next_message()).get("command") != "sync":
            seen.append(message)
        return seen

    def _next_message(self):
        while not self._said:
            data = self._reader.read(65536)
            assert data, "the child went away"
            if self.twin and self._answered:
                self._said += self.twin.messages(data)
                continue
            *texts, self._data = (self._data + data).split(b"\nend\n")
            self._said += map(json.loads, texts)
        return self._said.popleft()

    @property
    def link(self):
        return self.component._link

    def close(self):
        os.close(self._to_child)
        self._thread.join(5)
        for handler in logging.getLogger().handlers[:]:
            if isinstance(handler, StormHandler):  # would write the next test's log to that one's pipe
                logging.getLogger().removeHandler(handler)
        assert not self._thread.is_alive()


BOLT = {
    "taskid": 5,
    "componentid": "count",
    "task->component": {"3": "pass", "4": "pass", "5": "count", "6": "count", "7": "sink"},
    "source->stream->grouping": {"pass": {"default": {}, "marker": {}}},
    "source->stream->fields": {"pass": {"default": ["key"], "marker": ["kind", "epoch", "tables", "counts", "body"]}},
    "stream->target->grouping": {"default": {"sink": {}}, "marker": {"sink": {}}},
}
TABLES = {"pass": even_table([3]), "count": even_table([5]), "sink": even_table([7])}


def emitted(messages, stream=None):
    return [m["tuple"] for m in messages if m.get("command") == "emit" and m.get("stream") == stream]


@contextmanager
def starting(folder, *, beat=False):
    """A function that starts a worker of a class, with a first beat if wanted; all are closed at last."""
    workers = []

    def start(cls, twin=None, **context):
        workers.append(Worker(cls, folder, twin, **(BOLT | context)))
        if beat:
            workers[-1].beat()
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture(params=["json", "binary with ids", "binary"])
def twin(request):
    return None if request.param == "json" else Twin(ids="ids" in request.param)


@pytest.fixture
def bolt(tmp_path, twin):
    worker = Worker(Count, tmp_path, twin, **BOLT)
    yield worker
    worker.close()


def test_state_counts_and_tables_go_out_first(bolt):
    bolt.tuple("pass", 3, ["a"])
    bolt.tuple("pass", 4, ["a"])
    said = bolt.beat() + bolt.beat()
    assert emitted(said) == [["a", 1], ["a", 2]]
    kind, epoch, tables, _, _ = emitted(said, "marker")[0]
    assert (kind, epoch) == ("probe", 0) and tables.startswith("sink=7,7,")
    acks = [m["id"] for m in said if m.get("command") == "ack"]
    anchors = [m.get("anchors") for m in said if m.get("command") == "emit" and "stream" not in m]
    if bolt.component.serializer.form.ids:
        assert acks == ["pass['a']", "pass['a']"] and anchors == [["pass['a']"], ["pass['a']"]]
    else:
        assert acks == [] and bolt.twin.taken >= 2


def test_a_task_calls_in_time_also_if_it_is_never_idle(tmp_path):
    worker = Worker(Count, tmp_path, pacing=Pacing(practice=3), **BOLT)
    kinds, until = [], time.monotonic() + 10
    while kinds.count("call") < 3 and time.monotonic() < until:
        worker.tuple("pass", 3, ["a"])
        kinds += [values[0] for values in emitted(worker.beat(), "marker")]
        time.sleep(0.01)
    worker.close()
    assert kinds.count("call") == 3


@pytest.fixture
def two_upstream(tmp_path, twin):
    worker = Worker(Count, tmp_path, twin, conf={"leeward.replicas": {"pass": 2}}, **BOLT)
    yield worker
    worker.close()


def test_pulse_waits_for_all_that_work_upstream_and_cuts_exactly(two_upstream):
    two_upstream.beat()
    two_upstream.marker("pass", 3, "pulse", 1, body={"t": 9})
    two_upstream.tuple("pass", 3, ["late"])
    two_upstream.tuple("pass", 4, ["early"])
    said = two_upstream.beat()
    assert emitted(said) == [["early", 1]]
    two_upstream.marker("pass", 4, "pulse", 1, body={"t": 9})
    said = two_upstream.beat()
    assert emitted(said) == [["pulse", 1], ["late", 1]]
    assert json.loads(emitted(said, "marker")[0][4]) == {"t": 9, "seen": 5}


def test_no_pulse_is_expected_of_a_warm_task_and_its_other_markers_wait(bolt):
    bolt.beat()
    cut = ControlRecord(checkpoint=1, tables=TABLES).to_json()
    bolt.marker("pass", 4, "checkpoint", 1, body=cut)
    bolt.marker("pass", 3, "pulse", 1, body={"t": 9})
    said = bolt.beat()
    assert [values[:2] for values in emitted(said, "marker")[-1:]] == [["pulse", 1]]
    bolt.marker("pass", 3, "checkpoint", 1, body=cut)
    assert [values[:2] for values in emitted(bolt.beat(), "marker")] == [["checkpoint", 1]]


def test_pause_exports_buffers_and_resumes_in_order(bolt):
    bolt.tuple("pass", 3, ["a"])
    bolt.beat()
    pause = ControlRecord(epoch=1, phase=Phase.PAUSE, cut=1, tables=TABLES | {"count": even_table([5, 6])}, stays=(5,))
    bolt.marker("pass", 3, "pause", 1, body=pause.to_json())
    assert not emitted(bolt.beat(), "marker")
    bolt.marker("pass", 4, "pause", 1, body=pause.to_json())
    said = bolt.beat()
    assert emitted(said, "marker")[0][:2] == ["pause", 1]
    ((_, cut, blobs, swap, barrier, error),) = [entry for entry in bolt.link.done if entry[0] == "export"]
    assert bolt.link.done[-2] == ("look",)  # it may have put off to read what is written next
    assert (cut, barrier, error) == (1, "cut-1", "") and len(blobs) + len(swap) == 1
    bolt.tuple("pass", 3, ["b"])
    assert emitted(bolt.beat()) == []
    bolt.link.show(replace(pause, phase=Phase.RUN, epoch=2, tables=TABLES))  # aborted: on as before
    bolt.beat()
    bolt.tuple("pass", 3, ["a"])
    said = bolt.beat()
    assert ["a", 2] in emitted(said) and bolt.component.state["b"] == 1


def test_restore_takes_the_groups_of_the_new_table(bolt):
    bolt.beat()
    restore = ControlRecord(epoch=3, phase=Phase.RESTORE, base=3, cut=2, tables=TABLES | {"count": even_table([6, 5])})
    bolt.link.snapshots = {group: {} for group in range(128)}
    bolt.link.show(restore)
    bolt.beat()
    bolt.tuple("pass", 3, ["old"])  # of the epoch before: dropped
    bolt.marker("pass", 3, "probe", 3)
    bolt.marker("pass", 4, "probe", 3)
    bolt.beat()
    assert ("load", 2, list(range(1, 128, 2))) in bolt.link.done
    assert ("report", "ready-3", "") in bolt.link.done
    assert bolt.component.state.groups == tuple(range(1, 128, 2))
    bolt.link.show(restore.with_phase(Phase.RUN))
    bolt.beat()
    assert bolt.component._protocol.open and len(bolt.component.state) == 0


def test_missing_tuples_ask_for_a_reset(bolt):
    bolt.beat()
    bolt.marker("pass", 3, "pulse", 1, counts="5:0,6:0", body={})
    bolt.tuple("pass", 3, ["a"])
    bolt.marker("pass", 3, "pulse", 2, counts="5:3,6:0", body={})
    bolt.beat()
    assert [entry for entry in bolt.link.done if entry[0] == "recover"] == [
        ("recover", 0, "task 3 sent 3 tuples and markers to task 5 before pulse 2, 2 came", False)
    ]


def test_tuples_that_are_lost_together_with_the_marker_behind_them_are_missed(bolt):
    bolt.beat()
    bolt.marker("pass", 3, "pulse", 1, counts="5:0,6:0", body={})
    bolt.marker("pass", 3, "pulse", 3, counts="5:4,6:0", body={})  # two tuples and pulse 2 did not come
    bolt.beat()
    assert [entry[2] for entry in bolt.link.done if entry[0] == "recover"] == [
        "task 3 sent 4 tuples and markers to task 5 before pulse 3, 1 came"
    ]


def test_spout_pauses_when_told_and_keeps_its_offset(tmp_path, twin):
    spout = Worker(
        Source,
        tmp_path,
        twin,
        **{
            "taskid": 1,
            "componentid": "source",
            "task->component": {"1": "source", "2": "count"},
            "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
        },
    )
    tables = {"source": even_table([1]), "count": even_table([2])}
    spout.next()
    said = spout.next() + spout.next() + spout.next()
    assert len(emitted(said)) >= 2 and any(entry[0] == "pulse" for entry in emitted(said, "marker"))
    spout.link.show(ControlRecord(epoch=1, phase=Phase.PAUSE, cut=1, tables=tables))
    said = spout.next() + spout.next()
    assert [entry[:2] for entry in emitted(said, "marker") if entry[0] == "pause"] == [["pause", 1]]
    assert emitted(spout.next()) == []
    assert any(entry[0] == "export" for entry in spout.link.done)
    spout.close()


def test_what_cannot_travel_is_reported_and_the_task_goes_on(bolt):
    bolt.beat()
    assert bolt.component.emit(["k", {1, 2}]) is None
    said = bolt.beat()
    (error,) = [message["msg"] for message in said if message.get("command") == "error"]
    assert "count (task 5), stream 'default': field 1: {1, 2} of type set cannot travel" in error
    assert not emitted(said) and bolt.component.counters["unfit"] == 1


def test_unsnapshotable_state_is_reported_with_key_and_type(bolt):
    bolt.beat()
    bolt.component.state["bad"] = {1, 2}
    pause = ControlRecord(epoch=1, phase=Phase.PAUSE, cut=1, tables=TABLES)
    for task in (3, 4):
        bolt.marker("pass", task, "pause", 1, body=pause.to_json())
    bolt.beat()
    ((_, barrier, error),) = [entry for entry in bolt.link.done if entry[0] == "report"]
    assert barrier == "cut-1" and "'bad'" in error and "set" in error


def test_specs_carry_the_marker_stream():
    source, passing = Source.spec(name="source"), None
    passing = Pass.spec(name="passing", inputs={source: balanced()}, par=2)
    count = Count.spec(name="count", inputs={passing: keyed("key")}, par=3)
    assert {stream.streamId for stream in count.inputs} == {"default", "marker"}
    assert sorted(count.common.streams) == ["default", "marker"]
    assert json.loads(count.common.json_conf)["leeward.kind"] == "stateful"


JAVA = r"JavaSpout com\.example\.Words, which sends no markers, .* cannot move\. Write it in Python, derived from"
STOCK = r"takes stock, which sends no markers.* cannot move\. Derive Stock from"
MARKERS = Stream(["kind", "epoch", "tables", "counts", "body"], name="marker")


class Stock(Spout):
    outputs = ["key"]


def java_spout(outputs):
    return JavaSpout.spec(full_class_name="com.example.Words", args_list=[], outputs=outputs)


def java_bolt():
    more = {"outputs": ["key"], "inputs": [Stock.spec(name="stock")]}
    return JavaBolt.spec(full_class_name="com.example.Words", args_list=[], **more)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Pass.spec(inputs=None), "Pass has no input"),
        (lambda: Pass.spec(inputs={Source.spec(name="s"): Source}), "Pass takes s by a type"),
        (lambda: keyed(), "names 0 fields"),
        (lambda: Count.spec(inputs={java_spout(["key"]): keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_spout(["key"])["default"]: keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_spout([Stream(["key"]), MARKERS]): keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_bolt(): keyed("key")}), JAVA.replace("JavaSpout", "JavaBolt")),
        (lambda: Count.spec(inputs={Stock.spec(name="stock"): keyed("key")}), STOCK),
    ],
)
def test_bad_specs_are_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


class Careful(ElasticBolt):
    """Emits in every way that streamparse knows."""

    outputs = ["key"]

    def process(self, tup):
        assert tup.values.key == tup.values[0] and (tup.component, tup.stream, tup.task) == ("pass", "default", 3)
        self.emit(["tuple"], anchors=[tup])
        self.emit(("a tuple",))
        self.emit(["direct"], direct_task=7)
        self.emit(["ids"], need_task_ids=True)


def test_every_way_to_emit(tmp_path, twin):
    worker = Worker(Careful, tmp_path, twin, **BOLT)
    worker.tuple("pass", 3, ["a"])
    said = []
    while not (said and said[-1].get("need_task_ids")):
        said.append(worker._next_message())
    if twin:
        os.write(worker._to_child, frame(-2, [7]))
    else:
        worker.send([7])
    assert not emitted(worker.beat())
    said = [m for m in said if m.get("command") == "emit" and "stream" not in m]
    assert [m["tuple"] for m in said] == [["tuple"], ["a tuple"], ["direct"], ["ids"]]
    assert [m.get("task") or 0 for m in said] == [0, 0, 7, 0]
    assert [m["need_task_ids"] for m in said] == [False, False, False, True]
    worker.close()


class Asking(ElasticBolt):
    outputs = ["key"]

    def process(self, tup):
        self.emit([tup.values.key], need_task_ids=True)


def test_what_a_record_brings_while_user_code_waits_holds_for_the_next_tuple(tmp_path):
    worker = Worker(Asking, tmp_path, Twin(ids=False), **BOLT)
    worker.beat()
    os.write(worker._to_child, b"".join(worker.twin.tuple("", "pass", "default", 3, [key]) for key in "abc"))
    while not emitted([worker._next_message()]):
        pass
    worker.link.show(ControlRecord(epoch=3, phase=Phase.RESTORE, base=3, tables=TABLES))
    time.sleep(0.1)
    assert worker.component._protocol.record.epoch != 3, "its tuple is not done"
    os.write(worker._to_child, frame(-2, [7]))
    assert not emitted(worker.beat()), "the others are of an epoch that is over"
    worker.close()


def test_what_comes_of_input_that_was_waited_for_leaves_at_once_but_together(tmp_path):
    pacing = replace(PACING, late_s=0.1)  # more than a busy machine takes for three tuples
    worker = Worker(Pass, tmp_path, Twin(ids=False), pacing=pacing, **BOLT)
    worker.beat()
    time.sleep(0.15)
    os.write(worker._to_child, b"".join(worker.twin.tuple("", "pass", "default", 3, [key]) for key in "abc"))
    data = worker._reader.read(65536)
    assert data.count(b"\xc1LW\x01") == 1 and emitted(worker.twin.messages(data)) == [["a"], ["b"], ["c"]]
    worker.close()


class Failing(ElasticBolt):
    outputs = ["key"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.key == "bad":
            raise ValueError("of the user")
        self.emit([tup.values.key])


def test_after_an_exception_that_is_let_pass_the_rest_of_the_batch_goes_on(tmp_path, twin):
    worker = Worker(Failing, tmp_path, twin, **BOLT)
    worker.beat()
    for key in ("a", "bad", "b"):
        worker.tuple("pass", 3, [key])
    said = worker.beat() + worker.beat()  # pystorm sends a sync with the error
    assert emitted(said) == [["a"], ["b"]]
    (error,) = [m["msg"] for m in said if m.get("command") == "error"]
    assert "ValueError" in error and "'bad'" in error
    worker.close()


def test_nothing_that_follows_a_failed_tuple_is_anchored_to_it(tmp_path):
    worker = Worker(Failing, tmp_path, Twin(ids=True), **BOLT)
    worker.beat()
    worker.tuple("pass", 3, ["bad"])
    said = worker.beat() + worker.beat()
    assert [m["id"] for m in said if m.get("command") == "fail"] == ["pass['bad']"]
    worker.marker("pass", 3, "pulse", 1, body={"t": 9})
    markers = [m for m in worker.beat() + worker.beat() if m.get("stream") == "marker"]
    assert [m["tuple"][:2] for m in markers] == [["pulse", 1]] and not markers[0]["anchors"]
    worker.close()


class Resuming(ElasticBolt):
    outputs = ["key"]
    exit_on_exception = False

    def committed(self, cut):
        raise ValueError("of the user")

    def process(self, tup):
        self.emit([tup.values.key])


def test_an_exception_that_no_tuple_has_brought_fails_no_tuple_and_is_reported(tmp_path):
    worker = Worker(Resuming, tmp_path, Twin(ids=True), **BOLT)
    worker.beat()
    worker.tuple("pass", 3, ["a"])
    worker.beat()
    worker.component._post(lambda: worker.component.committed(1))
    said = worker.beat() + worker.beat()
    assert not [m for m in said if m.get("command") == "fail"]
    assert any("of the user" in m["msg"] for m in said if m.get("command") == "error")
    worker.close()


class Burst(StatefulSpout):
    outputs = ["n"]

    def next_tuple(self):
        n = self.state["n"] = self.state.get("n", 0) + 1
        if n <= 40:
            self.emit([n])


def test_a_spout_that_emits_is_called_again_at_once_unless_storm_counts_its_tuples(tmp_path, twin):
    context = {
        "taskid": 1,
        "componentid": "source",
        "task->component": {"1": "source", "2": "count"},
        "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
    }
    spout = Worker(Burst, tmp_path, twin, **context)
    sent = [len(emitted(spout.next())) for _ in range(60)]
    if spout.component.serializer.form.ids:
        assert max(sent) == 1
    else:
        assert sum(sent) == 40 and max(sent) > 1
    spout.close()


class Waiting(StatefulSpout):
    outputs = ["n"]
    gate = threading.Event()

    def next_tuple(self):
        n = self.state["n"] = self.state.get("n", 0) + 1
        if n < 3:
            self.emit([n])
        else:
            self.gate.wait(30)


def test_what_a_spout_has_emitted_does_not_wait_for_its_next_call(tmp_path):
    context = {
        "taskid": 1,
        "componentid": "source",
        "task->component": {"1": "source", "2": "count"},
        "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
    }
    spout = Worker(Waiting, tmp_path, Twin(ids=False), **context)
    said = []
    for _ in range(3):  # by the third at the latest it runs, and waits at the gate
        spout.command("next")
    while len(emitted(said)) < 2:
        said.append(spout._next_message())
    assert emitted(said) == [[1], [2]]
    spout.component.gate.set()
    spout.close()


def test_an_idle_spout_wakes_no_other_thread(tmp_path):
    context = {
        "taskid": 1,
        "componentid": "source",
        "task->component": {"1": "source", "2": "count"},
        "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
    }
    spout = Worker(Burst, tmp_path, Twin(ids=False), **context)
    assert sum(len(emitted(spout.next())) for _ in range(60)) == 40
    pipe, woken = spout.component.serializer, []
    time.sleep(0.05)
    assert pipe._has_thread, "there is one that sees to what was emitted"
    pipe._late.set = lambda: woken.append(1)
    for _ in range(5):
        spout.next()
    assert not woken
    spout.close()


# --- handover


class FakeSending:
    """Keeps what it was given."""

    has_room = True

    def __init__(self, epoch, sent):
        self.epoch, self.sent, self.parts, self.parcels = epoch, sent, [], {}
        self.told = None

    def reach(self, targets):
        self.reached = targets

    def put(self, parts):
        self.parts.append(parts)

    def when_nearly_taken(self, call):
        self.told = call

    def finish(self, parcels):
        self.parcels = {
            task: {group: (dict(items), list(gone)) for group, (items, gone) in groups.items()}
            for task, groups in parcels.items()
        }


class FakeCourier:
    """Keeps what it was asked to do; the test answers."""

    def __init__(self, *_):
        self.asked = []

    def addresses(self):
        return {}

    def warm(self):
        self.asked.append(("warm",))

    def send(self, epoch, sent, failed):
        sending = FakeSending(epoch, sent)
        self.asked.append(("send", sending))
        return sending

    def receive(self, epoch, groups, arrived, failed):
        self.asked.append(("receive", epoch, set(groups), arrived, failed))

    def cancel(self):
        self.asked.append(("cancel",))


def count_of_two(tmp_path, twin):
    return Worker(Count, tmp_path, twin, courier=FakeCourier, conf={"leeward.replicas": {"count": 2}}, **BOLT)


@pytest.fixture(params=[True, False], ids=["with ids", "without"])
def keyed_bolt(tmp_path, request):
    worker = count_of_two(tmp_path, Twin(ids=request.param, keyed={("pass", "default"): [0]}))
    yield worker
    worker.close()


def asked(worker, what):
    """The one thing of its kind that the courier was asked for."""
    ((_, *details),) = [entry for entry in worker.component._handovers._courier.asked if entry[0] == what]
    return details


def begin_handover(worker, count_table, *, before=False):
    """Markers of handover 1 on both channels; what the bolt said, with `before` also what it was about to say."""
    record = ControlRecord(epoch=1, handover=1, tables=TABLES | {"count": count_table})
    said = worker.beat()
    for task in (3, 4):
        worker.marker("pass", task, "route", 1, body=record.to_json())
    return (said if before else []) + worker.beat()


def test_a_lost_group_leaves_the_state_at_once_and_its_receiver_is_named(keyed_bolt):
    table = even_table([5, 6])
    mine = next(key for key in "abcdefgh" if table[key_group(key)] == 5)
    keyed_bolt.tuple("pass", 3, [mine])
    said = begin_handover(keyed_bolt, even_table([6]))
    assert [entry[:2] for entry in emitted(said, "marker")] == [["route", 1]]
    assert emitted(said, "marker")[0][2] == tables_text({"sink": TABLES["sink"]})
    sending = asked(keyed_bolt, "send")[0]
    assert sending.epoch == 1 and sending.parcels[6][key_group(mine)] == ({mine: 1}, [])
    assert keyed_bolt.component.state.groups == ()
    assert not [entry for entry in keyed_bolt.link.done if entry[0] == "report"]
    keyed_bolt.link.post(sending.sent)
    keyed_bolt.beat()
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_a_tuple_waits_for_its_group_and_no_other_does(keyed_bolt):
    table = even_table([5, 6])
    theirs, mine = (next(key for key in "abcdefgh" if table[key_group(key)] == task) for task in (6, 5))
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    assert groups == set(range(1, 128, 2))
    for key in (theirs, mine, theirs):
        keyed_bolt.tuple("pass", 3, [key])
    keyed_bolt.marker("pass", 3, "pulse", 1, body={})
    keyed_bolt.marker("pass", 4, "pulse", 1, body={})
    assert emitted(keyed_bolt.beat()) == [[mine, 1]]
    keyed_bolt.link.post(lambda: arrived({key_group(theirs): {theirs: 7}}, 10))
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [[theirs, 8], [theirs, 9]]
    keyed_bolt.link.post(lambda: arrived({g: {} for g in groups - {key_group(theirs)}}, 10))
    said = keyed_bolt.beat() + keyed_bolt.beat()
    assert ["pulse", 1] in emitted(said)
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_where_the_worker_tells_no_groups_tuples_wait_until_all_are_in(tmp_path):
    """As with Storm's own serializer."""
    bolt = count_of_two(tmp_path, None)
    mine = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    begin_handover(bolt, even_table([5]))
    _, groups, arrived, _ = asked(bolt, "receive")
    bolt.tuple("pass", 3, [mine])
    assert emitted(bolt.beat()) == []
    bolt.link.post(lambda: arrived({group: {} for group in groups}, 10))
    assert emitted(bolt.beat() + bolt.beat()) == [[mine, 1]]
    assert json.loads(bolt.link.metrics())["groups"] == {}
    bolt.close()


def test_the_state_of_the_tuples_own_key_is_found_without_hashing_it_again(keyed_bolt, monkeypatch):
    keyed_bolt.tuple("pass", 3, [key := next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)])
    assert emitted(keyed_bolt.beat()) == [[key, 1]]

    def refuse(key):
        raise AssertionError(f"{key} was hashed")

    monkeypatch.setattr(keyed_state, "key_group", refuse)
    keyed_bolt.tuple("pass", 4, [key])
    assert emitted(keyed_bolt.beat()) == [[key, 2]]


def test_a_tuple_has_waited_when_its_group_is_in_and_not_until_all_that_waited_is_worked_off(keyed_bolt, monkeypatch):
    reports, took_s, count = [], [], keyed_bolt.component.process
    keyed_bolt.beat()
    around = replace(keyed_bolt.component._task.around, clock=lambda: 100.0 + sum(took_s))
    monkeypatch.setattr(keyed_bolt.component._handovers, "_around", around)
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: took_s.append(50.0) or count(tup))
    theirs = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 6)
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    monkeypatch.setattr(keyed_bolt.link, "report", lambda barrier, told, after_s: reports.append(told))
    for _ in range(3):
        keyed_bolt.tuple("pass", 3, [theirs])
    keyed_bolt.beat()
    took_s.append(2.0)
    keyed_bolt.link.post(lambda: arrived({group: {} for group in groups}, 10))
    assert len(emitted(keyed_bolt.beat() + keyed_bolt.beat())) == 3
    assert reports[-1].waited == 2.0


def test_tuples_that_waited_for_the_last_marker_come_before_the_report_of_it(keyed_bolt, monkeypatch):
    deeds, count = [], keyed_bolt.component.process
    keyed_bolt.beat()
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: deeds.append("tuple") or count(tup))
    monkeypatch.setattr(keyed_bolt.link, "report", lambda barrier, told, after_s: deeds.append(barrier))
    mine = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    tables = TABLES | {"pass": even_table([3, 4]), "count": even_table([5, 6])}
    for number in (1, 2):
        body = ControlRecord(epoch=number, handover=number, tables=tables).to_json()
        keyed_bolt.marker("pass", 3, "route", number, body=body)
        keyed_bolt.tuple("pass", 3, [mine])
        keyed_bolt.marker("pass", 4, "route", number, body=body)
        keyed_bolt.beat()
    assert deeds == ["handover-1", "tuple", "tuple", "handover-2"]  # task 4 had no work before the first one


def test_what_key_groups_get_is_published(keyed_bolt):
    key = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    for _ in range(20):
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    assert set(metrics["groups"]) == {str(key_group(key))} and metrics["looked_at"] > 5


def test_sojourn_times_are_published(keyed_bolt, monkeypatch):
    key, count = (
        next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5),
        keyed_bolt.component.process,
    )
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: time.sleep(0.002) or count(tup))
    for _ in range(20):
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    assert 0 < metrics["sojourns"] < metrics["processed"] == 20, "of some reads"
    assert metrics["sojourn_s"] >= 0.002 * metrics["sojourns"]


def test_reads_that_come_in_a_rhythm_are_timed_at_each_of_its_beats(keyed_bolt, monkeypatch):
    """Of the eight reads of a pulse one has all the work: timing each eighth read would show it always or never."""
    slow_s, count = 0.004, keyed_bolt.component.process
    key = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    beats = itertools.count()
    monkeypatch.setattr(
        keyed_bolt.component, "process", lambda tup: time.sleep(slow_s * (next(beats) % 8 == 3)) or count(tup)
    )
    for _ in range(320):
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    timed, slow = metrics["sojourns"], metrics["sojourn_s"] // slow_s
    assert 20 <= timed <= 80 and 1 <= slow <= timed // 2


def test_a_step_of_the_wall_clock_does_not_reach_the_rates(keyed_bolt, monkeypatch):
    """Rates are counts divided by the time between two lines of metrics."""
    wall = time.time
    keyed_bolt.beat()
    before = json.loads(keyed_bolt.link.metrics())["t"]
    assert before == pytest.approx(wall(), abs=60.0)
    monkeypatch.setattr(time, "time", lambda: wall() - 3600.0)
    assert 0.0 < json.loads(keyed_bolt.link.metrics())["t"] - before < 60.0


def test_a_tick_waits_for_all_groups_and_several_become_one(keyed_bolt):
    table = even_table([5, 6])
    theirs = next(key for key in "abcdefgh" if table[key_group(key)] == 6)
    keyed_bolt.tuple("__system", -1, [1], stream="__tick")
    assert emitted(keyed_bolt.beat()) == [["tick", 0]]
    begin_handover(keyed_bolt, even_table([5]))
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    for _ in range(2):
        keyed_bolt.tuple("__system", -1, [1], stream="__tick")
    assert emitted(keyed_bolt.beat()) == []
    keyed_bolt.link.post(lambda: arrived({g: {theirs: 7} if g == key_group(theirs) else {} for g in groups}, 10))
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [["tick", 7]]


def test_what_is_copied_ahead_is_followed_by_what_changed(keyed_bolt):
    tables = TABLES | {"count": even_table([5, 6])}
    first, second = [key for key in "abcdefgh" if tables["count"][key_group(key)] == 5][:2]
    keyed_bolt.tuple("pass", 3, [first])
    keyed_bolt.beat()
    gone = {"count": even_table([6])}
    keyed_bolt.link.show(ControlRecord(tables=tables, ahead=1, coming=TABLES | gone))
    (sending,) = copied_ahead(keyed_bolt)
    assert sending.reached == [6] and sending.parts
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done
    sending.told()
    keyed_bolt.beat()
    assert ("report", "ahead-1", "") in keyed_bolt.link.done
    keyed_bolt.component._handovers._due = float("inf")
    keyed_bolt.tuple("pass", 3, [second])
    begin_handover(keyed_bolt, even_table([6]))
    ahead = {key for groups in sending.parcels.values() for items, _ in groups.values() for key in items}
    assert ahead == {second} and len(sending.parcels[6]) == 64
    assert len([entry for entry in keyed_bolt.component._handovers._courier.asked if entry[0] == "send"]) == 1


def test_who_has_something_to_give_looks_at_once_what_it_is_told(keyed_bolt, monkeypatch):
    keyed_bolt.beat()
    monkeypatch.setattr(type(keyed_bolt.component._task), "turn_s", 0.04)
    assert keyed_bolt.link.leisure() == 0.0
    begin_handover(keyed_bolt, even_table([6]))
    assert not keyed_bolt.component.state.groups and keyed_bolt.link.leisure() >= 0.25, "it is called"
    keyed_bolt.component._direct = False
    assert keyed_bolt.link.leisure() == 0.02, "nobody can call it"


def test_who_takes_part_through_markers_alone_looks_when_it_is_over(keyed_bolt, monkeypatch):
    keyed_bolt.beat()
    monkeypatch.setattr(keyed_bolt.component, "kind", "stateless")
    assert keyed_bolt.component._until_told() >= 0.25


def copied_ahead(keyed_bolt):
    for _ in range(200):
        keyed_bolt.beat()
        if any(sending.told for sending in asked(keyed_bolt, "send")):
            break
    return asked(keyed_bolt, "send")


def test_a_copy_that_was_given_up_is_not_reported(keyed_bolt):
    tables = TABLES | {"count": even_table([5, 6])}
    keyed_bolt.beat()
    keyed_bolt.link.show(ControlRecord(tables=tables, ahead=1, coming=TABLES | {"count": even_table([6])}))
    (sending,) = copied_ahead(keyed_bolt)
    keyed_bolt.link.show(ControlRecord(tables=tables))
    keyed_bolt.beat()
    sending.told()
    keyed_bolt.beat()
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done


def test_who_gives_tuples_but_has_no_state_has_copied_it_all(bolt, monkeypatch):
    """Else a handover in which a stateless bolt is scaled beside another one would never begin."""
    bolt.beat()
    monkeypatch.setattr(bolt.component._task.shell, "kind", "stateless")
    monkeypatch.setattr(bolt.component._protocol, "_stateful", False)
    bolt.link.show(ControlRecord(tables=TABLES, ahead=1, coming=TABLES | {"count": even_table([5, 6])}))
    bolt.beat()
    bolt.beat()
    assert ("report", "ahead-1", "") in bolt.link.done


def test_groups_that_are_whole_before_the_marker_wait_for_it(keyed_bolt):
    coming = TABLES | {"count": even_table([5])}
    before = TABLES | {"count": even_table([5, 6])}
    theirs = next(key for key in "abcdefgh" if before["count"][key_group(key)] == 6)
    keyed_bolt.beat()
    keyed_bolt.link.show(ControlRecord(tables=before, ahead=1, coming=coming))
    keyed_bolt.beat()
    _, groups, arrived, _ = asked(keyed_bolt, "receive")
    assert ("report", "ahead-1", "") not in keyed_bolt.link.done, "who gives knows whether it is taken"
    keyed_bolt.link.post(lambda: arrived({g: {theirs: 4} if g == key_group(theirs) else {} for g in groups}, 9))
    keyed_bolt.beat()
    assert len(keyed_bolt.component.state.groups) == 64
    begin_handover(keyed_bolt, even_table([5]))
    keyed_bolt.tuple("pass", 3, [theirs])
    assert emitted(keyed_bolt.beat() + keyed_bolt.beat()) == [[theirs, 5]]
    assert ("report", "handover-1", "") in keyed_bolt.link.done


def test_storm_is_told_of_our_bolt_and_streamparse_of_a_shell_component():
    passing = Pass.spec(name="passing", inputs={Source.spec(name="source"): balanced()})
    passing.component_object.shell.execution_command = "/venv/bin/streamparse_run"  # as `sparse submit` does
    told = deserialize(Bolt(), serialize(Bolt(bolt_object=passing.component_object, common=passing.common)))
    assert told.bolt_object.shell is None
    java = told.bolt_object.java_object
    assert java.full_class_name == "leeward.multilang.PipeBolt"
    assert [argument.string_arg for argument in java.args_list] == [
        "/venv/bin/streamparse_run",
        f"{Pass.__module__}.Pass",
    ]


def test_storm_receives_our_spout_and_streamparse_a_shell_component():
    source = Source.spec(name="source", config={"a": 1})
    source.component_object.shell.execution_command = "/venv/bin/streamparse_run"  # as `sparse submit` does
    spout = deserialize(SpoutSpec(), serialize(SpoutSpec(spout_object=source.component_object, common=source.common)))
    assert spout.spout_object.shell is None
    java = spout.spout_object.java_object
    assert java.full_class_name == "leeward.multilang.PipeSpout"
    assert [argument.string_arg for argument in java.args_list] == [
        "/venv/bin/streamparse_run",
        f"{Source.__module__}.Source",
    ]
    conf = json.loads(spout.common.json_conf)
    assert (conf["a"], conf["leeward.kind"]) == (1, "source")
