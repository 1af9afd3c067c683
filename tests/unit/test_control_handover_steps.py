"""Handovers of many groups in steps, of which each is passed before the next one begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.core.control import Report, handover_barrier
from leeward.core.orders import Limits, State
from leeward.sim.memory import MemoryBarriers
from tests.helpers.control_twins import (
    FIRST,
    TASKS,
    Killed,
    checkpointed,
    coordinator,
    killed_at,
    plan,
    results,
    settle,
)

#: Bytes that a step of 16 groups does not have, but the state of `work` does.
SOME = 600


@pytest.fixture
def kept_barriers(monkeypatch):
    """Reports stay."""
    monkeypatch.setattr(MemoryBarriers, "drop", lambda *_, **__: None)


def bytes_reported(cluster):
    """By all tasks, of all handovers."""
    barriers = cluster.world.barriers.items()
    return sum(report.bytes for name, there in barriers if name.startswith("handover-") for report in there.values())


def stepping(cluster, clock, sink, fault=None, ahead=False):
    """A coordinator that moves 16 groups at a time, and copies them ahead or not."""
    limits = Limits(step_groups=16, ahead_bytes=-1 if ahead else SOME)
    coord = coordinator(cluster, clock, sink, limits=limits, fault=fault)
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    assert coord.machine.sizes["work"] / 8 < SOME < coord.machine.sizes["work"]
    return coord


def moved(table):
    """Groups of `work` that task 3 has."""
    return [group for group, owner in enumerate(table["work"]) if owner == 3]


def pass_a_step(cluster, clock, coord):
    """Everybody passes the step that is announced, or has copied for it."""
    for task in [*cluster.tasks.values()] * 2:
        task.act()
    clock.time += 1.5
    coord.work()


@pytest.mark.parametrize("ahead", [False, True])
def test_many_groups_go_in_steps_the_hottest_last(cluster, clock, sink, kept_barriers, ahead):
    coord = stepping(cluster, clock, sink, ahead=ahead)
    hot = {group: 1000.0 - group for group in range(128)}
    seen = []
    coord.submit(replace(plan([2, 3]), load={"work": hot}))
    while not coord.idle:
        record = cluster.world.record
        if record.handover and (not seen or seen[-1] != (record.epoch, record.handover, moved(record.tables))):
            seen.append((record.epoch, record.handover, moved(record.tables)))
        pass_a_step(cluster, clock, coord)
    assert [(epoch, handover) for epoch, handover, _ in seen] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    odd = list(range(1, 128, 2))
    assert [groups for *_, groups in seen] == [odd[-16:], odd[-32:], odd[-48:], odd]
    assert len(sink.of("reconfiguration_started")) == 1 and len(sink.of("handover_step")) == 3
    (end,) = sink.of("reconfiguration_ended")
    assert (end["result"], end["steps"]) == ("done", 4)
    assert end["bytes_exported"] == end["bytes_imported"] == bytes_reported(cluster) > 800
    assert cluster.world.record.base == 0 and cluster.world.record.committed


def test_the_longest_wait_of_all_steps_is_told(cluster, clock, sink):
    coord = stepping(cluster, clock, sink)
    coord.submit(plan([2, 3]))
    for epoch in (1, 2, 3, 4):
        wait = 0.5 if epoch == 2 else 0.1
        cluster.world.barriers[handover_barrier(epoch)] = {
            task: Report(task=task, component=TASKS[task], waited=wait) for task in TASKS
        }
        clock.time += 1.5
        coord.work()
    assert sink.of("reconfiguration_ended")[0]["pause_s"] == 0.5


def test_one_only_replica_moves_whole(cluster, clock, sink):
    coord = stepping(cluster, clock, sink)
    coord.submit(plan([3]))
    settle(cluster, clock, coord)
    (end,) = sink.of("reconfiguration_ended")
    assert (end["result"], end["steps"]) == ("done", 1)


def test_little_state_moves_whole(cluster, clock, sink):
    limits = Limits(step_groups=16, ahead_bytes=10**6)
    coord = coordinator(cluster, clock, sink, limits=limits)
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    coord.submit(plan([2, 3]))
    assert cluster.world.record.tables == plan([2, 3]).tables


def test_a_process_lost_between_steps_restores_everybody_with_the_tables_of_the_step(cluster, clock, sink):
    coord = stepping(cluster, clock, sink)
    coord.submit(plan([2, 3]))
    pass_a_step(cluster, clock, coord)
    step = cluster.world.record.tables
    assert len(moved(step)) == 32
    cluster.tasks[4].die()
    settle(cluster, clock, coord)
    assert results(sink) == [("handover", "reset"), ("reset", "reset")]
    assert cluster.world.record.tables == step and cluster.world.record.handover == 0


def test_redis_down_between_steps_stays_with_what_was_passed(cluster, clock, sink):
    coord = stepping(cluster, clock, sink)
    coord.submit(plan([2, 3]))
    for task in [*cluster.tasks.values()] * 2:
        task.act()
    cluster.world.refuse.add("redis")
    coord.work()
    record = cluster.world.record
    assert len(moved(record.tables)) == 16 and record.handover == 1 and record.epoch > 2
    cluster.world.refuse.clear()
    settle(cluster, clock, coord)
    assert results(sink) == [("handover", "aborted")]
    assert all(task.tables == record.tables for task in cluster.tasks.values())
    checkpointed(cluster, clock, coord)


def test_a_step_that_cannot_be_copied_is_given_up_and_nothing_was_paused(cluster, clock, sink):
    coord = stepping(cluster, clock, sink, ahead=True)
    coord.submit(plan([2, 3]))
    while len(moved(cluster.world.record.tables)) < 32:
        pass_a_step(cluster, clock, coord)
    pass_a_step(cluster, clock, coord)
    assert coord.machine.state is State.COPYING
    clock.time += coord.machine.limits.ahead_s + 1
    coord.work()
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"].startswith("aborted: not copied")
    assert end["steps"] == 2
    settle(cluster, clock, coord)
    assert len(moved(cluster.world.record.tables)) == 32


@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize(
    ("at", "ahead"),
    [
        ("control:ahead", True), ("fence", True), ("control:handover", True),
        ("fence", False), ("control:handover", False),
    ],
)  # fmt: skip
def test_a_successor_goes_on_where_the_coordinator_was_killed(cluster, clock, sink, kept_barriers, at, ahead, nth):
    left = []
    coord = stepping(cluster, clock, sink, fault=killed_at(at, left), ahead=ahead)
    left.extend(range(nth))
    with pytest.raises(Killed):
        coord.submit(plan([2, 3]))
        settle(cluster, clock, coord)
    written = cluster.world.journal.open
    assert written == ((at, ahead, nth) != ("fence", False, 1))
    successor = coordinator(cluster, clock, sink, limits=coord.machine.limits)
    successor.start()
    settle(cluster, clock, successor)
    assert cluster.world.record.tables == (plan([2, 3]).tables if written else FIRST)
    assert cluster.world.record.base == 0
    if not written:  # nothing to end
        assert not sink.of("reconfiguration_ended")
        return
    (end,) = sink.of("reconfiguration_ended")
    assert (end["result"], end["steps"]) == ("done", 4)
    assert end["bytes_imported"] == bytes_reported(cluster), "each step counts once"
    checkpointed(cluster, clock, successor)
