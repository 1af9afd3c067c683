"""Emulated service times behave like a queue's server."""

import pytest

from leeward.runtime.task.emulated import Server


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
