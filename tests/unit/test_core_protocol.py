"""The task protocol, case by case; the interleavings are in tests/sim/test_pair.py."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import ControlRecord, Phase
from leeward.core.instructions import (
    BeforeCheckpoint,
    CopyAhead,
    Deliver,
    DeliverPulse,
    HandedOver,
    HandOver,
    Kind,
    Load,
    Marker,
    Mode,
    Recover,
    Resumed,
    Send,
)
from leeward.core.protocol import TaskProtocol

TABLES = {"count": (1,) * 128}
RUN = ControlRecord(tables=TABLES)
PAUSE = replace(RUN, epoch=1, phase=Phase.PAUSE, cut=1)
RESTORE = replace(PAUSE, phase=Phase.RESTORE, base=1, committed=(1,), restarts=(1,))


def paused() -> TaskProtocol:
    """A task without upstream, as a spout, that has exported cut 1."""
    protocol = TaskProtocol(1, ())
    protocol.on_record(RUN, first=True)
    protocol.on_record(PAUSE)
    assert protocol.mode is Mode.PAUSED
    return protocol


def test_a_process_whose_worker_is_about_to_end_waits_also_when_it_sees_the_record_again():
    """A coordinator that takes over writes the record anew, as it was, and every watch fires once more."""
    protocol = paused()
    assert protocol.on_record(RESTORE) == []
    assert protocol.on_record(RESTORE) == []
    assert protocol.mode is Mode.REPLACED


def test_it_restores_after_all_when_a_newer_epoch_does_not_restart_it():
    protocol = paused()
    protocol.on_record(RESTORE)
    again = replace(RESTORE, epoch=2, base=2, restarts=())
    assert Load(again, keep=False) in protocol.on_record(again)
    assert protocol.mode is Mode.RESTORING


def test_a_lost_process_whose_worker_is_about_to_end_waits_too():
    protocol = TaskProtocol(1, ())
    protocol.on_record(RUN, first=False)
    assert protocol.mode is Mode.LOST
    assert protocol.on_record(RESTORE) == []
    assert protocol.mode is Mode.REPLACED


def test_its_successor_restores():
    protocol = TaskProtocol(1, ())
    assert protocol.on_record(replace(RESTORE, phase=Phase.MOVE, restarts=())) == []
    assert Load(RESTORE, keep=False) in protocol.on_record(RESTORE)


def test_a_pause_that_was_given_up_does_not_stop_who_knows_of_that():
    """Its marker may come behind the record that ends it, or wait for other channels when that comes."""
    marker = Marker(kind=Kind.PAUSE, number=1, body=PAUSE.to_json())
    for late in (True, False):
        protocol = TaskProtocol(5, (1, 2))
        protocol.on_record(RUN, first=True)
        if not late:
            assert protocol.on_marker(1, marker) == []
        protocol.on_record(replace(RUN, epoch=2))
        for source in (1, 2) if late else (2,):
            assert protocol.on_marker(source, marker) == []
        assert protocol.mode is Mode.RUNNING
        assert [protocol.on_tuple(source, source) for source in (1, 2)] == [[Deliver(1)], [Deliver(2)]]


def test_a_spout_that_goes_on_begins_the_checkpoint_that_was_asked_for_meanwhile():
    """After every pause the coordinator asks for one at once: who reads the record late sees both in one."""
    protocol = paused()
    record = replace(RUN, epoch=2, checkpoint=2)
    _, resumed, before, marker, export = protocol.on_record(record)
    assert (resumed, before) == (Resumed(record, TABLES, new=False), BeforeCheckpoint(2))
    assert (marker.marker.kind, marker.marker.number, export.cut) == (Kind.CHECKPOINT, 2, 2)
    assert protocol.on_record(record) == []


# --- markers of what was given up


def merging() -> TaskProtocol:
    """A task with two upstream tasks."""
    protocol = TaskProtocol(7, (2, 3))
    protocol.on_record(RUN, first=True)
    return protocol


def test_a_checkpoint_that_a_source_never_began_is_left_out_when_the_next_one_comes():
    """1. Source 2 begins checkpoint 1, source 3 is slow. 2. It is given up. 3. Source 3 sees only the record of 2."""
    protocol = merging()
    one, two = (Marker(kind=Kind.CHECKPOINT, number=n, body=replace(RUN, checkpoint=n).to_json()) for n in (1, 2))
    assert protocol.on_marker(2, one) == []
    assert protocol.on_marker(3, two) == []
    assert protocol.on_tuple(2, "after 1") == [Deliver("after 1")]
    before, forwarded, export = protocol.on_marker(2, two)
    assert (before, forwarded, export.cut) == (BeforeCheckpoint(2), Send(two), 2)


def test_a_pause_that_was_given_up_waits_for_the_record_that_says_so():
    """1. Task 2 pauses. 2. The pause is given up. 3. Task 3 knows, drops the marker, forwards a pulse; 7 does not."""
    protocol = merging()
    assert protocol.on_marker(2, Marker(kind=Kind.PAUSE, number=1, body=PAUSE.to_json())) == []
    assert protocol.on_marker(3, Marker(kind=Kind.PULSE, number=4, body={})) == []
    assert protocol.mode is Mode.RUNNING
    assert protocol.on_record(replace(RUN, epoch=2)) == []
    assert protocol.on_marker(2, Marker(kind=Kind.PULSE, number=4, body={})) == [DeliverPulse(4, ({}, {}))]


# --- handover

HALVES = {"count": (7, 8) * 64, "sink": (9,) * 128}
ALL_MINE = {"count": (7,) * 128, "sink": (9,) * 128}
OTHERS = {"count": (8,) * 128, "sink": (9,) * 128}


def handover(epoch: int, tables: dict, **changes: object) -> ControlRecord:
    return replace(ControlRecord(tables=tables), epoch=epoch, handover=epoch, **changes)


def counting(tables: dict, *upstream: int) -> TaskProtocol:
    """Task 7 of `count`, running; an item is its own group."""
    protocol = TaskProtocol(7, upstream or (3, 4), component="count", group_of=lambda item: item)
    protocol.on_record(ControlRecord(tables=tables), first=True)
    return protocol


def route(record: ControlRecord) -> Marker:
    return Marker(kind=Kind.ROUTE, number=record.epoch, body=record.to_json())


def test_a_handover_begins_at_the_aligned_marker_and_not_at_the_record():
    protocol, record = counting(ALL_MINE), handover(1, HALVES)
    assert protocol.on_record(record) == []
    assert protocol.on_marker(3, route(record)) == []
    assert protocol.on_tuple(4, 1) == [Deliver(1)]
    lost = dict.fromkeys(range(1, 128, 2), 8)
    assert protocol.on_marker(4, route(record)) == [Send(route(record), HALVES), HandOver(record, {}, lost)]
    assert protocol.sent(1) == [HandedOver(1)]
    assert protocol.sent(1) == []


def test_the_route_marker_of_a_warm_task_is_not_waited_for():
    """It has sent nothing that the old tables routed; what it sends behind its marker is routed by the new ones."""
    passing = {"passing": (3,) * 128}
    protocol, record = counting(ALL_MINE | passing), handover(1, HALVES | {"passing": (3, 4) * 64})
    (_, hand_over) = protocol.on_marker(3, route(record))
    assert hand_over == HandOver(record, {}, dict.fromkeys(range(1, 128, 2), 8))
    assert protocol.on_marker(4, route(record)) == []
    assert protocol.on_tuple(4, 2) == [Deliver(2)], "its marker holds nothing back"
    later = handover(2, ALL_MINE | passing)
    assert protocol.on_marker(3, route(later)) == [], "it works now"
    assert protocol.on_marker(4, route(later))[0] == Send(route(later), later.tables)


def test_what_a_warm_task_sends_behind_its_marker_waits_for_those_who_worked_before():
    passing = {"passing": (3,) * 128}
    protocol, record = counting(ALL_MINE | passing), handover(1, HALVES | {"passing": (4,) * 128})
    assert protocol.on_marker(4, route(record)) + protocol.on_tuple(4, 2) == []
    assert protocol.on_marker(3, route(record))[2:] == [Deliver(2)]


def test_only_tuples_of_groups_that_are_not_in_wait_and_markers_wait_for_all():
    protocol, record = counting(OTHERS, 3), handover(1, HALVES)
    (_, hand_over) = protocol.on_marker(3, route(record))
    assert hand_over == HandOver(record, dict.fromkeys(range(0, 128, 2), 8), {})
    assert not protocol.open
    assert protocol.on_tuple(3, 0) + protocol.on_tuple(3, 2) + protocol.on_tuple(3, 0) == []
    assert protocol.arrived(1, [0]) == [Deliver(0), Deliver(0)]
    assert protocol.on_tuple(3, 0) == [Deliver(0)]
    assert protocol.on_marker(3, Marker(kind=Kind.PULSE, number=1)) == []
    assert protocol.on_tuple(3, 0) == []
    assert protocol.buffered == 2
    out = protocol.arrived(1, range(2, 128, 2))
    assert out == [Deliver(2), HandedOver(1), DeliverPulse(1, (None,)), Deliver(0)]


def test_markers_of_older_epochs_change_nothing():
    protocol, older, newer = counting(ALL_MINE), handover(1, OTHERS), handover(2, HALVES)
    for task in (3, 4):
        protocol.on_marker(task, route(newer))
    protocol.sent(2)
    pause = replace(older, phase=Phase.PAUSE, cut=1)
    for marker in (
        route(older),
        Marker(kind=Kind.PAUSE, number=1, body=pause.to_json()),
        Marker(kind=Kind.PROBE, number=1),
    ):
        assert protocol.on_marker(3, marker) + protocol.on_marker(4, marker) == [], marker.kind
    assert (protocol.tables, protocol.mode, protocol.buffered) == (HALVES, Mode.RUNNING, 0)
    assert protocol.on_tuple(3, 0) == [Deliver(0)]


def test_what_has_no_group_waits_for_all_groups():
    protocol = TaskProtocol(7, (3,), component="count", group_of=lambda item: None)
    protocol.on_record(ControlRecord(tables=OTHERS), first=True)
    protocol.on_marker(3, route(handover(1, HALVES)))
    assert protocol.on_tuple(3, "x") + protocol.arrived(1, range(0, 126, 2)) == []
    assert protocol.arrived(1, [126]) == [Deliver("x"), HandedOver(1)]


def test_a_spout_sends_a_checkpoint_that_was_given_up_before_the_route():
    """Whether it saw the checkpoint's record or not: every spout sends both in one order."""
    spout = TaskProtocol(1, ())
    spout.on_record(RUN, first=True)
    record = handover(1, TABLES, checkpoint=3)
    markers = [entry.marker.identity for entry in spout.on_record(record) if isinstance(entry, Send)]
    assert markers == [(Kind.CHECKPOINT, 3), (Kind.ROUTE, 1)]
    assert spout.on_record(record) == []


