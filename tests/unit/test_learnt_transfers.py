"""Bandwidth to the DataStore by node, from transfers that tasks have timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.control.learning.transfers import LEAST_BYTES, TransferLearner
from leeward.control.observe import datastore_of
from leeward.core.learnt import StoreLink
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot

SLOTS = {1: Slot("n1", 1), 2: Slot("n1", 2), 3: Slot("n2", 1)}


def task(pid: int = 1, **figures) -> TaskMetrics:
    return TaskMetrics(component="work", pid=pid, t=0.0, **figures)


def test_rates_are_medians_of_transfers_by_node():
    learner = TransferLearner()
    before = {1: task(), 2: task(), 3: task()}
    size = 10 * LEAST_BYTES
    for seconds in (0.01, 0.02, 0.02, 0.04):
        after = {
            number: task(up_bytes=old.up_bytes + size, up_s=old.up_s + seconds * number, trip_s=0.001 * number)
            for number, old in before.items()
        }
        learner.add(before, after, SLOTS)
        before = after
    found = learner.fit()
    assert found["n2"].up_rate == pytest.approx(size / 0.06) and found["n2"].ups == 4
    assert found["n1"].ups == 8 and found["n1"].trip_s == pytest.approx(0.0015)
    assert found["n1"].down_rate is None and found["n1"].downs == 0


def test_small_transfers_say_nothing_of_bandwidth():
    learner = TransferLearner()
    learner.add({1: task()}, {1: task(up_bytes=LEAST_BYTES - 1, up_s=0.5)}, SLOTS)
    assert learner.fit() == {}


def test_a_new_process_counts_from_its_start_and_a_task_without_a_slot_not_at_all():
    learner, size = TransferLearner(), 4 * LEAST_BYTES
    learner.add({3: task(down_bytes=9 * size, down_s=9.0)}, {3: task(pid=2, down_bytes=size, down_s=0.5)}, SLOTS)
    learner.add({}, {9: task(down_bytes=size, down_s=0.5)}, SLOTS)
    assert learner.fit() == {"n2": StoreLink(down_rate=pytest.approx(2 * size), downs=1)}


def test_many_small_transfers_before_the_first_look_or_in_a_long_gap_are_no_large_one():
    """A new leader took all that a process had ever sent for one transfer, at the speed of round trips."""
    learner, many = TransferLearner(), {1: task(up_bytes=9 * LEAST_BYTES, up_s=0.5)}
    learner.add({}, many, SLOTS)
    later = {1: replace(task(up_bytes=18 * LEAST_BYTES, up_s=1.0), t=60.0)}
    learner.add(many, later, SLOTS)
    assert learner.fit() == {}


def test_a_status_tells_the_transfers_since_the_processes_began():
    told = datastore_of({3: task(up_bytes=5_000_000, up_s=0.1, trip_s=0.0005)}, SLOTS)
    assert told == {"n2": {"up_mb_per_s": 50.0, "down_mb_per_s": None, "trip_ms": 0.5}}
