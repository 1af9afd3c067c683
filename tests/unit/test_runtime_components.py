"""A bolt behind a pipe, as Storm's worker sees it: markers, cuts, and what is lost on the way."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from leeward.core.control import ControlRecord, Phase
from leeward.core.table import even_table
from leeward.runtime.pacing import Pacing
from tests.helpers.task_worker import BOLT, TABLES, Count, Worker, emitted


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


def test_the_first_beat_comes_behind_a_request_for_a_reset(bolt):
    """The service took a task for one that is back, and began a plan, which the task's request ended a moment later."""
    bolt.beat()
    link, beat = bolt.link, bolt.component._beat
    later = ControlRecord(epoch=3, base=3, tables=TABLES)
    link.show(later)
    bolt.beat()
    assert [entry[0] for entry in link.done[-2:]] == ["recover", "soon"] and not beat.begun
    link.jobs[-1]()
    assert beat.begun
    jobs = len(link.jobs)
    link.show(replace(later, epoch=4))
    bolt.beat()
    assert len(link.jobs) == jobs, "it has begun"


def test_tuples_that_are_lost_together_with_the_marker_behind_them_are_missed(bolt):
    bolt.beat()
    bolt.marker("pass", 3, "pulse", 1, counts="5:0,6:0", body={})
    bolt.marker("pass", 3, "pulse", 3, counts="5:4,6:0", body={})  # two tuples and pulse 2 did not come
    bolt.beat()
    assert [entry[2] for entry in bolt.link.done if entry[0] == "recover"] == [
        "task 3 sent 4 tuples and markers to task 5 before pulse 3, 1 came"
    ]


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
