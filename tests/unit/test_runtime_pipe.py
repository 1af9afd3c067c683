"""The two forms of the pipe and the pipe itself; storm/worker holds the Java side to the same vectors."""

from __future__ import annotations

import enum
import json
import os
import re
import select
import threading
import time
from collections import Counter, namedtuple
from pathlib import Path

import msgpack
import pytest
from pystorm.exceptions import StormWentAwayError

from leeward.core.errors import LeewardError
from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import BinaryForm, JsonForm, UnfitError
from leeward.runtime.pipe.pipe import PipeSerializer
from tests.helpers.pipe_twin import Twin, big, frame, same

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/pipe.json").read_text())


def value_of(told):
    if not isinstance(told, dict):
        return told
    ((kind, what),) = told.items()
    match kind:
        case "int":
            return int(what)
        case "float":
            return float.fromhex(what)
        case "str":
            return what
        case "bytes":
            return bytes.fromhex(what)
        case "list":
            return [value_of(item) for item in what]
        case "dict":
            return {value_of(key): value_of(item) for key, item in what}
        case "repeat":
            return value_of(what[0]) * what[1]


def bytes_of(hexes):
    out = b""
    while "*" in hexes:
        plain, _, rest = hexes.partition("*")
        times, _, hexes = rest.partition(";")
        out += bytes.fromhex(plain) + bytes.fromhex(plain[-2:]) * (int(times) - 1)
    return out + bytes.fromhex(hexes)


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda vector: json.dumps(vector["value"])[:40])
def test_values_agree_with_the_vectors_of_both_languages(vector):
    value, data = value_of(vector["value"]), bytes_of(vector["hex"])
    assert BinaryForm(ids=False).emission(0, [value]) == b"\x92\x00\x91" + data
    taken = BinaryForm(ids=False).take(frame(0, 0)[:4] + (7 + len(data)).to_bytes(4) + b"\xdd\0\0\0\2\x00\x91" + data)
    assert taken[0] == 0 and same(taken[1], [value])


@pytest.mark.parametrize("vector", VECTORS["to_component"], ids=lambda vector: vector["what"])
def test_input_agrees_with_the_vectors(vector):
    form = BinaryForm(ids=vector["ids"])
    pairs = form.take(b"".join(map(bytes.fromhex, vector["hex"])))
    wanted, channels = [], {}
    for kind, *what in vector["writes"]:
        if kind == "tuple":
            tup_id, *source, values = what
            code = channels.get(tuple(source))
            if code is None:
                code = channels[tuple(source)] = len(channels)
                wanted += [-1, [code, *source]]
            wanted += [code, [*values, tup_id] if vector["ids"] else values]
        else:
            wanted += what if kind == "command" else [-2, what[0]]
    assert pairs == wanted


def test_output_agrees_with_the_vectors():
    form = BinaryForm(ids=True)
    streams = {}
    for vector in VECTORS["from_component"]:
        message = vector["message"]
        if message["command"] == "emit":
            data = b""
            if message["stream"] not in streams:
                streams[message["stream"]], data = form.stream(message["stream"])
            number = streams[message["stream"]]
            if message["anchors"] or message["id"] or message["need_task_ids"]:
                rest = message["anchors"] or [], message["id"], message["task"], message["need_task_ids"]
                data += form.full_emission(number, message["tuple"], *rest)
            else:
                data += form.emission(number, message["tuple"])
        else:
            levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]
            data = form.message(message | {"level": levels.index(message.get("level", "INFO"))})
        assert data.hex() == vector["hex"]


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ((1, (2,)), [1, [2]]),
        (namedtuple("Pair", "a b")(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Counter(a=1), {"a": 1}),
        (bytearray(b"x"), b"x"),
        (2**64, 2**64),
        ([-(2**63) - 1, {"n": 2**200}], [-(2**63) - 1, {"n": 2**200}]),
    ],
)
def test_kin_of_the_types_travel_as_what_they_are_like(value, arrives):
    data = BinaryForm(ids=False).emission(0, [value])
    got = msgpack.unpackb(data, strict_map_key=False, ext_hook=big)[1][0]
    assert same(got, arrives)


