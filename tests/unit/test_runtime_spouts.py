"""A stateful spout behind a pipe: it pauses, is called again while it emits, and wakes nobody while it is idle."""

from __future__ import annotations

import threading
import time

from leeward.core.control import ControlRecord, Phase
from leeward.core.table import even_table
from leeward.runtime import StatefulSpout
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import SPOUT, Worker, emitted


class Source(StatefulSpout):
    outputs = ["key"]

    def next_tuple(self):
        self.state["n"] = self.state.get("n", 0) + 1
        self.emit([f"k{self.state['n']}"])
        if self.state["n"] % 2 == 0:
            self.emit_pulse(self.state["n"] // 2, {"t": 1})


def test_spout_pauses_when_told_and_keeps_its_offset(tmp_path, twin):
    spout = Worker(Source, tmp_path, twin, **SPOUT)
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


class Burst(StatefulSpout):
    outputs = ["n"]

    def next_tuple(self):
        n = self.state["n"] = self.state.get("n", 0) + 1
        if n <= 40:
            self.emit([n])


def test_a_spout_that_emits_is_called_again_at_once_unless_storm_counts_its_tuples(tmp_path, twin):
    spout = Worker(Burst, tmp_path, twin, **SPOUT)
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
    spout = Worker(Waiting, tmp_path, Twin(ids=False), **SPOUT)
    said = []
    for _ in range(3):  # by the third at the latest it runs, and waits at the gate
        spout.command("next")
    while len(emitted(said)) < 2:
        said.append(spout._next_message())
    assert emitted(said) == [[1], [2]]
    spout.component.gate.set()
    spout.close()


def test_an_idle_spout_wakes_no_other_thread(tmp_path):
    spout = Worker(Burst, tmp_path, Twin(ids=False), **SPOUT)
    assert sum(len(emitted(spout.next())) for _ in range(60)) == 40
    pipe, woken = spout.component.serializer, []
    time.sleep(0.05)
    assert pipe._has_thread, "there is one that sees to what was emitted"
    pipe._late.set = lambda: woken.append(1)
    for _ in range(5):
        spout.next()
    assert not woken
    spout.close()
