"""Handovers of coordinator and tasks in memory: tables change while the stream goes on, or everything is restored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_twins import FIRST, ID, KEYS, SLOTS, TASKS, Killed, coordinator, plan, settle

from leeward.core.control import Phase, Report, handover_barrier
from leeward.core.orders import Limits, State
from leeward.core.plan import Slot
from leeward.sim.memory import MemoryBarriers

#: Bytes of half of the state of `work` on its way from task to task, about.
HALF = range(600, 760)


@pytest.fixture
def running(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    return coord


def checkpointed(cluster, clock, coord):
    """One more cut is committed."""
    newest = max(cluster.world.record.committed, default=0)
    clock.time += coord.machine.limits.checkpoint_every_s
    settle(cluster, clock, coord)
    assert max(cluster.world.record.committed) > newest


def results(sink):
    return [(end["kind"], end["result"].split(":")[0]) for end in sink.of("reconfiguration_ended")]


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

    def fault(name):
        if left and name == at:
            left.pop()
            if not left:
                raise Killed(name)

    coord = coordinator(cluster, clock, sink, fault=fault)
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


# --- copying ahead


def test_before_the_first_cut_nobody_knows_how_much_it_is(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    coord.submit(plan([2, 3]))
    assert coord.machine.state is State.COPYING
    settle(cluster, clock, coord)
    assert results(sink) == [("handover", "done")]


def test_without_redis_no_copying_begins(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    cluster.world.refuse.add("redis")
    coord.submit(plan([2, 3]))
    assert sink.of("reconfiguration_ended")[0]["result"].startswith("aborted: the fence could not be set")
    assert cluster.world.record.ahead == 0


@pytest.fixture
def copying(cluster, clock, sink):
    """A coordinator that copies ahead whatever little there is."""
    coord = coordinator(cluster, clock, sink, limits=Limits(ahead_bytes=-1, ahead_s=30.0))
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    return coord


def test_much_state_is_copied_ahead_under_the_old_tables(cluster, clock, sink, copying):
    copying.submit(plan([2, 3]))
    record = cluster.world.record
    assert (record.epoch, record.tables, record.handover) == (0, FIRST, 0)
    assert (record.ahead, record.coming) == (1, plan([2, 3]).tables)
    assert copying.machine.state is State.COPYING and not copying.idle
    settle(cluster, clock, copying)
    record = cluster.world.record
    assert (record.epoch, record.handover, record.ahead, record.coming) == (1, 1, 0, {})
    assert record.tables == plan([2, 3]).tables
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"] == "done" and set(end["phases"]) == {"ahead_s", "handover_s"}
    assert len(sink.of("reconfiguration_started")) == 1


def test_what_cannot_be_copied_is_given_up_before_anything_changed(cluster, clock, sink, copying):
    cluster.tasks[2].process.state[KEYS[1]] = {1}
    copying.submit(plan([2, 3]))
    cluster.all_act()
    copying.work()
    clock.time += 1
    copying.work()
    record = cluster.world.record
    assert (record.tables, record.ahead, record.base) == (FIRST, 0, 0)
    assert record.epoch == 2, "the pieces of epoch 1 are nobody's"
    assert "set" in sink.of("reconfiguration_ended")[0]["result"]
    assert repr(KEYS[1]) in sink.of("reconfiguration_ended")[0]["result"]


def test_without_redis_what_was_copied_is_not_handed_over(cluster, clock, sink, copying):
    copying.submit(plan([2, 3]))
    cluster.all_act()
    cluster.world.refuse.add("redis")
    copying.work()
    clock.time += 1
    copying.work()
    assert sink.of("reconfiguration_ended")[0]["result"].startswith("aborted: the fence could not be set")
    record = cluster.world.record
    assert (record.tables, record.handover, record.ahead) == (FIRST, 0, 0)
    cluster.world.refuse.clear()
    settle(cluster, clock, copying)
    checkpointed(cluster, clock, copying)


@pytest.mark.parametrize("dies", ["nobody", "task", "coordinator"])
def test_a_fence_that_is_refused_once_the_record_is_out_is_tried_again(cluster, clock, sink, dies):
    """There is no way back to the old tables, and the step is not over without it."""

    def fault(name):
        if name == "control:handover":
            cluster.world.refuse.add("redis")

    coord = coordinator(cluster, clock, sink, fault=fault)
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    coord.submit(plan([2, 3]))
    if dies == "coordinator":
        coord = coordinator(cluster, clock, sink)
        coord.start()
    if dies == "task":
        cluster.tasks[3].die()
    for _ in range(100):
        cluster.all_act()
        coord.work()
        clock.time += 1
    assert results(sink) == [("handover", "reset")] * (dies == "task")
    assert len(sink.of("fence_failed")) > 10
    cluster.world.refuse.clear()
    settle(cluster, clock, coord)
    record = cluster.world.record
    assert results(sink)[-1] == (("reset", "reset") if dies == "task" else ("handover", "done"))
    assert record.tables == plan([2, 3]).tables and (record.base > 0) == (dies == "task")
    assert cluster.world.fences[ID] == record.epoch
    checkpointed(cluster, clock, coord)


def test_copying_that_takes_too_long_is_given_up(cluster, clock, sink, copying):
    copying.submit(plan([2, 3]))
    clock.time += 31
    copying.work()
    assert results(sink) == [("handover", "aborted")]
    settle(cluster, clock, copying)
    assert cluster.world.record.tables == FIRST


def test_a_process_lost_while_copying_restores_the_old_tables(cluster, clock, sink, copying):
    copying.submit(plan([2, 3]))
    cluster.tasks[3].die()
    settle(cluster, clock, copying)
    assert results(sink) == [("handover", "aborted"), ("reset", "reset")]
    record = cluster.world.record
    assert (record.tables, record.ahead) == (FIRST, 0)


def test_killed_while_copying(cluster, clock, sink):
    armed = []

    def fault(name):
        if armed and name == "control:ahead":
            raise Killed(name)

    coord = coordinator(cluster, clock, sink, fault=fault, limits=Limits(ahead_bytes=-1))
    coord.start()
    settle(cluster, clock, coord)
    armed.append(True)
    with pytest.raises(Killed):
        coord.submit(plan([2, 3]))
    successor = coordinator(cluster, clock, sink)
    successor.start()
    settle(cluster, clock, successor)
    record = cluster.world.record
    assert (record.tables, record.ahead, record.base) == (plan([2, 3]).tables, 0, 0)
    assert results(sink) == [("handover", "done")], "its successor begins it again"


def test_killed_while_giving_up(cluster, clock, sink):
    """Found by the pair: the record was written and the journal still open, so the next coordinator waited for reports
    of a handover that nobody had been told of, and restored everything when they were late.
    """

    def fault(name):
        if name == "control:ahead":
            cluster.world.refuse.add("redis")
        if name == "control:run":
            raise Killed(name)

    coord = coordinator(cluster, clock, sink, limits=Limits(ahead_bytes=-1), fault=lambda name: None)
    coord.start()
    settle(cluster, clock, coord)
    coord._fault = fault
    with pytest.raises(Killed):
        coord.submit(plan([2, 3]))
    assert cluster.world.journal.open and cluster.world.record.ahead == 0
    cluster.world.refuse.clear()
    successor = coordinator(cluster, clock, sink)
    successor.start()
    settle(cluster, clock, successor)
    assert results(sink)[-1] == ("handover", "aborted")
    assert (cluster.world.record.tables, cluster.world.record.base) == (FIRST, 0)


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


# --- in steps

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

    def fault(name):
        if left and name == at:
            left.pop()
            if not left:
                raise Killed(name)

    coord = stepping(cluster, clock, sink, fault=fault, ahead=ahead)
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
