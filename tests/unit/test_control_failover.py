"""Tasks that are lost, silent or back: others take over, nobody waits for them, and they return."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.control import Phase, Report
from leeward.core.keys import GROUPS
from leeward.core.migration import Machine
from leeward.core.migration.checkpoints import SHARE, interval
from leeward.core.migration.failover import evacuate
from leeward.core.migration.restoring import known_cuts
from leeward.core.orders import Assigned, Limits, RecoverRequested, State
from leeward.core.table import even_table, replicas
from tests.helpers.control_twins import FIRST, ID, SLOTS, TASKS, coordinator, plan, settle


@pytest.fixture
def running(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink, limits=Limits(held_s=1000.0))
    coord.start()
    until(cluster, clock, coord, lambda: len(cluster.world.record.committed) == 2)
    settle(cluster, clock, coord)
    return coord


def until(cluster, clock, coord, done, *, rounds=100):
    """All tasks that can act do, and supervisors do not, until this is so."""
    for _ in range(rounds):
        coord.silence(cluster.storm.silent())
        coord.work()
        coord.tidy()
        cluster.check_cuts()
        cluster.all_act()
        if done():
            return
        clock.time += 0.5
    raise AssertionError(f"{coord.machine.state} {coord.machine.story[-5:]}")


def tasks_of(sink, action):
    return [note["tasks"] for note in sink.of(action)]


# --- who takes the groups

COMPONENTS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1)


@given(st.data(), COMPONENTS)
def test_groups_of_tasks_that_are_gone_and_no_others_go_to_tasks_that_are_there(data, sizes):
    numbers = iter(range(1, 100))
    members = {name: [next(numbers) for _ in range(size)] for name, size in sizes.items()}
    tasks = {task: name for name, there in members.items() for task in there}
    owners = {name: data.draw(st.lists(st.sampled_from(there), min_size=1)) for name, there in members.items()}
    tables = {name: tuple(listed[group % len(listed)] for group in range(GROUPS)) for name, listed in owners.items()}
    gone = data.draw(st.sets(st.sampled_from(sorted(tasks))))
    after, left_out = evacuate(tasks, tables, gone)
    assert evacuate(tasks, after, gone) == (after, left_out), "once is enough"
    assert set(left_out) == gone - {owner for table in after.values() for owner in table}
    for name, table in after.items():
        there = set(members[name]) - gone
        if not there:
            assert table == tables[name], "nobody else can take them"
            continue
        assert set(table) <= there
        assert all(new == old for new, old in zip(table, tables[name], strict=True) if old not in gone)
        check_heirs(tables[name], table, there, gone)


def check_heirs(before, after, there, gone):
    """A warm task takes all that one had; without one they are spread, and the least loaded get them."""
    lost, warm = gone & set(before), there - set(before)
    heirs = {owner: {after[group] for group in range(GROUPS) if before[group] == owner} for owner in lost}
    whole = [owner for owner in lost if heirs[owner] <= warm and len(heirs[owner]) == 1]
    assert len(whole) >= min(len(lost), len(warm)) - (not there - warm)
    spread = {new for owner in lost if owner not in whole for new in heirs[owner]}
    counts = Counter(after)
    for task in spread - {next(iter(heirs[owner])) for owner in whole}:
        assert counts[task] <= min(counts.values()) + 1


def test_without_a_warm_task_the_others_share():
    tasks = dict.fromkeys((1, 2, 3), "a")
    tables, left_out = evacuate(tasks, {"a": even_table([1, 2, 3])}, {2})
    assert left_out == (2,)
    assert sorted(Counter(tables["a"]).values()) == [64, 64]


# --- tasks that do no work


@pytest.mark.parametrize("how", ["silent", "started anew"])
def test_a_warm_task_is_left_out_while_the_stream_goes_on_and_returns(cluster, clock, sink, running, how):
    if how == "silent":
        cluster.tasks[4].stop()
        until(cluster, clock, running, lambda: tasks_of(sink, "tasks_left_out") == [[4]] and running.idle)
        record, newest = cluster.world.record, cluster.world.record.committed[-1]
        assert (record.absent, record.left_out, record.base, record.tables) == ((4,), (4,), 0, FIRST)
        until(cluster, clock, running, lambda: cluster.world.record.committed[-1] > newest)
        assert 4 not in cluster.written[cluster.world.record.committed[-1]]
        cluster.tasks[4].go_on()
    else:
        cluster.tasks[4].die()
    settle(cluster, clock, running, rounds=20)
    assert tasks_of(sink, "tasks_left_out") == tasks_of(sink, "tasks_returned") == [[4]]
    record = cluster.world.record
    assert (record.absent, record.left_out, record.restarts, record.base) == ((), (), (), 0)
    assert not sink.of("reset") and not sink.of("reconfiguration_ended")
    running.submit(plan([4]))
    settle(cluster, clock, running)
    assert cluster.world.record.tables == plan([4]).tables, "it can be given work again"


def test_two_that_are_lost_one_after_the_other_return_together(cluster, clock, sink, running):
    for task in (4, 3):
        cluster.tasks[task].stop()
        until(cluster, clock, running, lambda: running.idle and task in cluster.world.record.absent)  # noqa: B023
    assert cluster.world.record.left_out == (3, 4)
    for task in (4, 3):
        cluster.tasks[task].go_on()
    settle(cluster, clock, running, rounds=20)
    assert tasks_of(sink, "tasks_returned") == [[3, 4]] and cluster.world.record.base == 0


def test_a_coordinator_that_takes_over_knows_who_is_left_out(cluster, clock, sink, running):
    cluster.tasks[4].stop()
    until(cluster, clock, running, lambda: running.idle and cluster.world.record.absent == (4,))
    successor = coordinator(cluster, clock, sink)
    successor.start()
    until(cluster, clock, successor, lambda: successor.idle)
    assert cluster.world.record.absent == (4,)
    cluster.tasks[4].go_on()
    settle(cluster, clock, successor, rounds=20)
    assert cluster.world.record.base == 0


def test_a_task_that_is_back_and_not_heard_keeps_nobody_from_anything(cluster, clock, sink, running, monkeypatch):
    cluster.tasks[4].stop()
    until(cluster, clock, running, lambda: running.idle and cluster.world.record.absent == (4,))
    deaf, act, silent = cluster.tasks[4], type(cluster.tasks[4]).act, type(cluster.storm).silent
    monkeypatch.setattr(type(deaf), "act", lambda task: None if task is deaf else act(task))
    monkeypatch.setattr(type(cluster.storm), "silent", lambda storm: frozenset())  # its beat comes, its report does not
    newest, rested = cluster.world.record.committed[-1], []
    until(cluster, clock, running, lambda: rested.append(running.idle) or len(sink.of("rejoin_ended")) == 3, rounds=200)
    assert cluster.world.record.committed[-1] >= newest + 2, "checkpoints go on"
    assert sum(rested) >= len(rested) / 4, "and requests are answered"
    monkeypatch.setattr(type(deaf), "act", act)
    monkeypatch.setattr(type(cluster.storm), "silent", silent)
    cluster.tasks[4].go_on()
    settle(cluster, clock, running, rounds=80)
    assert cluster.world.record.absent == () and tasks_of(sink, "tasks_returned") == [[4]]


# --- tasks that own groups


@pytest.mark.parametrize("how", ["silent", "with its node"])
def test_others_restore_what_a_lost_task_owned_and_it_returns(cluster, clock, sink, running, how):
    running.submit(plan([3]))
    settle(cluster, clock, running)
    until(cluster, clock, running, lambda: running.idle and cluster.world.record.committed[-1] > 3)
    cut = cluster.world.record.committed[-1]
    if how == "silent":
        cluster.tasks[3].stop()
    else:
        cluster.lose_node("n2")  # and with it task 4, which is warm
    until(cluster, clock, running, lambda: sink.of("reset") and running.idle)
    record = cluster.world.record
    lost = (3,) if how == "silent" else (3, 4)
    assert (record.phase, record.base, record.cut, record.left_out) == (Phase.RUN, record.epoch, cut, lost)
    assert replicas(record.tables["work"]) == (2,)
    until(cluster, clock, running, lambda: cluster.world.record.committed[-1] > cut + 1)
    base = record.base
    if how == "silent":
        cluster.tasks[3].go_on()
    settle(cluster, clock, running, rounds=30)
    record = cluster.world.record
    assert (record.base, record.absent) == (base, ()), "to return takes no RESTORE"
    assert len(sink.of("reset")) == 1 and tasks_of(sink, "tasks_returned")


def test_a_task_that_nobody_can_replace_is_waited_for(cluster, clock, sink, running):
    """The source has one task. Its successor asks for a reset."""
    cluster.lose_node("n1")  # and with it the only replica of `work`
    for _ in range(10):
        running.silence(cluster.storm.silent())
        running.work()
        cluster.all_act()
        clock.time += 1.0
    assert not sink.of("reset") and cluster.world.record.phase is Phase.RUN
    settle(cluster, clock, running, rounds=60)  # Storm places it on another node
    assert sink.of("reset")[0]["why"].startswith(("task 1", "task 2"))
    assert cluster.world.record.absent == ()


def test_a_task_that_is_heard_again_has_asked_for_its_reset_before(cluster, clock, sink, running):
    """Its request is in ZooKeeper before its first beat is in Redis, but the watch may fire later. A person's request
    that began between the two was ended by that reset a moment later.
    """
    source = cluster.tasks[1]
    source.stop()
    running.silence(cluster.storm.silent())
    assert running.idle and running.machine.away == (1,)
    source.die()
    source.act()  # the successor reads the record, and finds that it took no part in this base
    running.silence(cluster.storm.silent())
    assert not running.idle and len(sink.of("reset")) == 1
    settle(cluster, clock, running)
    assert running.machine.away == () and cluster.world.record.phase is Phase.RUN


def test_a_task_lost_in_a_restore_is_left_out_of_the_next_try(cluster, clock, sink, running):
    cluster.tasks[2].stop()
    until(cluster, clock, running, lambda: running.machine.state is State.RESTORING)
    cluster.tasks[4].stop()
    until(cluster, clock, running, lambda: running.idle)
    assert cluster.world.record.left_out == (2, 4)
    assert replicas(cluster.world.record.tables["work"]) == (3,)


# --- plans meanwhile


def test_a_plan_is_refused_while_tasks_are_away(cluster, clock, sink, running):
    cluster.tasks[4].stop()
    until(cluster, clock, running, lambda: running.idle and cluster.world.record.absent == (4,))
    cluster.world.requests["request-1"] = {}
    running.submit(plan([2, 3]), "request-1")
    until(cluster, clock, running, lambda: sink.of("plan_refused"))  # a checkpoint may be under way
    assert sink.of("plan_refused")[-1]["why"] == "aborted: tasks are away"
    assert str(cluster.world.answers["request-1"]) == "aborted: tasks are away"
    assert cluster.world.record.tables == FIRST and not sink.of("reconfiguration_started")


def test_a_plan_is_refused_while_a_task_is_silent(cluster, clock, sink, running):
    """Nobody is paused for a report that cannot come."""
    cluster.tasks[1].stop()
    running.silence(cluster.storm.silent())
    running.submit(plan([2, 3]))
    assert sink.of("plan_refused") and cluster.world.record.phase is Phase.RUN


# --- without a readable cut


@pytest.fixture
def held(cluster, clock, sink, running):
    """No cut can be read. What they had is in the result."""
    parts = dict(cluster.vault.parts)
    cluster.vault.parts.clear()
    cluster.tasks[2].die()
    until(cluster, clock, running, lambda: running.machine.state is State.HELD)
    return parts


def test_the_topology_is_held_until_a_person_chooses_a_cut(cluster, clock, sink, running, held):
    older, newest = sorted(held)
    (note,) = sink.of("held")
    assert note["cuts"] == [older, newest] and f"cut {older}, " in note["why"] and f"cut {newest}, " in note["why"]
    cluster.vault.parts[older] = held[older]
    running.choose(older)
    settle(cluster, clock, running)
    record = cluster.world.record
    assert record.cut == older and newest not in record.committed
    assert sink.of("cut_chosen") == [{"topology": "app", "cut": older}]


def test_status_lists_each_cut_that_may_be_chosen(cluster, held):
    """The record in force has the older cut alone."""
    assert known_cuts(cluster.world.record, cluster.world.journal) == tuple(sorted(held))
    assert cluster.world.record.committed != tuple(sorted(held))


def test_each_cut_may_still_be_chosen_when_another_coordinator_has_taken_over(cluster, clock, sink, running, held):
    """The record in force has the older cut alone, as the newer one was given up before it."""
    successor = coordinator(cluster, clock, sink, limits=running.machine.limits)
    successor.start()
    cluster.vault.parts.update(held)
    successor.choose(max(held))
    settle(cluster, clock, successor)
    record = cluster.world.record
    assert not sink.of("choice_refused")
    assert record.cut == max(held) and record.cut in record.committed, "the next reset goes back no further"


def test_a_person_may_choose_to_begin_from_empty_state(cluster, clock, sink, running, held):
    running.choose(0)
    settle(cluster, clock, running)
    assert cluster.world.record.cut == 0 and cluster.world.record.base > 0


def test_a_cut_that_there_is_not_is_refused_and_it_stays_held(cluster, clock, sink, running, held):
    running.choose(99)
    assert "cut 99 is none of" in sink.of("choice_refused")[0]["why"]
    assert running.machine.state is State.HELD


def test_a_choice_is_refused_where_nothing_is_held(cluster, clock, sink, running):
    running.choose(1)
    assert sink.of("choice_refused")[0]["why"] == "the topology is not held: it is idle"


def test_a_coordinator_that_takes_over_looks_again_and_holds(cluster, clock, sink, running, held):
    successor = coordinator(cluster, clock, sink, limits=running.machine.limits)
    successor.start()
    assert successor.machine.state is State.HELD
    until(cluster, clock, successor, lambda: len(sink.of("held")) == 2)
    cluster.vault.parts.update(held)
    clock.time += successor.machine.limits.held_s + 1
    settle(cluster, clock, successor)
    assert cluster.world.record.cut == max(held)


# --- how often checkpoints are taken


@pytest.mark.parametrize(("seconds", "wait_s"), [(0.0, 2.0), (0.04, 2.0), (0.2, 0.2 / SHARE), (5.0, 15.0)])
def test_checkpoints_follow_each_other_as_soon_as_they_are_cheap(seconds, wait_s):
    machine = Machine(topology_id=ID, tasks=TASKS)
    reports = {task: Report(task=task, component=TASKS[task], seconds=seconds / task) for task in TASKS}
    assert interval(replace(machine, arrived=reports)) == pytest.approx(wait_s)


@pytest.mark.parametrize(("periods", "wait_s"), [((0.0, 9.0, 0.0), 9.0), ((9.0, 4.0, 0.0), 4.0), ((60.0, 90.0), 15.0)])
def test_checkpoints_are_as_rare_as_the_stores_of_all_tasks_allow(periods, wait_s):
    machine = Machine(topology_id=ID, tasks=TASKS)
    reports = {
        task: Report(task=task, component=TASKS[task], seconds=0.2, period_s=period_s)
        for task, period_s in zip(TASKS, periods, strict=False)
    }
    assert interval(replace(machine, arrived=reports)) == wait_s


def test_checkpoints_are_never_rarer_than_the_limit_says():
    machine = Machine(topology_id=ID, tasks=TASKS, limits=Limits(checkpoint_every_s=1.0))
    assert interval(machine) == 1.0


def test_a_reset_ends_though_storm_had_a_replica_nowhere_when_it_began(cluster, clock, sink, running):
    """Found by the fault run, 100 s after a supervisor was killed: each coordinator in turn ended with a KeyError when
    it told of the reset's changes, and tasks that Storm had not touched waited to be replaced.
    """
    record, machine = running.machine.record, running.machine
    slots = {task: slot for task, slot in machine.slots.items() if task != 2}
    running._feed(Assigned(managed=False, epoch=None, reason="unknown node", slots=slots))
    running._feed(RecoverRequested(epoch=record.epoch, why="tuples are missing"))
    until(cluster, clock, running, lambda: running.machine.state is State.RESTORING, rounds=200)
    assert running.machine.record.restarts == ()
    until(cluster, clock, running, lambda: running.machine.state is State.IDLE)
    assert sink.of("reconfiguration_ended")[-1]["result"].startswith("reset: ")


@pytest.mark.parametrize("live", [True, False])
def test_a_plan_that_has_no_cut_to_fall_back_to_does_not_begin(cluster, clock, sink, live):
    """The torture lane found a topology that was held for ever: the checkpoint before the first restart had failed, the
    restart began all the same, and its own cut lay in the swap area of a node that was lost then.
    """
    coord = coordinator(cluster, clock, sink, limits=Limits(live=live))
    coord.start()
    cluster.fail(3, "ReadOnlyError: replica")
    coord.submit(plan([2], t2=SLOTS[5]))
    until(cluster, clock, coord, lambda: sink.of("checkpoint_failed"))
    assert coord.machine.state is State.IDLE and cluster.world.record.phase is Phase.RUN
    assert sink.of("plan_refused")[-1]["why"] == "aborted: task 3 (work): ReadOnlyError: replica"
    coord.submit(plan([2], t2=SLOTS[5]))
    until(cluster, clock, coord, lambda: sink.of("reconfiguration_ended") and coord.idle)
    assert sink.of("reconfiguration_ended")[-1]["result"] == "done"
