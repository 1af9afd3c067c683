"""Counts and busy time of a bolt while it processes one read of its pipe, which may last for a minute."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import DEFINE_CHANNEL
from leeward.runtime.pipe.loop import Loop, Meter

TUPLES, SERVICE_S = 6, 0.01


class Pipe:
    """One read of so many tuples."""

    pacing, flushed_at, taken, blocks, form = Pacing(), 0.0, 0, 0, SimpleNamespace(ids=False)

    def batch(self):
        read = [DEFINE_CHANNEL, (3, "source", "default", 1, None)]
        for number in range(TUPLES):
            read += [3, [number]]
        return read

    def late(self, taken): ...

    def flush_all(self):
        self.flushed_at = time.perf_counter()


class Bolt:
    def __init__(self, meter: Meter, fails_at: int) -> None:
        self.meter, self.fails_at, self.seen = meter, fails_at, []

    def attend(self): ...

    def fields(self, component, stream):
        return None

    def process(self, tup):
        self.seen.append((self.meter.tuples, self.meter.busy_s))
        time.sleep(SERVICE_S)
        if tup.values[0] == self.fails_at:
            raise ZeroDivisionError

    process_and_ack = pass_on = control = process


def loop_of(fails_at: int) -> tuple[Loop, Bolt, Meter]:
    meter = Meter()
    bolt, channel = Bolt(meter, fails_at), SimpleNamespace(count=0)
    protocol = SimpleNamespace(clear=lambda task: channel, came={})
    options = {"inbox": (), "copier": SimpleNamespace(copying=False), "state": None, "load": None, "plain": True}
    return Loop(Pipe(), protocol, bolt, meter, **options), bolt, meter


def test_each_tuple_that_takes_long_counts_when_it_is_over():
    loop, bolt, meter = loop_of(-1)
    loop.run()
    assert [tuples for tuples, _ in bolt.seen] == list(range(TUPLES)) and meter.tuples == TUPLES
    for before, busy_s in bolt.seen:
        assert busy_s >= before * SERVICE_S
    assert meter.busy_s >= TUPLES * SERVICE_S


def test_a_tuple_that_fails_is_none_that_was_processed():
    loop, _, meter = loop_of(2)
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert meter.tuples == 2
    loop.run()
    assert meter.tuples == TUPLES - 1, "the rest of the read, each once"
