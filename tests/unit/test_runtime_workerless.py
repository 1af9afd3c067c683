"""Elastic components in a user's unit tests: without Storm, ZooKeeper and Redis, as for streamparse's components."""

from __future__ import annotations

import json
import logging
from io import BytesIO
from unittest import mock

import pytest
from pystorm.component import StormHandler, Tuple

from leeward.runtime import ElasticBolt, Pulse, StatefulBolt, StatefulSpout

WORD = Tuple(id="7", component="words", stream="default", task=3, values=["dog"])


class Count(StatefulBolt):
    outputs = ("word", "count")

    def initialize(self, conf, context):
        self.step = conf.get("step", 1)

    def resumed(self):
        self.top = max(self.state.values(), default=0)

    def process(self, tup):
        word = tup.values[0]
        self.state[word] = self.state.get(word, 0) + self.step
        self.counters["words"] += 1
        self.emit([word, self.state[word]])

    def process_tick(self, tup):
        self.emit(["words", len(self.state)], stream="ticks")

    def pulse(self, pulse):
        return {"words": len(self.state)}


class Split(ElasticBolt):
    outputs = ("word",)

    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word], need_task_ids=word == "who")


class Numbers(StatefulSpout):
    outputs = ("n",)

    def next_tuple(self):
        self.state["n"] = self.state.get("n", 0) + 1
        self.emit([self.state["n"]])
        self.emit([self.state["n"]], tup_id=str(self.state["n"]))
        self.emit_pulse(self.state["n"])


@pytest.fixture(autouse=True)
def _log():
    before = logging.getLogger().handlers[:]
    yield
    for handler in logging.getLogger().handlers[:]:
        if isinstance(handler, StormHandler) and handler not in before:
            logging.getLogger().removeHandler(handler)


def storm(*messages):
    return BytesIO(b"".join(json.dumps(message).encode() + b"\nend\n" for message in messages))


def sent(output):
    return [json.loads(text) for text in output.getvalue().decode().split("\nend\n") if text]


@pytest.fixture(params=["streams", "defaults", "output alone"])
def count(request):
    options = {
        "streams": {"input_stream": BytesIO(), "output_stream": BytesIO()},
        "defaults": {},
        "output alone": {"output_stream": BytesIO()},
    }
    bolt = Count(**options[request.param], rdb_signal=None)
    bolt.initialize({"step": 2}, {})
    return bolt


def test_user_code_is_called_and_its_emits_are_seen_by_a_mock(count):
    with mock.patch.object(Count, "emit", autospec=True) as emit:
        count.process(WORD)
        count.process(WORD)
        count.process_tick(None)
    assert emit.call_args_list == [
        mock.call(count, ["dog", 2]),
        mock.call(count, ["dog", 4]),
        mock.call(count, ["words", 1], stream="ticks"),
    ]
    assert dict(count.state) == {"dog": 4} and count.counters["words"] == 2
    count.resumed()
    assert count.top == 4 and count.pulse(Pulse(1, {})) == {"words": 1}
    assert (count.fencing_token.base, count.task_id) == (0, None)


def test_messages_are_those_of_pystorm(count):
    with mock.patch.object(Count, "send_message", autospec=True) as send:
        count._current_tups = [WORD]
        count.process(WORD)
        count.emit(("a", 1), stream="other", anchors=[], direct_task=4)
        count.ack(WORD)
        count.fail("8")
    assert [call.args[1] for call in send.call_args_list] == [
        {"command": "emit", "anchors": ["7"], "tuple": ["dog", 2], "need_task_ids": False},
        {"command": "emit", "anchors": [], "tuple": ["a", 1], "stream": "other", "task": 4, "need_task_ids": False},
        {"command": "ack", "id": "7"},
        {"command": "fail", "id": "8"},
    ]


def test_messages_reach_the_output_stream_at_once():
    output = BytesIO()
    bolt = Count(output_stream=output, rdb_signal=None)
    bolt.step = 1
    bolt.process(WORD)
    bolt.log("done")
    assert [message["command"] for message in sent(output)] == ["emit", "log"]


def test_task_ids_are_read_from_the_input_stream():
    bolt = Split(input_stream=storm([9, 11]), output_stream=BytesIO(), rdb_signal=None)
    assert bolt.emit(["x"], need_task_ids=True) == [9, 11]
    with mock.patch.object(Split, "read_task_ids", autospec=True, return_value=[1]):
        assert bolt.emit(["x"], need_task_ids=True) == [1]
    assert bolt.emit(["x"], direct_task=5, need_task_ids=True) == [5]


def test_one_turn_of_the_loop_reads_one_tuple():
    word = {"id": "1", "comp": "words", "stream": "default", "task": 3, "tuple": ["dog cat"]}
    output = BytesIO()
    bolt = Split(input_stream=storm(word), output_stream=output, rdb_signal=None)
    bolt._source_tuple_types = {"words": {}}
    bolt._run()
    assert [message.get("tuple") or message["id"] for message in sent(output)] == [["dog"], ["cat"], "1"]


def test_storms_json_is_played_from_handshake_to_end(tmp_path):
    context = {"taskid": 5, "componentid": "count", "source->stream->fields": {"words": {"default": ["word"]}}}
    tick = {"id": "t", "comp": "__system", "stream": "__tick", "task": -1, "tuple": [1]}
    beat = {"id": "b", "comp": "", "stream": "__heartbeat", "task": -1, "tuple": []}
    word = {"id": "1", "comp": "words", "stream": "default", "task": 3, "tuple": ["dog"]}
    played = storm({"pidDir": str(tmp_path), "conf": {"step": 3}, "context": context}, word, beat, word, tick)
    output = BytesIO()
    bolt = Count(input_stream=played, output_stream=output, rdb_signal=None)
    with mock.patch.object(bolt, "_exit", side_effect=SystemExit), pytest.raises(SystemExit):
        bolt.run()
    said = [message for message in sent(output) if message.get("command") != "log"]
    assert said[0] == {"pid": bolt.pid} and (tmp_path / str(bolt.pid)).exists()
    assert [message["tuple"] for message in said if message.get("command") == "emit"] == [
        ["dog", 3], ["dog", 6], ["words", 1],
    ]  # fmt: skip
    assert [message["command"] for message in said[1:4]] == ["emit", "ack", "sync"]
    assert bolt.top == 0, "resumed() was called before the first tuple"


def test_a_spout_too():
    output = BytesIO()
    spout = Numbers(input_stream=storm({"command": "next"}), output_stream=output, rdb_signal=None)
    spout.initialize({}, {})
    spout.next_tuple()
    spout._run()
    first, second, pulse, *_, sync = sent(output)
    assert first == {"command": "emit", "tuple": [1], "need_task_ids": False}
    assert second == {"command": "emit", "tuple": [1], "id": "1", "need_task_ids": False}
    assert (pulse["stream"], pulse["tuple"][:2], sync) == ("marker", ["pulse", 1], {"command": "sync"})
    assert dict(spout.state) == {"n": 2}


def test_a_value_that_is_no_tuple_is_refused_as_in_pystorm(count):
    with pytest.raises(TypeError, match="lists or tuples"):
        count.emit("word")
