"""The coordinator on in-memory twins: every way a restart can go, and a kill after each step.

Handovers: test_control_handover.py.
"""

from __future__ import annotations

import pytest

from leeward.control.coordinator import STEPS
from leeward.control.errors import LostLeadershipError
from leeward.core.control import Phase, Report
from leeward.core.errors import ProtocolError
from leeward.core.journal import Journal
from leeward.core.migration import TRANSITIONS, Machine, step
from leeward.core.orders import DeadlinePassed, Limits, State
from leeward.core.plan import Slot
from tests.helpers.control_twins import FIRST, ID, TASKS, Killed, carry_on, coordinator, plan, settle


@pytest.fixture
def running(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink, limits=Limits(live=False))
    coord.start()
    carry_on(cluster, clock, coord, lambda: len(cluster.world.record.committed) == 1)
    return coord


def test_first_record_and_checkpoints(cluster, clock, sink, running):
    assert cluster.world.record.tables == FIRST
    carry_on(cluster, clock, running, lambda: len(cluster.world.record.committed) == 2)
    first, second = cluster.world.record.committed
    carry_on(cluster, clock, running, lambda: cluster.world.record.committed[0] == second)
    assert first not in cluster.world.cuts[ID]
    assert f"cut-{first}" not in cluster.world.barriers
    assert cluster.world.record.phase is Phase.RUN


def test_the_first_checkpoint_comes_early_and_the_others_as_soon_as_they_are_cheap(cluster, clock, sink):
    """Until the first one a lost process costs everything."""
    coord, began = coordinator(cluster, clock, sink), clock.time
    coord.start()
    carry_on(cluster, clock, coord, lambda: len(cluster.world.record.committed) == 1)
    assert 4.9 <= clock.time - began <= 5.5
    carry_on(cluster, clock, coord, lambda: len(cluster.world.record.committed) == 2)
    assert 6.9 <= clock.time - began <= 8.5


def test_the_first_checkpoint_begins_when_every_task_has_been_heard(cluster, clock, sink):
    """It began while Storm was still starting workers, and a plan had to wait for its end, 12 s."""
    coord, began = coordinator(cluster, clock, sink), clock.time
    coord.start()
    coord.silence(frozenset(), unheard=frozenset({4, 5}))
    carry_on(cluster, clock, coord, lambda: clock.time - began > 8.0)
    assert coord.machine.state is State.IDLE and coord.machine.away
    coord.silence(frozenset(), unheard=frozenset({5}))
    assert coord.machine.state is State.IDLE
    coord.silence(frozenset())
    carry_on(cluster, clock, coord, lambda: len(cluster.world.record.committed) == 1)
    assert clock.time - began < 9.5
    assert [note["tasks"] for note in sink.of("tasks_awaited")] == [[4, 5]] and len(sink.of("tasks_heard")) == 1


def test_a_task_that_is_never_heard_is_named_by_the_first_checkpoint(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink)
    coord.start()
    coord.silence(frozenset(), unheard=frozenset({5}))
    for _ in range(60):
        coord.work()
        cluster.all_act(but=(5,))
        clock.time += 0.5
    assert [note["why"] for note in sink.of("checkpoint_failed")] == ["missing after 10.0 s: 5 (sink)"]


def test_scale_out_without_a_move_does_not_touch_storm(cluster, clock, sink, running):
    before = {id: task.process for id, task in cluster.tasks.items()}
    running.submit(plan([2, 3]))
    settle(cluster, clock, running)
    assert cluster.world.rebalances == []
    assert cluster.world.record.tables == plan([2, 3]).tables
    assert {id: task.process for id, task in cluster.tasks.items()} == before
    (end,), cut = sink.of("reconfiguration_ended"), cluster.world.record.cut
    assert end["result"] == "done"
    assert [(c["component"], c["kind"]) for c in end["changes"]] == [("work", "scale-out")]
    assert end["bytes_exported"] == sum(cluster.world.barriers[f"cut-{cut}"][task].bytes for task in TASKS) > 1000
    assert cluster.world.placement is not None, "what is there is pinned"


