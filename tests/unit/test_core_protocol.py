"""The task protocol, case by case; the interleavings are in tests/property/test_protocol_tasks.py."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import ControlRecord, Phase
from leeward.core.protocol import Load, Mode, TaskProtocol

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