def test_a_task_that_restored_and_sees_a_handover_at_once_still_routes_by_the_restored_tables():
    restore = ControlRecord(epoch=4, phase=Phase.RESTORE, base=4, tables=ALL_MINE)
    after = handover(5, HALVES, base=4)
    for upstream in ((), (3,)):
        protocol = TaskProtocol(7, upstream, component="count", group_of=(lambda item: item) if upstream else None)
        protocol.on_record(restore)
        protocol.loaded(restore)
        for source in upstream:
            protocol.on_marker(source, Marker(kind=Kind.PROBE, number=4))
        out = protocol.on_record(after)
        assert out[:2] == [Send(Marker(kind=Kind.PROBE, number=4), ALL_MINE), Resumed(after, ALL_MINE, new=False)]
        assert out[2:] == ([] if upstream else [Send(route(after), HALVES), HandedOver(5)])


def test_only_witnesses_report_if_there_are_any():
    """By their reports all others that work have passed it too."""
    for witnesses, few in (((), False), ((7, 9), True), ((9,), None)):
        protocol, record = counting(ALL_MINE, 3), handover(1, ALL_MINE, witnesses=witnesses)
        reports = [] if few is None else [HandedOver(1, few=few)]
        assert protocol.on_marker(3, route(record)) == [Send(route(record), ALL_MINE), *reports]


