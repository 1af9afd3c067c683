"""Tasks that are absent, and come back elsewhere; the interleavings are in tests/sim/test_pair.py."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import ControlRecord
from leeward.core.instructions import (
    BeforeCheckpoint,
    Deliver,
    DeliverPulse,
    Export,
    HandedOver,
    Kind,
    Marker,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
)
from leeward.core.protocol import PRACTICE, TaskProtocol

#: 1 -> 2, 3 (3 is warm) -> 4
TABLES = {"pass": (2,) * 128}
RUN = ControlRecord(tables=TABLES)
LEAVE = replace(RUN, epoch=1, handover=1, absent=(3,))
TAKEN = replace(LEAVE, epoch=2, restarts=(3,))
JOIN = replace(RUN, epoch=3, handover=3)
CALL = Send(Marker(kind=Kind.CALL, number=2), TABLES)


def route(record: ControlRecord) -> Marker:
    return Marker(kind=Kind.ROUTE, number=record.handover, body=record.to_json())


def call(number: int = 2) -> Marker:
    return Marker(kind=Kind.CALL, number=number)


def cut(number: int) -> Marker:
    return Marker(kind=Kind.CHECKPOINT, number=number, body=RUN.to_json())


def passed(number: int) -> list:
    """What a task does when that cut is aligned."""
    return [BeforeCheckpoint(number), Send(cut(number)), Export(number, RUN)]


def left() -> TaskProtocol:
    """Task 3, which has passed the marker that makes it absent."""
    protocol = TaskProtocol(3, (1,))
    protocol.on_record(RUN, first=True)
    assert protocol.on_marker(1, route(LEAVE)) == [Send(route(LEAVE), TABLES), HandedOver(1)]
    assert protocol.mode is Mode.AWAY
    return protocol


def downstream() -> TaskProtocol:
    """Task 4, for which task 3 is absent."""
    protocol = TaskProtocol(4, (2, 3))
    protocol.on_record(RUN, first=True)
    assert protocol.on_marker(2, route(LEAVE)) == [], "task 3 still sends that marker"
    assert protocol.on_marker(3, route(LEAVE)) == [Send(route(LEAVE), TABLES), HandedOver(1)]
    return protocol


def test_nobody_waits_for_who_is_absent():
    protocol = downstream()
    assert protocol.on_marker(2, cut(1)) == passed(1)
    assert protocol.on_tuple(2, "a") == [Deliver("a")]


def test_the_marker_that_leaves_a_lost_task_out_is_not_waited_for_on_its_channel():
    """Found by the coordinator's tests with real tasks: the lost process sends nothing, and its successor stands aside.

    Everybody downstream waited until the handover was late, and then all restored.
    """
    protocol = TaskProtocol(4, (2, 3))
    protocol.on_record(RUN, first=True)
    without = replace(LEAVE, left_out=(3,))
    assert protocol.on_marker(2, route(without)) == [Send(route(without), TABLES), HandedOver(1)]
    assert protocol.on_marker(2, cut(1)) == passed(1)
    assert protocol.on_marker(3, route(without)) == [], "it was only silent"
    assert protocol.on_marker(2, cut(2)) == passed(2)


def test_a_checkpoint_that_a_lost_task_never_passed_does_not_hold_back_the_marker_that_leaves_it_out():
    """Found by the coordinator's tests with real tasks: the route marker came behind the checkpoint's."""
    protocol = TaskProtocol(4, (2, 3))
    protocol.on_record(RUN, first=True)
    without = replace(LEAVE, left_out=(3,))
    assert protocol.on_marker(2, cut(1)) + protocol.on_marker(2, route(without)) == []
    assert protocol.on_record(without) == [*passed(1), Send(route(without), TABLES), HandedOver(1)]


def test_who_is_absent_takes_no_notice_and_its_process_of_before_is_silent():
    protocol = left()
    assert protocol.on_marker(1, cut(1)) == protocol.on_record(TAKEN) == protocol.on_marker(1, call()) == []
    assert protocol.on_timer() == [], "it would be taken for its successor"


def test_its_successor_calls_hears_and_joins_at_the_marker():
    protocol = TaskProtocol(3, (1,))
    assert protocol.on_record(TAKEN) == [Resumed(TAKEN, TABLES, new=True)]
    assert protocol.on_timer() == [CALL]
    assert protocol.on_marker(1, cut(2)) == []
    assert protocol.on_marker(1, call()) == [Ready(2)]
    assert protocol.on_marker(1, call()) == [], "once is enough"
    assert protocol.on_marker(1, route(JOIN)) == [Send(route(JOIN), TABLES), HandedOver(3)]
    assert protocol.mode is Mode.RUNNING
    assert protocol.on_marker(1, cut(3)) == passed(3)


def test_a_marker_of_a_base_before_does_not_bring_a_task_back():
    """Found by the pair: it was on its way when everything was restored, and its number was above 0, the handover of
    the new base. The task returned to it and to the marker that all others sent: a reset.
    """
    base = replace(RUN, epoch=5, base=5, absent=(3,), left_out=(3,))
    protocol = TaskProtocol(3, (1,))
    protocol.on_record(base)
    protocol.on_record(replace(base, epoch=6, restarts=(3,)))
    before = replace(RUN, epoch=4, handover=4)
    assert protocol.on_marker(1, route(before)) == []
    assert protocol.on_marker(1, call(6)) == [Ready(6)]
    back = replace(RUN, epoch=7, base=5, handover=7)
    assert protocol.on_marker(1, route(back)) == [Send(route(back), TABLES), HandedOver(7)]
    assert (protocol.mode, protocol.handover) == (Mode.RUNNING, 7)


def test_it_may_come_back_without_having_been_restarted():
    protocol = left()
    assert protocol.on_marker(1, route(JOIN)) == [Send(route(JOIN), TABLES), HandedOver(3)]


def test_from_the_marker_that_brings_it_back_all_wait_for_it_again():
    protocol = downstream()
    assert protocol.on_record(TAKEN) == []
    assert protocol.on_timer() == [CALL]
    assert protocol.on_marker(3, call()) == [Ready(2)]
    assert protocol.on_marker(2, cut(1)) == passed(1)
    assert protocol.on_marker(2, route(JOIN)) == []
    assert protocol.on_marker(3, route(JOIN)) == [Send(route(JOIN), TABLES), HandedOver(3)]
    assert protocol.on_marker(2, cut(2)) == []
    assert protocol.on_marker(3, cut(2)) == passed(2)


def test_the_marker_of_a_task_that_returns_is_kept_while_older_ones_are_aligned():
    """Found on a real Storm: the marker of a warm task that returned was there before that of a replica with a backlog.

    The pulse that came in between took it away. Its receiver waited for it until the handover was late, and then all
    restored.
    """
    protocol = downstream()
    protocol.on_record(TAKEN)
    assert protocol.on_marker(3, route(JOIN)) == []
    pulse = Marker(kind=Kind.PULSE, number=7, body={"t": 1})
    assert protocol.on_marker(2, pulse) == [DeliverPulse(7, ({"t": 1},))]
    assert protocol.on_marker(2, cut(1)) == passed(1)
    assert protocol.on_marker(2, route(JOIN)) == [Send(route(JOIN), TABLES), HandedOver(3)]
    assert protocol.on_tuple(2, "a") == [Deliver("a")]


def test_a_call_heard_before_the_record_is_known_counts():
    protocol = downstream()
    assert protocol.on_marker(3, call()) == []
    assert protocol.on_record(TAKEN) == [Ready(2)]


def test_a_call_of_before_does_not_count():
    protocol = downstream()
    protocol.on_marker(3, call(1))
    assert protocol.on_record(TAKEN) == []


def test_a_process_lost_on_the_way_out_is_a_loss():
    """Its marker will not come: those who wait for it need not wait until the deadline."""
    (instruction,) = TaskProtocol(3, (1,)).on_record(LEAVE)
    assert isinstance(instruction, Recover)


def test_a_process_that_read_the_record_of_before_is_not_lost():
    """Found by the pair: a server of ZooKeeper may lag. Nothing is lost, as the task was absent when it started."""
    protocol = TaskProtocol(3, (1,))
    protocol.on_record(LEAVE)
    assert protocol.mode is Mode.LOST
    assert protocol.on_record(TAKEN) == [Resumed(TAKEN, TABLES, new=True)]
    assert protocol.on_marker(1, call()) == [Ready(2)]


def test_a_process_that_starts_when_all_take_part_again_is_a_loss():
    (instruction,) = TaskProtocol(3, (1,)).on_record(JOIN)
    assert isinstance(instruction, Recover)


def test_who_begins_to_run_practises_for_a_while_and_nobody_takes_that_for_more():
    protocol = TaskProtocol(3, (1,))
    assert protocol.on_timer() == []
    protocol.on_record(RUN, first=True)
    assert [protocol.on_timer() for _ in range(PRACTICE)] == [[Send(call(0), TABLES)]] * PRACTICE
    assert protocol.on_timer() == [] and not protocol.timed
    assert protocol.on_marker(1, call(0)) == []
