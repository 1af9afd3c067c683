"""The service's clock does not follow steps of the wall clock."""

from __future__ import annotations

import time

import pytest

from leeward.adapters.clock import SystemClock


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_does_not_reach_deadlines(monkeypatch, step):
    clock, wall = SystemClock(), time.time
    before = clock.now()
    assert before == pytest.approx(wall(), abs=1.0), "comparable with what other processes write"
    monkeypatch.setattr(time, "time", lambda: wall() + step)
    assert 0.0 <= clock.now() - before < 60.0
    time.sleep(0.01)
    assert clock.now() - before >= 0.01