def test_a_process_that_starts_during_a_handover_asks_for_a_reset():
    protocol = TaskProtocol(7, (3,), component="count", group_of=lambda item: item)
    assert any(isinstance(entry, Recover) for entry in protocol.on_record(handover(1, HALVES), first=True))


def test_a_reset_forgets_what_waits():
    protocol = counting(OTHERS, 3)
    protocol.on_marker(3, route(handover(1, HALVES)))
    protocol.on_tuple(3, 0)
    protocol.on_record(ControlRecord(epoch=2, phase=Phase.RESTORE, base=2, tables=HALVES))
    assert protocol.buffered == 0
    assert protocol.arrived(1, range(0, 128, 2)) == []


# --- copying ahead


def ahead(number: int, coming: dict, **changes: object) -> ControlRecord:
    return replace(ControlRecord(tables=ALL_MINE), ahead=number, coming=coming, **changes)


def test_what_will_move_is_copied_once_and_until_its_handover():
    protocol = counting(ALL_MINE)
    lost = dict.fromkeys(range(1, 128, 2), 8)
    assert protocol.on_record(ahead(1, HALVES)) == [CopyAhead(1, {}, lost)]
    assert protocol.on_record(ahead(1, HALVES)) == []
    record = handover(1, HALVES)
    assert protocol.on_record(record) == [], "the marker is still to come: copying goes on"
    protocol.on_marker(3, route(record))
    assert protocol.on_marker(4, route(record)) == [Send(route(record), HALVES), HandOver(record, {}, lost)]
    assert protocol.on_record(record) == []