UNFIT = {"set": {1, 2}, "object": object(), "complex": 1j, "function": [lambda: 0], "within": {"k": {3}}}


@pytest.mark.parametrize("form", [BinaryForm(ids=True), JsonForm()], ids=["binary", "json"])
@pytest.mark.parametrize("value", UNFIT.values(), ids=UNFIT)
def test_what_cannot_travel_is_named(form, value):
    number, _ = form.stream("default")
    with pytest.raises(UnfitError, match=rf"field 1: .* of type {type(value).__name__} cannot travel"):
        form.emission(number, ["ok", value])
    form.emission(number, ["still works"])


def test_text_without_utf8_and_endless_nesting_are_named():
    form = BinaryForm(ids=False)
    with pytest.raises(UnfitError, match=r"field 0: .*surrogates"):
        form.emission(0, ["\ud800"])
    endless = []
    endless.append(endless)
    with pytest.raises(UnfitError, match=r"field 1: .*recursion"):
        form.emission(0, ["ok", endless])
    assert b"\\udcff" in form.message({"command": "error", "msg": "file \udcff"})


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 100])
def test_frames_may_come_in_any_pieces(step):
    data = frame(-1, [0, "a", "default", 1, None]) + frame(0, ["x" * 50], 0, ["y"]) + frame() + frame("next", "")
    form, pairs = BinaryForm(ids=False), []
    for start in range(0, len(data), step):
        pairs += form.take(data[start : start + step])
    assert pairs == [-1, [0, "a", "default", 1, None], 0, ["x" * 50], 0, ["y"], "next", ""]


def test_foreign_and_damaged_frames_are_named():
    with pytest.raises(LeewardError, match=r"hello world.* came where a frame must begin"):
        BinaryForm(ids=False).take(b"hello world")
    damaged = bytearray(frame(0, ["x"]))
    damaged[-3] = 0xC1
    with pytest.raises(LeewardError, match=r"a frame of 9 bytes is damaged: b.\\xdd.* Something else writes"):
        BinaryForm(ids=False).take(bytes(damaged))
    with pytest.raises(LeewardError, match=r"LW.x02.* came where a frame must begin"):
        BinaryForm(ids=False).take(b"\xc1LW\x02" + frame()[4:])
    with pytest.raises(LeewardError, match=r"xff.* came where a frame must begin"):  # nobody waits for 4 GB
        BinaryForm(ids=False).take(b"\xc1LW\x01\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("came", "what"),
    [
        (frame(0, ["x" * 50])[:30], r"30 of \d+ bytes of a frame: b'.xc1LW"),
        (b"oops", r"4 of 8 bytes of a frame: b'oops'"),
        (frame(), ""),
    ],
    ids=["frame", "header", "whole"],
)
def test_input_that_ends_within_a_frame_is_told(came, what, capsys):
    ends = Ends(**{"leeward.pipe": Twin(ids=False).offer})
    os.write(ends.write, came)
    ends.close()
    with pytest.raises(StormWentAwayError):
        ends.pipe.batch()
    assert re.search(what, capsys.readouterr().err) if what else not capsys.readouterr().err


class Ends:
    """A pipe and the worker's ends of it."""

    def __init__(self, **offer) -> None:
        to_child, self.write = os.pipe()
        self.read, from_child = os.pipe()
        self.pipe = PipeSerializer(to_child, from_child, pacing=Pacing(idle_s=0.05))
        os.write(self.write, json.dumps({"pidDir": "/", "conf": {}, "context": {}, **offer}).encode() + b"\nend\n")
        self.pipe.answer(self.pipe.handshake(), 17)
        self.answer = json.loads(os.read(self.read, 1000).removesuffix(b"\nend\n"))

    def close(self) -> None:
        os.close(self.write)


@pytest.mark.parametrize(
    ("offer", "answer", "form"),
    [
        ({}, {"pid": 17}, JsonForm),
        ({"leeward.pipe": {"version": 2, "ids": False}}, {"pid": 17, "leeward.pipe": 2}, BinaryForm),
        ({"leeward.pipe": {"version": 1, "ids": False}}, {"pid": 17}, JsonForm),
        ({"leeward.pipe": {"version": 3, "ids": False}}, {"pid": 17}, JsonForm),
    ],
)
def test_both_sides_take_the_best_form_that_both_know(offer, answer, form):
    ends = Ends(**offer)
    assert ends.answer == answer and isinstance(ends.pipe.form, form)


