"""An exception of the user's code that is let pass, in the middle of what a task carries out: the rest goes on."""

from __future__ import annotations

import os

import pytest

from leeward.core.control import ControlRecord, Phase
from leeward.core.keys import key_group
from leeward.core.table import even_table
from leeward.runtime import StatefulBolt
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import BOLT, TABLES, Failing, FakeCourier, Worker, asked, begin_handover, emitted


class Unprepared(Failing):
    """The first of its cuts cannot be prepared."""

    def before_checkpoint(self, cut):
        if cut == 1:
            raise OSError("of the user")


class Counting(StatefulBolt):
    outputs = ["key", "count"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.key == "bad" and not self.counters["bad"]:
            self.counters["bad"] += 1
            raise ValueError("of the user")
        self.state[tup.values.key] = self.state.get(tup.values.key, 0) + 1
        self.emit([tup.values.key, self.state[tup.values.key]])


def errors(messages):
    return [m["msg"] for m in messages if m.get("command") == "error"]


def test_tuples_that_waited_for_a_marker_are_all_processed_and_in_order(tmp_path, twin):
    """Those behind the one that raised were lost: a count was wrong, and the stream went back to a cut."""
    worker = Worker(Failing, tmp_path, twin, conf={"leeward.replicas": {"pass": 2}}, **BOLT)
    worker.beat()
    worker.marker("pass", 3, "pulse", 1, body={})
    for key in ("a", "bad", "b"):
        worker.tuple("pass", 3, [key])
    assert emitted(worker.beat()) == []
    worker.marker("pass", 4, "pulse", 1, body={})
    worker.tuple("pass", 3, ["c"])
    said = worker.beat() + worker.beat()  # pystorm sends a sync with the error
    assert emitted(said) == [["a"], ["b"], ["c"]] and len(errors(said)) == 1
    worker.close()


class Posting(Failing):
    """The first tuple leaves work that raises, as a hook would."""

    def process(self, tup):
        if tup.values.key == "a":
            self._post(self.fail_later)
        super().process(tup)

    def fail_later(self):
        raise OSError("of a hook")


@pytest.mark.parametrize("ids", [True, False])
def test_an_exception_of_posted_work_blames_no_tuple_and_counts_none_twice(tmp_path, ids):
    worker = Worker(Posting, tmp_path, Twin(ids=ids), **BOLT)
    worker.beat()
    before = worker.twin.taken
    os.write(worker._to_child, b"".join(worker.twin.tuple(key, "pass", "default", 3, [key]) for key in "ab"))
    said = worker.beat() + worker.beat()
    assert emitted(said) == [["a"], ["b"]] and not [m for m in said if m.get("command") == "fail"]
    (error,) = errors(said)
    assert "of a hook" in error and "Tuple" not in error.splitlines()[0]
    assert worker.twin.taken <= before + 2 + 2, "two tuples, and a heartbeat or two"
    worker.close()


@pytest.mark.parametrize("ids", [True, False])
def test_a_pulse_behind_the_tuple_that_raised_is_sent_on(tmp_path, ids):
    """All downstream waited for it."""
    twin = Twin(ids=ids, keyed={("pass", "default"): [0]})
    worker = Worker(Counting, tmp_path, twin, courier=FakeCourier, conf={"leeward.replicas": {"count": 2}}, **BOLT)
    begin_handover(worker, even_table([5]))
    _, receives, arrived, _ = asked(worker, "receive")
    worker.tuple("pass", 3, ["bad"])
    for task in (3, 4):
        worker.marker("pass", task, "pulse", 1, body={})
    assert emitted(worker.beat(), "marker") == []
    worker.link.post(lambda: arrived({group: {} for group in receives}, 10))
    said = worker.beat() + worker.beat()
    assert [values[:2] for values in emitted(said, "marker")] == [["pulse", 1]] and len(errors(said)) == 1
    worker.close()


@pytest.mark.parametrize("ids", [True, False])
def test_tuples_that_waited_for_their_group_are_all_processed_and_so_is_the_one_just_read(tmp_path, ids):
    """The group arrives between two tuples: the tuple that was read already was lost with the rest."""
    table = even_table([5, 6])
    theirs = "bad"
    assert table[key_group(theirs)] == 6
    twin = Twin(ids=ids, keyed={("pass", "default"): [0]})
    worker = Worker(Counting, tmp_path, twin, courier=FakeCourier, conf={"leeward.replicas": {"count": 2}}, **BOLT)
    begin_handover(worker, even_table([5]))
    _, _, arrived, _ = asked(worker, "receive")
    for _ in range(3):
        worker.tuple("pass", 3, [theirs])
    assert emitted(worker.beat()) == []
    worker.link.post(lambda: arrived({key_group(theirs): {theirs: 7}}, 10))
    worker.tuple("pass", 3, [theirs])
    said = worker.beat() + worker.beat()
    assert emitted(said) == [[theirs, 8], [theirs, 9], [theirs, 10]] and len(errors(said)) == 1
    worker.close()


def test_a_cut_that_the_users_code_could_not_prepare_fails_and_the_next_one_does_not(tmp_path, twin):
    """It was neither exported nor reported, so the deadline of the checkpoint had to pass; and its marker was lost."""
    worker = Worker(Unprepared, tmp_path, twin, **BOLT)
    worker.beat()
    for number in (1, 2):
        record = ControlRecord(checkpoint=number, tables=TABLES).to_json()
        for task in (3, 4):
            worker.marker("pass", task, "checkpoint", number, body=record)
    said = worker.beat() + worker.beat()
    assert [values[:2] for values in emitted(said, "marker")][-2:] == [["checkpoint", 1], ["checkpoint", 2]]
    assert ("report", "cut-1", "OSError: of the user") in worker.link.done
    assert [entry[1] for entry in worker.link.done if entry[0] == "export"] == [2]
    worker.close()


def test_a_pause_that_the_users_code_could_not_prepare_is_told_and_ends_with_the_next_record(tmp_path, twin):
    worker = Worker(Unprepared, tmp_path, twin, **BOLT)
    worker.beat()
    pause = ControlRecord(epoch=1, phase=Phase.PAUSE, cut=1, tables=TABLES)
    for task in (3, 4):
        worker.marker("pass", task, "pause", 1, body=pause.to_json())
    worker.tuple("pass", 3, ["a"])
    said = worker.beat() + worker.beat()
    assert emitted(said) == [] and ("report", "cut-1", "OSError: of the user") in worker.link.done
    worker.link.show(ControlRecord(epoch=2, tables=TABLES))
    assert emitted(worker.beat() + worker.beat()) == [["a"]]
    worker.close()
