"""Handovers of coordinator and tasks in memory: tables change while the stream goes on, or everything is restored."""

from __future__ import annotations

import pytest

from leeward.core.control import Phase, Report, handover_barrier
from leeward.core.orders import Limits, State
from leeward.core.plan import Slot
from tests.helpers.control_twins import (
    FIRST,
    ID,
    SLOTS,
    Killed,
    checkpointed,
    coordinator,
    killed_at,
    plan,
    results,
    settle,
)

#: Bytes of half of the state of `work` on its way from task to task, about.
HALF = range(600, 760)


def test_tables_change_and_nothing_stops(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    record = cluster.world.record
    assert (record.phase, record.epoch, record.base, record.handover) == (Phase.RUN, 1, 0, 1)
    assert record.tables == plan([2, 3]).tables
    assert not running.idle
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "done")]
    (end,) = sink.of("reconfiguration_ended")
    assert end["bytes_exported"] == end["bytes_imported"] in HALF
    assert [(c["component"], c["kind"]) for c in end["changes"]] == [("work", "scale-out")]
    assert set(end["phases"]) == {"handover_s"}
    assert cluster.world.record.base == 0 and cluster.world.rebalances == []
    assert cluster.world.placement.slots == SLOTS, "what is there is pinned"


def test_one_that_moves_nothing_copies_nothing_ahead(cluster, clock, sink):
    """Before the first cut nobody knows how much state there is; here nobody would report that it was copied."""
    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    assert not coord.machine.sizes
    coord.submit(plan([2]))
    settle(cluster, clock, coord, rounds=3)
    assert results(sink) == [("handover", "done")]


def test_the_deadline_of_tasks_counts_from_when_redis_had_answered(cluster, clock, sink, running, monkeypatch):
    """The tries of the fence may take as long as the tasks have; a reset would then follow for nothing."""
    limits = running.machine.limits

    def late(*arguments):
        raised(*arguments)
        clock.time += limits.handover_s + 1 if cluster.world.record.handover else 0

    raised = running._snapshots.raise_fence
    monkeypatch.setattr(running._snapshots, "raise_fence", late)
    running.submit(plan([2, 3]))
    running.work()
    assert running.machine.state is State.HANDING and not sink.of("reset")
    clock.time += limits.handover_s - 1
    running.work()
    assert not sink.of("reset")
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "done")]


def test_the_next_one_leaves_the_placement_alone(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    settle(cluster, clock, running)
    before = cluster.world.placement
    running.submit(plan([3]))
    settle(cluster, clock, running)
    assert cluster.world.placement is before
    assert results(sink) == [("handover", "done")] * 2
    assert cluster.world.record.handover == 2


def test_a_checkpoint_follows_when_the_stream_has_had_a_rest(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    for task in [*cluster.tasks.values()] * 2:
        task.act()
    running.work()
    running.work()
    assert running.machine.state is State.IDLE
    clock.time += running.machine.limits.rest_s
    running.work()
    assert running.machine.state is State.CHECKPOINTING


def test_what_moves_an_executor_that_works_and_the_papers_mode_are_restarts(cluster, clock, sink, running):
    running.submit(plan([2, 3], t2=Slot("n3", 2)))
    assert running.machine.state is State.PAUSING
    settle(cluster, clock, running)
    other = coordinator(cluster, clock, sink, limits=Limits(live=False))
    other.start()
    settle(cluster, clock, other)
    other.submit(plan([2, 3]))
    assert other.machine.state is State.PAUSING


def restarted_without_a_checkpoint(cluster, clock, sink, coord):
    """The newest cut is that of a pause: the checkpoint after it failed."""
    coord.submit(plan([2, 3], t2=Slot("n3", 2)))
    while not sink.of("checkpoint_failed"):
        coord.work()
        if sink.of("reconfiguration_ended"):
            cluster.fail(2, "OutOfMemoryError: full")
        cluster.all_act()
        clock.time += 1
    cluster.fail(2, "", times=0)
    assert coord.machine.state is State.IDLE
    assert cluster.world.record.committed[-1] == cluster.world.record.cut


def test_after_a_pause_a_checkpoint_comes_first(cluster, clock, sink, running):
    """The cut of a pause may lie in the swap areas of the old owners."""
    restarted_without_a_checkpoint(cluster, clock, sink, running)
    running.submit(plan([3], t2=Slot("n3", 2)))
    assert running.machine.state is State.CHECKPOINTING and not running.idle
    settle(cluster, clock, running)
    assert results(sink) == [("restart", "done"), ("handover", "done")]
    assert cluster.world.record.tables == plan([3]).tables
    assert len(sink.of("checkpoint_failed")) == 1


def test_that_checkpoint_may_fail(cluster, clock, sink, running):
    restarted_without_a_checkpoint(cluster, clock, sink, running)
    cluster.fail(2, "OutOfMemoryError: full")
    running.submit(plan([3], t2=Slot("n3", 2)))
    settle(cluster, clock, running)
    assert len(sink.of("checkpoint_failed")) == 2
    assert results(sink)[-1] == ("handover", "done")


@pytest.mark.parametrize(("lost", "answer"), [(2, "reset: task 2"), (4, "aborted: tasks are away")])
def test_a_request_that_a_loss_forestalls_is_answered(cluster, clock, sink, running, lost, answer):
    """The plan waits for that checkpoint when a process is lost."""
    restarted_without_a_checkpoint(cluster, clock, sink, running)
    cluster.world.requests["request-1"] = {}
    running.submit(plan([3], t2=Slot("n3", 2)), "request-1")
    assert running.machine.state is State.CHECKPOINTING
    cluster.tasks[lost].die()
    settle(cluster, clock, running)
    assert str(cluster.world.answers["request-1"]).startswith(answer)
    assert cluster.world.requests == {}


def test_a_process_lost_in_the_middle_restores_everybody_with_the_new_tables(cluster, clock, sink, running):
    checkpointed(cluster, clock, running)
    running.submit(plan([2, 3]))
    cluster.tasks[2].act()
    cluster.tasks[4].die()
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "reset"), ("reset", "reset")]
    record = cluster.world.record
    assert record.tables == plan([2, 3]).tables and record.base == record.epoch and record.handover == 0


