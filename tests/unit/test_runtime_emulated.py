"""Emulated service times behave like a queue's server, and a task tells so."""

from __future__ import annotations

import time

import pytest

from leeward.core.metrics import TaskMetrics
from leeward.runtime import ElasticBolt
from leeward.runtime.task.emulated import Server
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import BOLT, starting

SERVICE_S, TUPLES = 0.05, 5
EMULATED = {"leeward.service_times": "emulated", "leeward.service_rate": 1 / SERVICE_S}


def test_back_to_back_tuples_keep_the_rate_whatever_a_sleep_takes():
    server = Server(0.004)
    done = server.serve(10.0)
    for _ in range(999):
        done = server.serve(done + 0.0007)  # each sleep ends a little late
    assert done == pytest.approx(10.0 + 1000 * 0.004)


def test_idle_time_earns_nothing():
    server = Server(0.004)
    server.serve(10.0)
    server.rest()
    assert server.serve(20.0) == pytest.approx(20.004) and server.busy_for(20.001) == pytest.approx(0.003)


def test_several_tuples_at_once_take_their_sum():
    server = Server(0.01)
    assert server.serve(1.0, tuples=3) == pytest.approx(1.03) and server.busy_for(2.0) == 0.0


def test_none_is_emulated_with_zero():
    assert Server(0.0).serve(5.0) == 5.0


class Pass(ElasticBolt):
    outputs = ["key"]

    def process(self, tup):
        self.emit(list(tup.values))


class Held(Pass):
    """The task has something else to do before each tuple, as on a machine that is shared."""

    def _deliver(self, instruction):
        time.sleep(0.4 * SERVICE_S)
        super()._deliver(instruction)


class Slow(Pass):
    """Its own code takes longer than the emulated time."""

    def process(self, tup):
        time.sleep(2 * SERVICE_S)
        super().process(tup)


@pytest.mark.parametrize(("bolt", "seconds"), [(Pass, SERVICE_S), (Held, SERVICE_S), (Slow, 2 * SERVICE_S)])
def test_a_busy_emulated_task_has_the_service_rate_that_it_emulates(tmp_path, bolt, seconds):
    """The time between two tuples was left out: 255 tuples/s were told by one that takes 233, and none was added."""
    with starting(tmp_path, beat=True) as start:
        worker = start(bolt, Twin(ids=False), **BOLT, conf=EMULATED)
        for _ in range(TUPLES):
            worker.tuple("pass", 3, ["k"])
        worker.beat()
        told = TaskMetrics.from_line(worker.link.metrics())
    assert told.processed == TUPLES
    assert 0.999 * seconds < told.busy_s / TUPLES < 1.5 * seconds