def test_copying_is_given_up_when_the_record_says_so():
    protocol = counting(ALL_MINE)
    protocol.on_record(ahead(1, HALVES))
    assert protocol.on_record(ControlRecord(epoch=2, tables=ALL_MINE)) == [CopyAhead(0, {}, {})]
    assert protocol.on_record(ahead(3, OTHERS, epoch=2)) == [CopyAhead(3, {}, dict.fromkeys(range(128), 8))]


def test_copying_is_given_up_when_the_marker_of_another_handover_comes_first():
    """Found by the model: the record that gave it up was written, and not read before that marker."""
    protocol = counting(ALL_MINE)
    protocol.on_record(ahead(1, HALVES))
    record = handover(3, ALL_MINE, absent=(8,))
    protocol.on_marker(3, route(record))
    assert CopyAhead(0, {}, {}) in protocol.on_marker(4, route(record))


def test_a_warm_task_copies_for_the_next_handover_before_it_has_passed_the_last_one():
    """Nobody waited for it, as it had nothing to do there."""
    others = OTHERS | {"passing": (3,) * 128}
    last, coming = handover(1, others, witnesses=(9,)), {"count": (7,) + (8,) * 127}
    copied = CopyAhead(2, {0: 8}, {})
    for given_up in (False, True):
        protocol = counting(others, 3)
        assert protocol.on_record(replace(last, ahead=2, coming=coming)) == [copied]
        assert protocol.on_marker(3, route(last)) == [Send(route(last), others)], "it goes on"
        if given_up:
            assert protocol.on_record(replace(last, epoch=3)) == [CopyAhead(0, {}, {})]
        else:
            after = handover(2, others | coming, witnesses=(7, 8, 9))
            forward, hand_over = protocol.on_marker(3, route(after))
            assert (forward, hand_over) == (Send(route(after), after.tables), HandOver(after, {0: 8}, {}))


def test_a_warm_source_that_sees_two_handovers_at_once_copies_for_the_second():
    tables, coming = {"count": (8,) * 128}, {"count": (7,) * 128}
    source = TaskProtocol(7, (), component="count", group_of=lambda item: item)
    source.on_record(ControlRecord(tables=tables), first=True)
    record = handover(1, tables, ahead=2, coming=coming, witnesses=(9,))
    comes = dict.fromkeys(range(128), 8)
    assert source.on_record(record) == [CopyAhead(2, comes, {}), Send(route(record), tables)]
    assert source.on_record(replace(record, epoch=3, ahead=0, coming={})) == [CopyAhead(0, {}, {})]


def test_only_who_gives_or_takes_groups_is_waited_for_also_without_state():
    for task, number in ((7, 1), (8, 1), (3, 0)):
        stateless = TaskProtocol(task, (1,))
        stateless.on_record(ControlRecord(tables=ALL_MINE), first=True)
        assert stateless.on_record(ahead(1, HALVES))[0] == CopyAhead(number, {}, {})


def test_the_others_wake_those_behind_them_before_the_markers_come():
    """Who has had nothing to do for long is slow, and tuples would wait for that."""
    upstream = TaskProtocol(3, (1,))
    upstream.on_record(ControlRecord(tables=ALL_MINE), first=True)
    call = Send(Marker(kind=Kind.CALL, number=0), ALL_MINE)
    assert upstream.on_record(ahead(1, HALVES)) == [CopyAhead(0, {}, {}), call]
    assert upstream.on_record(ahead(1, HALVES)) == []
    assert upstream.on_record(ControlRecord(epoch=2, tables=ALL_MINE)) == [CopyAhead(0, {}, {})]


def test_a_pulse_behind_a_lost_route_marker_asks_for_a_reset():
    """Aligned by the old tables it would miss what a new replica sends."""
    protocol = counting(ALL_MINE, 3)
    assert protocol.on_marker(3, Marker(kind=Kind.PULSE, number=1, sent=0, body={})) == [DeliverPulse(1, ({},))]
    (asks,) = protocol.on_marker(3, Marker(kind=Kind.PULSE, number=2, sent=2, body={}))  # the route marker is lost
    assert isinstance(asks, Recover)
    assert "task 3 sent 2 tuples and markers to task 7 before pulse 2, 1 came" in asks.reason


def test_a_route_marker_that_came_is_counted_once():
    protocol, record = counting(ALL_MINE, 3), handover(1, HALVES)
    protocol.on_marker(3, replace(route(record), sent=0))
    protocol.sent(1)
    assert protocol.on_marker(3, Marker(kind=Kind.PULSE, number=1, sent=1, body={})) == [DeliverPulse(1, ({},))]