@pytest.fixture
def ends():
    twin = Twin(ids=False)
    ends = Ends(**{"leeward.pipe": twin.offer})
    ends.twin = twin
    yield ends
    ends.close()


def test_output_leaves_in_one_frame_before_the_pipe_waits_for_input(ends):
    for n in range(5):
        ends.pipe.send_message({"command": "log", "msg": str(n), "level": 2})
    ends.pipe.taken = 3
    os.write(ends.write, ends.twin.tuple("1", "a", "default", 1, ["x"]))
    assert ends.pipe.batch() == [-1, [0, "a", "default", 1, None], 0, ["x"]]
    data = os.read(ends.read, 10_000)
    assert data.count(b"\xc1LW\x01") == 1 and [m["msg"] for m in ends.twin.messages(data)] == list("01234")
    assert ends.twin.taken == 3


def test_waiting_for_task_ids_keeps_what_comes_before_them(ends):
    os.write(ends.write, ends.twin.tuple("1", "a", "default", 1, ["x"]) + frame(-2, [7, 8]))
    assert ends.pipe.task_ids() == [7, 8]
    assert ends.pipe.batch() == [-1, [0, "a", "default", 1, None], 0, ["x"]]


def test_another_thread_wakes_a_pipe_that_waits(ends):
    woken = threading.Event()
    ends.pipe.timer_s = 60
    ends.pipe.on_idle = woken.set

    def wake_and_close():
        time.sleep(0.05)
        ends.pipe.wake()
        woken.wait(5)
        ends.close()

    threading.Thread(target=wake_and_close, daemon=True).start()
    with pytest.raises(StormWentAwayError):
        ends.pipe.batch()
    assert woken.is_set()
    ends.write = os.open(os.devnull, os.O_WRONLY)


def test_posted_work_that_raises_loses_no_input_that_comes_at_the_same_time(ends):
    poll = ends.pipe._poll

    class Both:
        def poll(self, timeout_ms):
            os.write(ends.write, ends.twin.tuple("1", "a", "default", 1, ["x"]))
            ends.pipe.wake()
            ends.pipe._poll = poll
            return poll.poll(timeout_ms)

    def fail_once():
        ends.pipe.on_idle = lambda: None
        raise ValueError("of the user")

    ends.pipe._poll, ends.pipe.on_idle = Both(), fail_once
    with pytest.raises(ValueError, match="of the user"):
        ends.pipe.batch()
    assert ends.pipe.batch() == [-1, [0, "a", "default", 1, None], 0, ["x"]]


def test_output_of_slow_code_leaves_by_itself(ends):
    for _ in range(8):
        ends.pipe.late(1)
    ends.pipe.send_message({"command": "sync"})  # and nobody flushes
    assert ends.twin.messages(os.read(ends.read, 1000)) == [{"command": "sync"}]


def test_a_task_that_is_interrupted_now_and_then_gets_no_thread_for_its_output(ends):
    before = threading.active_count()
    for tuples in [1, 1, 30] * 20:  # it flushes each millisecond: many tuples are no slow code
        ends.pipe.late(tuples)
    assert threading.active_count() == before


def test_threads_may_write_while_the_task_does(ends):
    def log(name):
        for n in range(300):
            ends.pipe.send_message({"command": "log", "msg": f"{name}{n}", "level": 2})
            if n % 7 == 0:
                ends.pipe.flush()

    threads = [threading.Thread(target=log, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    said = []
    while len(said) < 900:
        ends.pipe.flush()
        if select.select([ends.read], [], [], 0.01)[0]:  # a thread may put its last messages after this flush
            said += [message["msg"] for message in ends.twin.messages(os.read(ends.read, 65536))]
    for name in "abc":
        assert [msg for msg in said if msg[0] == name] == [f"{name}{n}" for n in range(300)]
