"""A plan wants a replica where no warm task is: one is brought there, and the stream goes on meanwhile."""

from __future__ import annotations

import pytest

from leeward.core.control import Phase
from leeward.core.orders import State
from leeward.core.plan import Slot
from tests.helpers.control_twins import SLOTS, Killed, coordinator, plan, results, settle

#: Tasks 3 and 4 are warm and share a slot, so both leave it when one does.
THERE = Slot("n3", 2)
WANTED = plan([2, 3], t3=THERE)


def until(cluster, clock, coord, state):
    """All tasks act until the coordinator is in this state; the plugin does not."""
    for _ in range(50):
        if coord.machine.state is state:
            return
        cluster.all_act()
        coord.work()
        clock.time += 0.1
    raise AssertionError(coord.machine.story)


def test_only_warm_tasks_are_restarted_and_nothing_is_paused(cluster, clock, sink, running):
    before = {id: task.process for id, task in cluster.tasks.items()}
    running.submit(WANTED)
    record = cluster.world.record
    assert (record.phase, record.absent, record.restarts, record.handover) == (Phase.RUN, (3, 4), (), 1)
    until(cluster, clock, running, State.PREPARING)
    record = cluster.world.record
    assert (record.absent, record.restarts, record.handover) == ((3, 4), (3, 4), 1)
    settle(cluster, clock, running)
    record = cluster.world.record
    assert (record.phase, record.base, record.absent, record.restarts) == (Phase.RUN, 0, (), ())
    assert record.tables == WANTED.tables and cluster.slots[3] == THERE
    assert {id for id, task in cluster.tasks.items() if task.process is not before[id]} == {3, 4}
    assert cluster.world.rebalances == [], "a rebalance holds the spouts"
    assert results(sink) == [("handover", "done")]
    (end,) = sink.of("reconfiguration_ended")
    assert set(end["phases"]) == {"leave_s", "prepare_s", "join_s", "handover_s"}


def test_tables_stay_as_they_are_where_only_warm_tasks_move(cluster, clock, sink, running):
    running.submit(plan([2], t3=THERE))
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "done")] and cluster.slots[3] == THERE
    assert not sink.of("handover_step")


@pytest.mark.parametrize("wanted", [plan([2, 3], t3=SLOTS[2]), plan([2, 3], t2=SLOTS[3])])
def test_where_a_task_works_everything_is_paused(cluster, clock, sink, running, wanted):
    """Storm would restart its worker."""
    running.submit(wanted)
    assert running.machine.state is State.PAUSING


def test_a_placement_that_does_not_fit_is_given_up_and_nothing_was_paused(cluster, clock, sink, running):
    running.submit(plan([2, 3], t3=Slot("n9", 1)))
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "aborted")]
    assert "n9" in sink.of("prepare_given_up")[0]["why"]
    record = cluster.world.record
    assert (record.base, record.absent, record.tables) == (0, (), plan([2]).tables)
    assert cluster.world.placement.slots == SLOTS


def test_a_placement_that_storm_does_not_make_is_given_up(cluster, clock, sink, running, monkeypatch):
    monkeypatch.setattr(cluster, "schedule", lambda *_: None)
    running.submit(WANTED)
    settle(cluster, clock, running)
    assert results(sink) == [("handover", "aborted")] and cluster.world.record.base == 0


def test_warm_tasks_that_are_not_heard_are_a_reset(cluster, clock, sink, running, monkeypatch):
    monkeypatch.setattr(cluster.tasks[4], "act", lambda: None)
    running.submit(WANTED)
    for _ in range(150):
        running.work()
        cluster.schedule()
        cluster.all_act()
        clock.time += 1.0
        if results(sink):
            break
    assert results(sink) == [("handover", "reset")]
    monkeypatch.undo()
    settle(cluster, clock, running)
    assert cluster.world.record.absent == ()


@pytest.mark.parametrize("victim", [1, 5])
def test_a_process_lost_meanwhile_restores_everybody(cluster, clock, sink, running, victim):
    running.submit(WANTED)
    until(cluster, clock, running, State.PREPARING)
    cluster.tasks[victim].die()
    settle(cluster, clock, running)
    assert results(sink)[0] == ("handover", "reset")
    record = cluster.world.record
    assert (record.base, record.absent, record.tables) == (record.epoch, (), plan([2]).tables)


def test_a_warm_process_lost_on_the_way_out_restores_everybody(cluster, clock, sink, running):
    running.submit(WANTED)
    cluster.tasks[3].die()
    settle(cluster, clock, running)
    assert results(sink)[0] == ("handover", "reset")


def test_after_a_restart_nobody_counts_as_about_to_be_restarted(cluster, clock, sink, running):
    """A process that starts later was lost, and the record says whose start is awaited."""
    running.submit(plan([2], t2=THERE))
    settle(cluster, clock, running)
    assert cluster.world.record.restarts == ()
    cluster.tasks[3].die()
    settle(cluster, clock, running)
    assert results(sink) == [("restart", "done")]
    assert [note["tasks"] for note in sink.of("tasks_left_out")] == [[3]], "its loss was noticed"


def test_checkpoints_wait(cluster, clock, sink, running):
    running.submit(WANTED)
    until(cluster, clock, running, State.PREPARING)
    before = cluster.world.record.checkpoint
    clock.time += running.machine.limits.checkpoint_every_s
    running.work()
    assert running.machine.state is State.PREPARING and cluster.world.record.checkpoint == before
    settle(cluster, clock, running)
    clock.time += running.machine.limits.checkpoint_every_s
    settle(cluster, clock, running)
    assert cluster.world.record.checkpoint > before


@pytest.mark.parametrize("at", range(14))
def test_killed_after_each_step(cluster, clock, sink, at):
    """A successor finishes it, or undoes it where nothing was announced."""
    left = [at]

    def fault(_step):
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    coord = coordinator(cluster, clock, sink, fault=fault)
    try:
        coord.start()
        coord.submit(WANTED)
        settle(cluster, clock, coord)
    except Killed:
        cluster.all_act()
    other = coordinator(cluster, clock, sink)
    other.start()
    settle(cluster, clock, other)
    record = cluster.world.record
    assert (record.phase, record.base, record.absent, record.restarts) == (Phase.RUN, 0, (), ())
    assert record.tables in (WANTED.tables, plan([2]).tables)
    if results(sink)[-1:] == [("handover", "done")]:
        assert record.tables == WANTED.tables