def test_only_who_gives_or_takes_and_the_sinks_report(cluster, clock, sink, running):
    """At a sink a marker is aligned when all that worked have sent it on; who is warm may pass it later."""
    running.submit(plan([2, 3]))
    assert cluster.world.record.witnesses == (2, 3, 5)
    for task in (1, 2, 3, 5):
        cluster.tasks[task].act()
    running.work()
    assert running.idle and results(sink) == [("handover", "done")]
    assert sorted(cluster.world.barriers[handover_barrier(1)]) == [2, 3, 5]
    assert cluster.tasks[4].handover == 0


def test_a_successor_waits_for_the_same_reports(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    successor = coordinator(cluster, clock, sink)
    successor.start()
    assert successor.machine.missing == [2, 3, 5]
    settle(cluster, clock, successor)
    assert results(sink) == [("handover", "done")]


def test_late_is_a_reset(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    for task in (1, 2, 5):
        cluster.tasks[task].act()
    running.work()
    clock.time += running.machine.limits.handover_s + 1
    running.work()
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"] == "reset: handover: no report after 60.0 s from 3 (work)"
    settle(cluster, clock, running)
    assert cluster.world.record.tables == plan([2, 3]).tables


def test_a_damaged_piece_is_a_reset(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    report = Report(task=3, component="work", error="SnapshotError: a piece is damaged", bad_cut=True)
    cluster.world.barriers[handover_barrier(1)] = {3: report}
    running.work()
    assert results(sink) == [("handover", "reset")]
    assert "a piece is damaged" in sink.of("reset")[0]["why"]
    settle(cluster, clock, running)


def test_redis_down_before_it_begins_changes_nothing(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    settle(cluster, clock, running)
    cluster.world.refuse.add("redis")
    running.submit(plan([3]))
    record = cluster.world.record
    assert (record.phase, record.tables, record.handover) == (Phase.RUN, plan([2, 3]).tables, 1)
    cluster.world.refuse.clear()
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "done"), ("handover", "aborted")]
    checkpointed(cluster, clock, running)


def test_redis_down_in_the_middle_holds_up_checkpoints_alone(cluster, clock, sink, running):
    """State goes from task to task; where it goes through Redis, the courier waits for it."""
    running.submit(plan([2, 3]))
    cluster.world.refuse.add("redis")
    for _ in range(10):
        cluster.all_act()
        running.work()
        clock.time += 1
    assert results(sink) == [("handover", "done")] and sink.of("checkpoint_failed")
    cluster.world.refuse.clear()
    checkpointed(cluster, clock, running)
    assert cluster.world.record.base == 0


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize(("at", "nth"), [("fence", 1), ("control:handover", 1), ("fence", 2), ("journal:closed", 1)])
def test_killed_after_each_step(cluster, clock, sink, at, nth, dies):
    left = []
    coord = coordinator(cluster, clock, sink, fault=killed_at(at, left))
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    left.extend(range(nth))
    with pytest.raises(Killed):
        coord.submit(plan([2, 3]))
        settle(cluster, clock, coord)
    if dies:
        cluster.tasks[3].die()
    successor = coordinator(cluster, clock, sink)
    successor.start()
    settle(cluster, clock, successor)
    announced = (at, nth) != ("fence", 1)
    record = cluster.world.record
    assert record.tables == (plan([2, 3]).tables if announced else FIRST)
    assert all(task.tables == record.tables for task in cluster.tasks.values())
    assert (record.base > 0) is (dies and announced), "a warm task that dies is left out and comes back"
    assert cluster.world.fences[ID] == record.epoch or not announced
    checkpointed(cluster, clock, successor)


def test_a_source_that_reads_a_pause_late_holds_up_no_handover(cluster, clock, sink, running):
    """Its probe names an epoch of which those behind it are told by markers only. Found by the model of before."""
    running.submit(plan([2, 3], t2=Slot("n3", 2)))
    pause = cluster.world.record
    assert pause.phase is Phase.PAUSE
    clock.time += running.machine.limits.pause_s + 1
    running.work()
    running.submit(plan([2, 3]))
    source = cluster.tasks[1].process
    source.task.on_record(pause, False)
    assert source.mode == "paused"
    settle(cluster, clock, running)
    assert results(sink) == [("restart", "aborted"), ("handover", "done")] and not sink.of("reset")


def test_one_change_at_a_time(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    running.submit(plan([3]))
    assert "handing" in sink.of("plan_refused")[0]["why"]
