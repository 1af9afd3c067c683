"""State that is copied ahead of a handover, under the old tables: it is handed over then, or given up."""

from __future__ import annotations

import pytest

from leeward.core.orders import Limits, State
from tests.helpers.control_twins import FIRST, ID, KEYS, Killed, checkpointed, coordinator, plan, results, settle


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
