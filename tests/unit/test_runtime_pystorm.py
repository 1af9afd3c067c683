"""pystorm's own behaviours under elastic classes: each is the same, or docs/streamparse.md says why it differs."""

from __future__ import annotations

import re

import pytest
from pystorm.component import Component

from leeward.runtime import ElasticBolt, StatefulSpout
from tests.helpers.doc_blocks import ROOT
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import Worker, emitted, starting

PAGE = ROOT / "docs" / "streamparse.md"


class Passing(ElasticBolt):
    outputs = ("key",)

    def process(self, tup):
        if tup.values.key == "bad":
            raise ValueError("of the user")
        self.emit([tup.values.key])
        if tup.values.key == "mine":
            self.fail(tup)


class Unanchored(Passing):
    auto_anchor = False


class Manual(Passing):
    auto_ack = False


class Lenient(Passing):
    exit_on_exception = False


class Unfailing(Lenient):
    auto_fail = False


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path, beat=True) as start:
        yield start


def after(worker, *keys):
    """Everything that was said after these tuples: pystorm sends a sync with an error, so two more are read."""
    for key in keys:
        worker.tuple("pass", 3, [key])
    return worker.beat() + (worker.beat() if "bad" in keys else [])


def ids(said, command):
    return [message["id"] for message in said if message.get("command") == command]


def test_tuples_are_acked_and_anchored_and_failed_by_hand(start):
    said = after(start(Passing), "a", "mine")
    assert [message["anchors"] for message in said if message.get("command") == "emit"] == [
        ["pass['a']"], ["pass['mine']"],
    ]  # fmt: skip
    assert ids(said, "ack") == ["pass['a']", "pass['mine']"] and ids(said, "fail") == ["pass['mine']"]


def test_auto_anchor_and_auto_ack_can_be_switched_off(start):
    said = after(start(Unanchored), "a")
    assert [message["anchors"] for message in said if message.get("command") == "emit"] == [[]]
    assert ids(after(start(Manual), "a"), "ack") == []


def test_without_ackers_no_ack_and_no_fail_is_sent(start):
    worker = start(Passing, Twin(ids=False))
    said = after(worker, "a", "mine")
    assert emitted(said) == [["a"], ["mine"]] and ids(said, "ack") == ids(said, "fail") == []


@pytest.mark.parametrize(("cls", "failed"), [(Lenient, ["pass['bad']"]), (Unfailing, [])])
def test_an_exception_fails_the_tuple_unless_auto_fail_is_off(start, cls, failed):
    said = after(start(cls), "bad", "a")
    assert ids(said, "fail") == failed and emitted(said) == [["a"]]
    assert ids(said, "ack") == ["pass['a']"]


def test_an_exception_ends_the_process_behind_its_error(start):
    worker = start(Passing)
    codes = []

    def leave(code):
        codes.append(code)
        worker.component.serializer.flush()  # as Elastic._exit does
        raise SystemExit(code)

    worker.component._exit = leave
    worker.tuple("pass", 3, ["bad"])
    said = []
    while "fail" not in [message.get("command") for message in said]:
        said.append(worker._next_message())
    commands = [message["command"] for message in said]
    assert "error" in commands and commands[-1] == "fail"
    worker._thread.join(5)
    assert not worker._thread.is_alive() and codes == [1]


def test_logs_and_metrics_reach_storm_by_their_level(start):
    worker = start(Passing, conf={"pystorm.log.level": "warning"})
    worker.component.logger.info("not this")
    worker.component.logger.warning("this")
    worker.component.log("always", level="error")
    worker.component.report_metric("name", 3)
    said = worker.beat()
    logs = [(message["msg"].rpartition(" - ")[2], message["level"]) for message in said if message["command"] == "log"]
    assert logs == [("this", 3), ("always", 4)]
    assert {"command": "metrics", "name": "name", "params": 3} in said


def test_a_heartbeat_is_answered_behind_the_tuples_before_it(start):
    worker = start(Passing)
    worker.tuple("pass", 3, ["a"])
    worker.tuple("", -1, [], stream="__heartbeat")
    assert emitted(worker.read_until_sync()) == [["a"]]


class Told(StatefulSpout):
    outputs = ("n",)

    def initialize(self, conf, context):
        self.told = []

    def next_tuple(self):
        self.emit([1], tup_id="one")

    def ack(self, tup_id):
        self.told.append(("ack", tup_id))

    def fail(self, tup_id):
        self.told.append(("fail", tup_id))


def test_a_spout_hears_of_its_tuples(tmp_path):
    spout = Worker(
        Told, tmp_path, None, taskid=1, componentid="told",
        **{"task->component": {"1": "told"}, "stream->target->grouping": {}},
    )  # fmt: skip
    while not (sent := [message for message in spout.next() if message.get("command") == "emit"]):
        pass
    assert sent[0]["id"] == "one" and sent[0]["tuple"] == [1]
    for name in ("ack", "fail"):
        spout.command(name, "one")
        spout.read_until_sync()
    assert spout.component.told == [("ack", "one"), ("fail", "one")]
    spout.close()


def test_pystorm_has_no_emit_many_any_more():
    assert not hasattr(Component, "emit_many")


def test_the_page_names_tests_that_exist():
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert len(named) > 20 and named - tests == set()