def test_move(cluster, clock, sink, running):
    wanted = plan([2], t2=Slot("n3", 2))
    running.submit(wanted)
    settle(cluster, clock, running)
    assert cluster.slots == wanted.placement
    assert cluster.world.rebalances == [("app", 4, {"sink": 1, "source": 1, "work": 3})]
    (end,) = sink.of("reconfiguration_ended")
    assert set(end["phases"]) == {"announce_s", "move_s", "restore_s"}
    assert end["pause_s"] == pytest.approx(sum(end["phases"].values()), abs=1e-3)


def test_deadline_at_barrier_1_aborts(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    clock.time += running.machine.limits.pause_s + 1
    running.work()
    record = cluster.world.record
    assert record.phase is Phase.RUN and record.tables == FIRST
    assert record.epoch == 2 and record.base == 0
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"].startswith("aborted: no report after 20.0 s from 1 (source), 2 (work)")
    settle(cluster, clock, running)
    assert cluster.world.rebalances == []


@pytest.mark.parametrize("error", ["ReadOnlyError: replica", "OutOfMemoryError: maxmemory", "FencedError: newer"])
def test_error_at_export_aborts(cluster, clock, sink, running, error):
    cluster.fail(3, error)
    running.submit(plan([2, 3], t2=Slot("n3", 2)))
    settle(cluster, clock, running)
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"] == f"aborted: task 3 (work): {error}"
    assert cluster.world.record.tables == FIRST
    assert cluster.world.record.base == 0, "memory is still that of the first start"


def test_redis_down_before_the_pause_aborts(cluster, clock, sink, running):
    cluster.world.refuse.add("redis")
    running.submit(plan([2, 3]))
    assert cluster.world.record.phase is Phase.RUN
    cluster.world.refuse.clear()
    settle(cluster, clock, running)
    assert sink.of("reconfiguration_ended")[0]["result"].startswith("aborted: the fence could not be set")


def test_redis_down_at_restore_waits_for_it(cluster, clock, sink, running):
    running.submit(plan([2], t2=Slot("n3", 2)))
    cluster.all_act()
    cluster.world.refuse.add("redis")
    for _ in range(20):
        running.work()
        clock.time += 1
    assert cluster.world.record.phase is Phase.MOVE, "nobody restores while the fence cannot be set"
    cluster.world.refuse.clear()
    settle(cluster, clock, running)
    assert sink.of("reconfiguration_ended")[0]["result"] == "done"


def test_misfit_is_undone_and_nothing_is_lost(cluster, clock, sink, running):
    before = dict(cluster.slots)
    running.submit(plan([2, 3], t2=Slot("n9", 1)))
    settle(cluster, clock, running)
    (end,) = sink.of("reconfiguration_ended")
    assert end["result"] == "undone: the plugin reports: plan names unknown node 'n9'"
    assert cluster.slots == before
    assert cluster.world.record.tables == FIRST
    assert cluster.world.record.base > 0 and cluster.world.record.cut in cluster.world.record.committed


def test_nimbus_away_is_undone(cluster, clock, sink, running):
    cluster.world.refuse.add("nimbus")
    running.submit(plan([2], t2=Slot("n3", 2)))
    for _ in range(80):
        cluster.all_act()
        running.work()
        clock.time += 1
    assert sink.of("rebalance_failed")
    assert sink.of("reconfiguration_ended")[0]["result"].startswith("undone: Storm has not placed it after 5 calls")
    assert cluster.world.record.phase is Phase.RUN and cluster.world.record.tables == FIRST


def test_node_lost_while_undoing_takes_any_slot(cluster, clock, sink, running):
    running.submit(plan([2], t2=Slot("n9", 1)))
    cluster.all_act()
    running.work()
    cluster.lose_node("n2")
    settle(cluster, clock, running)
    assert cluster.world.record.phase is Phase.RUN
    assert all(slot.node != "n2" for slot in cluster.slots.values())
    assert cluster.world.placement is None, "Storm may place until the next plan"


def test_lost_process_resets_to_the_last_cut(cluster, clock, sink, running):
    cut = cluster.world.record.committed[-1]
    cluster.tasks[2].die()
    settle(cluster, clock, running)
    assert cluster.world.record.cut == cut and cluster.world.record.base == cluster.world.record.epoch
    (reset,) = sink.of("reset")
    assert reset["why"].startswith("task 2") and reset["cut"] == cut


def test_lost_process_in_the_pause_resets_with_old_tables(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    cluster.tasks[3].die()
    settle(cluster, clock, running)
    assert cluster.world.record.tables == FIRST
    results = [end["result"] for end in sink.of("reconfiguration_ended")]
    assert results[0].startswith("aborted: task 3") and results[1].startswith("reset: task 3")


def test_damaged_cut_falls_back_to_the_one_before(cluster, clock, sink, running):
    carry_on(cluster, clock, running, lambda: len(cluster.world.record.committed) == 2)
    older, newest = cluster.world.record.committed
    del cluster.vault.parts[newest]["work"][2]
    cluster.tasks[2].die()
    settle(cluster, clock, running)
    assert cluster.world.record.cut == older
    assert any(f"cut {newest} cannot be read: restoring cut {older}" in a["why"] for a in sink.of("alert"))


@pytest.mark.parametrize("allowed", [True, False])
def test_no_readable_cut_left(cluster, clock, sink, allowed):
    coord = coordinator(cluster, clock, sink, limits=Limits(restore_from_start=allowed, keep_cuts=1))
    coord.start()
    settle(cluster, clock, coord)
    carry_on(cluster, clock, coord, lambda: cluster.world.record.committed != ())
    parts = dict(cluster.vault.parts)
    cluster.vault.parts.clear()
    cluster.tasks[2].die()
    if allowed:
        settle(cluster, clock, coord)
        assert cluster.world.record.cut == 0
        return
    carry_on(cluster, clock, coord, lambda: coord.machine.state is State.HELD)
    assert cluster.world.record.phase is Phase.RESTORE, "the stream stays paused"
    (held,) = sink.of("held")
    cut = cluster.world.record.cut
    assert f"cut {cut}, " in held["why"] and held["cuts"] == [cut] and "leeward recover" in held["remedy"]
    cluster.vault.parts.update(parts)
    settle(cluster, clock, coord)
    assert cluster.world.record.cut == cut


def test_barrier_2_late_tries_again_under_a_new_epoch(cluster, clock, sink, running):
    running.submit(plan([2], t2=Slot("n3", 2)))
    cluster.all_act()
    for _ in range(250):
        running.work()
        cluster.all_act(but=(4,))
        clock.time += 1
    assert cluster.world.record.phase is Phase.RESTORE and cluster.world.record.epoch >= 4
    assert "missing 4 (work)" in sink.of("alert")[-1]["why"]
    settle(cluster, clock, running)


@pytest.mark.parametrize("fate", ["done", "misfit"])
@pytest.mark.parametrize("at", STEPS[: STEPS.index("control:ahead")])  # a restart's
@pytest.mark.parametrize("occurrence", [1, 2])
def test_killed_after_each_step(cluster, clock, sink, at, occurrence, fate):
    seen = []

    def fault(name):
        seen.append(name)
        if seen.count(at) == occurrence and armed:
            armed.clear()
            raise Killed(name)

    armed = []
    coord = coordinator(cluster, clock, sink, fault=fault)
    coord.start()
    settle(cluster, clock, coord)
    seen.clear()
    armed.append(True)
    node = "n3" if fate == "done" else "n9"
    killed = False
    try:
        if at == "claimed":
            coord.submit(plan([2, 3], t2=Slot(node, 2)))
            coord = coordinator(cluster, clock, sink, fault=fault)
            coord.start()
        coord.submit(plan([2, 3], t2=Slot(node, 2)))
        carry_on(cluster, clock, coord, lambda: sink.of("reconfiguration_ended") and len(seen) > 25, rounds=60)
    except Killed:
        killed = True
    except AssertionError:
        pass
    armed.clear()
    if not killed:
        assert occurrence == 2 or (at, fate) == ("journal:undo", "done"), "this step comes at least once"
        return
    # somebody dies while nobody coordinates, in half of the cases
    if occurrence == 2:
        cluster.tasks[4].die()
    successor = coordinator(cluster, clock, sink)
    successor.start()
    settle(cluster, clock, successor)
    record = cluster.world.record
    assert record.phase is Phase.RUN
    assert {id(t): t.tables for t in cluster.tasks.values() if t.tables != record.tables} == {}
    assert record.tables in (FIRST, plan([2, 3]).tables)
    for cut in record.committed:
        assert cluster.written[cut] == TASKS.keys()
    if at == "claimed":
        return  # it had not read anything yet, so it has nothing to write
    with pytest.raises(LostLeadershipError):
        clock.time += 1000
        for _ in range(5):
            coord.work()
            clock.time += 100
    assert cluster.world.record is record


def test_the_table_covers_every_event_in_every_state_or_tells_the_story():
    machine = Machine(topology_id=ID, tasks=TASKS)
    with pytest.raises(ProtocolError, match="event DeadlinePassed in state off of app-1-1; before: nothing"):
        step(machine, DeadlinePassed(), now=1.0)
    events = {event for _, event in TRANSITIONS}
    missing = {(s, e) for s in State if s is not State.OFF for e in events} - TRANSITIONS.keys()
    assert {e.__name__ for _, e in missing} == {"Restarted"}


def test_journal_survives_its_json():
    journal = Journal(
        kind="restart", epoch=3, cut=4, last_cut=4, old_tables=FIRST, new_tables=plan([2, 3]).tables,
        old_slots=plan([2]).placement, new_slots=plan([2]).placement, reason="r", times={"announce": 1.5},
        order={"work": (3, 1)}, steps=1, step_tables=FIRST, unreadable={2: "it is missing"},
    )  # fmt: skip
    assert Journal.from_json(journal.to_json()) == journal
    with pytest.raises(ProtocolError, match="'version' is 8"):
        Journal.from_json(journal.to_json().replace('"version":7', '"version":8'))
    with pytest.raises(ProtocolError, match="not a journal"):
        Journal.from_json("[]")


def test_late_reports_of_an_earlier_cut_change_nothing(cluster, clock, sink, running):
    running.submit(plan([2, 3]))
    cut = running.machine.record.cut
    cluster.world.barriers.setdefault(f"cut-{cut - 1}", {})[2] = Report(task=2, component="work", error="old")
    running.work()
    assert running.machine.state is State.PAUSING
    settle(cluster, clock, running)


@pytest.mark.parametrize("at", ["journal:restore", "fence", "control:restore"])
@pytest.mark.parametrize("way", ["reset", "retry of a reset", "retry of a plan"])
def test_killed_around_a_restore(cluster, clock, sink, way, at):
    """The fence may already be above the record: the successor must not stay under it."""
    armed = []

    def fault(name):
        if armed and name == at:
            armed.clear()
            raise Killed(name)

    coord = coordinator(cluster, clock, sink, fault=fault)
    coord.start()
    settle(cluster, clock, coord)
    carry_on(cluster, clock, coord, lambda: cluster.world.record.committed != ())
    newest = cluster.world.record.committed[-1]
    if way == "retry of a plan":
        coord.submit(plan([2], t2=Slot("n3", 2)))
        cluster.all_act()
    else:
        cluster.tasks[2].die()
    if way != "reset":  # barrier 2 is late: a second RESTORE
        while cluster.world.record.phase is not Phase.RESTORE:
            cluster.tasks[2].act()
            coord.work()
            clock.time += 0.5
        clock.time += coord.machine.limits.restore_s + 1
    armed.append(True)
    with pytest.raises(Killed):
        for _ in range(20):
            coord.work()
            if way == "reset":
                cluster.all_act()
            clock.time += 0.5
    successor = coordinator(cluster, clock, sink)
    successor.start()
    settle(cluster, clock, successor)
    clock.time += 20
    settle(cluster, clock, successor)
    clock.time += 20
    settle(cluster, clock, successor)
    assert cluster.world.fences[ID] <= cluster.world.record.epoch
    assert cluster.world.record.committed[-1] > newest, "the tasks in force may write"
