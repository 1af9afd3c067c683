"""State outside of self.state: a task notices attributes that change while it processes, and publishes their names."""

from __future__ import annotations

import itertools
import runpy
import time
from collections import Counter, deque
from pathlib import Path

import pytest
import streamparse

from leeward.core.metrics import TaskMetrics
from leeward.runtime import ElasticBolt, StatefulBolt
from leeward.runtime.state.outside import Outside, fingerprint, uses_state
from tests.helpers.task_worker import starting

#: The bolt of the project that `sparse quickstart` writes, from streamparse itself.
QUICKSTART = Path(streamparse.__file__).parent / "bootstrap" / "project" / "src" / "bolts" / "wordcount.py"
WordCountBolt = runpy.run_path(str(QUICKSTART))["WordCountBolt"]


class Counted(WordCountBolt, StatefulBolt):
    """Only its base class was changed."""

    def __init__(self, *args, **options):
        self.early = {}
        super().__init__(*args, **options)


class Index:
    def __init__(self):
        self.seen = []


class Careful(StatefulBolt):
    """Keeps much, but nothing that would be lost unnoticed."""

    outputs = ()
    transient = ("cache",)

    def initialize(self, conf, context):
        self.names = itertools.count()
        self.limits = {"a": 1}
        self.cache, self.buffer = {}, []

    def resumed(self):
        self._rebuild()

    def _rebuild(self):
        self.index = Index()
        self.size = len(self.state)

    def before_checkpoint(self, cut):
        self.buffer.clear()

    def process(self, tup):
        self.state[tup.values[0]] = next(self.names)
        self.counters["words"] += 1
        self.size += 1
        self.index.seen.append(1)
        self.cache[tup.values[0]] = self.limits["a"]
        self.buffer.append(tup)


class Forgetful(Careful):
    """As above, and one thing more."""

    def process(self, tup):
        super().process(tup)
        self.last = tup


class Writer(StatefulBolt):
    outputs = ()

    def process(self, tup):
        self.logger.debug("%s", tup.values)


class Silent(Writer):
    transient = ()


@pytest.fixture
def started(tmp_path):
    with starting(tmp_path) as start:
        yield start


def after_tuples(worker, tuples=3):
    worker.beat()
    for number in range(tuples):
        worker.tuple("pass", 3, [f"key {number}"])
        worker.beat()
    return TaskMetrics.from_line(worker.link.metrics())


@pytest.mark.parametrize(
    ("cls", "outside", "unused"),
    [
        (Counted, ("counter", "total"), True),
        (Careful, (), False),
        (Forgetful, ("last",), False),
        (Writer, (), True),
        (Silent, (), False),
    ],
)
def test_a_task_publishes_attributes_that_change_while_it_processes(started, cls, outside, unused):
    worker = started(cls)
    worker.beat()
    assert TaskMetrics.from_line(worker.link.metrics()).outside == ()
    sample = after_tuples(worker)
    assert (sample.outside, sample.state_unused) == (outside, unused)


def test_nothing_is_said_before_a_tuple_was_processed(started):
    sample = after_tuples(started(Counted), tuples=0)
    assert (sample.outside, sample.state_unused) == ((), False)


def test_it_is_in_the_log_of_the_worker_once(started):
    worker = started(Counted, conf={"pystorm.log.level": "warning"})
    worker.beat()
    worker.tuple("pass", 3, ["dog"])
    worker.beat()
    worker.link.metrics()
    worker.link.metrics()
    lines = [m["msg"] for m in worker.beat() if m.get("command") == "log" and "self.state" in m["msg"]]
    assert len(lines) == 1
    assert "count keeps counter and total outside of self.state" in lines[0] and "resumed()" in lines[0]


def test_a_stateless_bolt_may_keep_what_it_wants(started):
    class Free(WordCountBolt, ElasticBolt):
        pass

    assert after_tuples(started(Free)).outside == ()


def test_a_class_that_hands_its_state_on_uses_it():
    assert uses_state(Careful) and uses_state(Silent) and not uses_state(Writer) and not uses_state(Counted)


HERE = __name__.partition(".")[0]


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (Counter(a=1), lambda v: v.update(a=1)),
        ({str(n): n for n in range(1000)}, lambda v: v.update({"999": 0})),
        ([1, [2, 3]], lambda v: v[1].append(4)),
        (deque([1, 2], maxlen=2), lambda v: v.append(3)),
        ({1, 2}, lambda v: v.add(3)),
        (bytearray(b"ab"), lambda v: v.extend(b"c")),
        (Index(), lambda v: v.seen.append(1)),
    ],
)
def test_a_fingerprint_shows_a_change(value, change):
    before = fingerprint(value, HERE)
    assert before == fingerprint(value, HERE)
    change(value)
    assert before != fingerprint(value, HERE)


def test_a_fingerprint_is_cheap_and_ends():
    loop = []
    loop.append(loop)
    large = {n: {m: [loop] * 10 for m in range(100)} for n in range(1000)}
    began = time.perf_counter()
    assert fingerprint(large, HERE) == fingerprint(large, HERE)
    assert time.perf_counter() - began < 0.1
    assert fingerprint(float("nan"), HERE) == fingerprint(float("nan"), HERE)
    assert fingerprint(open, HERE) == fingerprint(None, HERE), "the inside of others' objects is not known"


def test_a_container_that_grows_meanwhile_has_changed():
    class Growing(dict):
        def items(self):
            raise RuntimeError("dictionary changed size during iteration")

    assert fingerprint(Growing(), HERE) != fingerprint(Growing(), HERE)


def test_it_begins_once():
    class Plain:
        n = 1

    it = Plain()
    it.n = 1
    outside = Outside(it, ())
    assert outside.look() == ()
    outside.begin()
    it.n = 2
    outside.begin()
    assert outside.look() == ("n",)


def test_nothing_of_the_base_classes_own_is_looked_at(started):
    """It looked at two of their attributes each second."""
    worker = started(Writer)
    worker.beat()
    outside = worker.component._user._outside
    assert [name for name, _ in outside._prints()] == []
