"""A task publishes the key groups, sojourn times and time stamps of its tuples."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from leeward.core.keys import key_group
from leeward.core.table import even_table


def test_what_key_groups_get_is_published(keyed_bolt):
    key = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    for _ in range(20):
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    assert set(metrics["groups"]) == {str(key_group(key))} and metrics["looked_at"] > 5


def test_sojourn_times_are_published(keyed_bolt, monkeypatch):
    key, count = (
        next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5),
        keyed_bolt.component.process,
    )
    monkeypatch.setattr(keyed_bolt.component, "process", lambda tup: time.sleep(0.002) or count(tup))
    for _ in range(60):  # a timed read may have a heartbeat alone; with fewer all of them may
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    assert 0 < metrics["sojourns"] < metrics["processed"] == 60, "of some reads"
    assert metrics["sojourn_s"] >= 0.002 * metrics["sojourns"]


def test_reads_that_come_in_a_rhythm_are_timed_at_each_of_its_beats(keyed_bolt, monkeypatch):
    """Of the eight reads of a pulse one has all the work: timing each eighth read would show it always or never."""
    slow_s, count = 0.02, keyed_bolt.component.process
    key = next(key for key in "abcdefgh" if even_table([5, 6])[key_group(key)] == 5)
    beats = itertools.count()
    monkeypatch.setattr(
        keyed_bolt.component, "process", lambda tup: time.sleep(slow_s * (next(beats) % 8 == 3)) or count(tup)
    )
    for _ in range(320):
        keyed_bolt.tuple("pass", 3, [key])
        keyed_bolt.beat()
    metrics = json.loads(keyed_bolt.link.metrics())
    timed, slow = metrics["sojourns"], metrics["sojourn_s"] // slow_s
    assert 20 <= timed <= 80 and 1 <= slow <= timed // 2


def test_a_step_of_the_wall_clock_does_not_reach_the_rates(keyed_bolt, monkeypatch):
    """Rates are counts divided by the time between two lines of metrics."""
    wall = time.time
    keyed_bolt.beat()
    before = json.loads(keyed_bolt.link.metrics())["t"]
    assert before == pytest.approx(wall(), abs=60.0)
    monkeypatch.setattr(time, "time", lambda: wall() - 3600.0)
    assert 0.0 < json.loads(keyed_bolt.link.metrics())["t"] - before < 60.0
