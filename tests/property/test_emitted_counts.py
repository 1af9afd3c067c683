"""How many tuples a task has emitted: those of its first stream are known by what the pipe has queued alone."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.pipe.forms import BinaryForm, JsonForm
from leeward.runtime.pipe.output import BoltOutput, Output, SpoutOutput
from leeward.runtime.pipe.pipe import PipeSerializer

STREAMS = st.sampled_from([None, "default", "late", "odd"])
MARKER = ["pulse", 1, "", "", "{}"]


class Emits:
    """The part of a component that emits, before a pipe that leads nowhere."""

    component_name, task_id, logger = "emits", 7, logging.getLogger(__name__)
    auto_anchor, _current_tups = True, ()

    def __init__(self, form) -> None:
        self.counters = Counter()
        self.serializer = PipeSerializer(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))
        self.serializer.form = form
        self._open_output()

    def close(self) -> None:
        pipe = self.serializer
        for descriptor in (pipe._read_fd, pipe._write_fd, pipe._wake_read, pipe._wake_write):
            os.close(descriptor)


class Spout(Emits, SpoutOutput):
    pass


class Bolt(Emits, BoltOutput):
    pass


class Counts(RuleBasedStateMachine):
    """Emissions on several streams, among all else that goes through the pipe."""

    task: Output

    @initialize(cls=st.sampled_from([Spout, Bolt]), form=st.sampled_from(["json", "binary", "binary with ids"]))
    def begins(self, cls, form) -> None:
        self.task = cls(JsonForm() if form == "json" else BinaryForm(ids=form == "binary with ids"))
        self.emitted: Counter[str] = Counter()
        self.dropping = False

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.task.close()

    @rule(stream=STREAMS, cls=st.sampled_from([list, tuple]), direct=st.sampled_from([None, 3]), large=st.booleans())
    def emits(self, stream, cls, direct, large) -> None:
        self.task.emit(cls(["x" * 40_000 if large else "x"]), stream=stream, direct_task=direct)
        if not self.dropping:
            self.emitted[stream or "default"] += 1

    @rule(stream=STREAMS)
    def emits_a_value_that_cannot_travel(self, stream) -> None:
        self.task.emit([object()], stream=stream)

    @rule()
    def emits_a_marker(self) -> None:
        self.task._emit_marker(MARKER)
        self.emitted[MARKER_STREAM] += 1

    @rule(waits=st.booleans())
    def sends_another_message(self, waits) -> None:
        self.task.serializer.put_other(self.task.serializer.form.message({"command": "sync"}), waits=waits)

    @rule(taken=st.integers(0, 3))
    def flushes(self, taken) -> None:
        self.task.serializer.taken += taken
        self.task.serializer.flush_all()

    @rule()
    def drops_or_sends_again(self) -> None:
        self.dropping = not self.dropping
        self.task._drop_emits(self.dropping)

    @invariant()
    def each_tuple_is_counted_once(self) -> None:
        if hasattr(self, "task"):
            assert +self.task._out == self.emitted
            assert self.task.serializer.emitted() == self.emitted.total() - self.emitted[MARKER_STREAM]


TestCounts = Counts.TestCase


@pytest.fixture
def hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("in_background", [False, True])
def test_another_thread_sees_no_count_go_back_and_none_too_high(hasty_threads, in_background):
    with closing(Bolt(BinaryForm(ids=False))) as task:
        if in_background:
            task.serializer.flush_in_background()
        seen, over = [], threading.Event()

        def look() -> None:
            while not over.is_set():
                total = task.serializer.emitted()
                seen.append((total, task._out))

        looking = threading.Thread(target=look)
        looking.start()
        for n in range(20_000):
            task.emit([n])
            if n % 2:
                task.emit([n], stream="odd")
            if n % 5 == 0:
                task.serializer.send_message({"command": "sync"})
                task._emit_marker(MARKER)
            if n % 7 == 0:
                task.serializer.flush()
        over.set()
        looking.join()
        assert +task._out == {"default": 20_000, "odd": 10_000, MARKER_STREAM: 4_000}
        assert task.serializer.emitted() == 30_000
        for (total, out), (next_total, next_out) in pairwise(seen):
            assert total <= next_total and out.keys() <= next_out.keys()
            assert all(next_out[name] >= count for name, count in out.items())
            assert out["default"] <= 2 * out["odd"] + 2


def test_another_thread_that_asks_waits_for_a_stream_that_opens():
    """It ended with `dictionary changed size during iteration`, in one whole run of dozens."""
    with closing(Spout(JsonForm())) as task:
        seen: list[Counter[str]] = []
        asking = threading.Thread(target=lambda: seen.append(task._out))
        with task._opening:
            asking.start()
            asking.join(0.05)
            assert not seen
        asking.join()
        assert seen == [Counter()]


def test_a_batch_and_a_message_that_is_no_tuple_are_seen_whole_or_not_at_all():
    with closing(Spout(JsonForm())) as task:
        pipe, seen, looking = task.serializer, [], []

        def look(_: object) -> None:
            """Another thread asks, in the middle of what this one does; it may have to wait for the end of that."""
            looking.append(threading.Thread(target=lambda: seen.append(pipe.emitted())))
            looking[-1].start()
            looking[-1].join(0.05 if pipe._counting.locked() else None)

        def answered() -> None:
            for thread in looking:
                thread.join()

        class Slow(list):
            def append(self, data) -> None:
                look(data)
                super().append(data)

            def __delitem__(self, taken) -> None:
                look(taken)
                super().__delitem__(taken)

        pipe.out = Slow()
        pipe.put = pipe.out.append
        task.emit(["x"])
        pipe.send_message({"command": "sync"})
        answered()
        task.emit(["y"])
        pipe.flush()
        answered()
        assert seen == [0, 1, 1, 2]
