"""User code in the middle of a tuple: it emits in every way, waits for task ids, and raises."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from leeward.core.control import ControlRecord, Phase
from leeward.runtime import ElasticBolt
from tests.helpers.pipe_twin import Twin, frame
from tests.helpers.task_worker import BOLT, PACING, TABLES, Failing, Pass, Worker, emitted


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
