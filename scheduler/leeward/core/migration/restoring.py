"""Barrier 2: every task takes what it owns now out of the cut."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import Phase, ready_barrier
from leeward.core.journal import StepName
from leeward.core.migration.machine import Machine, Step, arrive, missing_of, watch
from leeward.core.migration.pausing import close
from leeward.core.migration.telling import phase_note, result_of
from leeward.core.orders import (
    DeadlinePassed,
    FenceFailed,
    Instruction,
    Note,
    RecoverRequested,
    Reported,
    SetFence,
    State,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.plan import Placement, restarting

#: A report whose error starts so says that the cut itself cannot be read; other errors may pass by themselves.
BAD_CUT = "SnapshotError"


def restore(m: Machine, now: float, *, again: bool = False) -> Step:
    """RESTORE the journal's cut with the journal's tables; `again` under a newer epoch."""
    epoch = m.next_epoch if again or m.lost else max(m.record.epoch, m.journal.epoch)
    journal = m.journal.at(StepName.RESTORE, now, epoch=epoch)
    record = replace(
        m.record,
        epoch=epoch,
        phase=Phase.RESTORE,
        base=epoch,
        cut=journal.cut,
        handover=0,
        ahead=0,
        coming={},
        tables=dict(journal.new_tables),
        stays=(),
        absent=(),
        restarts=() if again else restarting(journal.old_slots, m.slots),
    )
    tries = m.tries + 1 if m.state is State.RESTORING else 1
    m = replace(m, record=record, journal=journal, lost=False, tries=tries)
    after, todo = watch(m, State.RESTORING, ready_barrier(epoch), now + m.limits.restore_s)
    return after, (
        WriteJournal(journal=journal),
        SetFence(epoch=epoch),
        WriteControl(record=record),
        phase_note(m, Phase.RESTORE, tries=tries, cut=record.cut),
        *todo,
    )


def restore_report(m: Machine, event: Reported, now: float) -> Step:
    if event.report.error and event.barrier == m.barrier:
        note = Note(
            action="restore_failed",
            fields={
                "task": event.report.task,
                "component": event.report.component,
                "why": event.report.error,
            },
        )
        if event.report.error.startswith(BAD_CUT):
            after, todo = fall_back(m, now)
            return after, (note, *todo)
        return replace(m, barrier="", due=now + m.limits.retry_s), (note,)
    m = arrive(m, event)
    if not m.complete:
        return m, ()
    record = replace(m.record, phase=Phase.RUN, restarts=())
    result = result_of(m)
    first: tuple[Instruction, ...] = (WriteControl(record=record),)
    if m.journal.kind == "restart" and not m.journal.placement_epoch:
        # nothing moved: still pin what is there, so that Storm does not move it on its own
        placement = Placement(topology_id=m.topology_id, epoch=record.epoch, slots=m.journal.new_slots)
        first = (*first, WritePlacement(placement=placement))
    return close(replace(m, record=record), result, now, first=first)


def fall_back(m: Machine, now: float) -> Step:
    """The cut cannot be read: take the committed one before it, or none, or wait for a person."""
    bad = m.record.cut
    earlier = tuple(cut for cut in m.record.committed if cut < bad)
    if not earlier and (bad == 0 or not m.limits.restore_from_start):
        note = Note(action="alert", fields={"why": f"cut {bad} cannot be read and no older one is left: held"})
        return replace(m, state=State.HELD, due=now + m.limits.held_s, barrier="", arrived={}), (note,)
    cut = earlier[-1] if earlier else 0
    journal = replace(m.journal, cut=cut, last_cut=m.next_cut - 1)
    m = replace(m, journal=journal, record=replace(m.record, committed=earlier))
    after, todo = restore(m, now, again=True)
    return after, (
        Note(action="alert", fields={"why": f"cut {bad} cannot be read: restoring cut {cut}"}),
        *todo,
    )


def restore_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    after, todo = restore(m, now, again=True)
    if m.tries >= m.limits.restore_tries:
        why = f"barrier 2 was not reached in {m.tries} tries; missing {missing_of(m)}"
        todo = (Note(action="alert", fields={"why": why}), *todo)
    return after, todo


def restore_lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    if event.epoch != m.record.epoch:
        return m, ()
    return restore(m, now, again=True)


def restore_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    note = Note(action="fence_failed", fields={"why": event.reason, "epoch": m.record.epoch})
    return replace(m, barrier="", due=now + m.limits.retry_s), (note,)
