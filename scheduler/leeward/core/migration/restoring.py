"""Barrier 2: every task takes what it owns now out of the cut."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import ControlRecord, Phase, ready_barrier
from leeward.core.journal import Journal, StepName
from leeward.core.migration.failover import evacuate
from leeward.core.migration.machine import Machine, Step, arrive, missing_of, watch
from leeward.core.migration.pausing import close
from leeward.core.migration.telling import phase_note, result_of
from leeward.core.orders import (
    CutChosen,
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

REMEDY = "Bring back what holds a cut (Redis, a node's swap area), or decide: leeward recover --from-cut | --from-start"


def restore(m: Machine, now: float, *, again: bool = False, late: bool = False) -> Step:
    """RESTORE the journal's cut with the journal's tables; `again` under a newer epoch.

    Tasks that are silent are left out where others can take their groups; not those that Storm is restarting.
    """
    epoch = m.next_epoch if again or m.lost else max(m.record.epoch, m.journal.epoch)
    gone: set[int] = set(m.silent or ()) - (set() if late else set(m.record.restarts))
    if m.journal.kind != "reset" and not again:
        gone = set()
    tables, left_out = evacuate(m.tasks, m.journal.new_tables, gone)
    journal = m.journal.at(StepName.RESTORE, now, epoch=epoch, new_tables=tables)
    record = replace(
        m.record,
        epoch=epoch,
        phase=Phase.RESTORE,
        base=epoch,
        cut=journal.cut,
        handover=0,
        ahead=0,
        coming={},
        tables=tables,
        stays=(),
        absent=left_out,
        left_out=left_out,
        restarts=() if again else restarting(journal.old_slots, m.known),
    )
    tries = m.tries + 1 if m.state is State.RESTORING else 1
    m = replace(m, record=record, journal=journal, lost=False, tries=tries)
    after, todo = watch(m, State.RESTORING, ready_barrier(epoch), now + m.limits.restore_s)
    return after, (
        WriteJournal(journal=journal),
        SetFence(epoch=epoch, base=epoch),
        WriteControl(record=record),
        phase_note(m, Phase.RESTORE, tries=tries, cut=record.cut),
        *todo,
    )


def restore_report(m: Machine, event: Reported, now: float) -> Step:
    failed = [report for report in event.reports if report.error] if event.barrier == m.barrier else []
    if failed:
        worst = min(failed, key=lambda report: (not report.bad_cut, report.task))
        note = Note(
            action="restore_failed",
            fields={"task": worst.task, "component": worst.component, "why": worst.error},
        )
        if worst.bad_cut:
            after, todo = fall_back(m, worst.error, now)
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


def fall_back(m: Machine, why: str, now: float) -> Step:
    """The cut cannot be read: take the committed one before it, or wait for a person."""
    bad = m.record.cut
    earlier = tuple(cut for cut in m.record.committed if cut < bad)
    m = replace(m, journal=replace(m.journal, unreadable={**m.journal.unreadable, bad: why}))
    if not earlier and (bad == 0 or not m.limits.restore_from_start):
        return hold(m, now)
    cut = earlier[-1] if earlier else 0
    journal = replace(m.journal, cut=cut, last_cut=m.next_cut - 1)
    m = replace(m, journal=journal, record=replace(m.record, committed=earlier))
    after, todo = restore(m, now, again=True)
    return after, (
        Note(action="alert", fields={"why": f"cut {bad} cannot be read: restoring cut {cut}"}),
        *todo,
    )


def hold(m: Machine, now: float) -> Step:
    """Nothing goes on by itself from empty state: input that was read already may be gone for good."""
    m = with_all_cuts(m)
    known = m.record.committed
    journal = replace(m.journal.at(StepName.HELD, now), cut=max(known, default=0), last_cut=m.next_cut - 1)
    why = "; ".join(f"cut {cut}: {reason}" for cut, reason in sorted(m.journal.unreadable.items()))
    note = Note(action="held", fields={"why": why, "cuts": list(known), "remedy": REMEDY})
    m = replace(m, journal=journal)
    after = replace(m, state=State.HELD, due=now + m.limits.held_s, barrier="", arrived={})
    return after, (WriteJournal(journal=journal), note)


def with_all_cuts(m: Machine) -> Machine:
    """Also those that were given up on the way to HELD: a person, or the next try, may take any of them."""
    return replace(m, record=replace(m.record, committed=known_cuts(m.record, m.journal)))


def known_cuts(record: ControlRecord, journal: Journal) -> tuple[int, ...]:
    """The cuts that a person may choose from while the topology is held, ascending."""
    return tuple(sorted({*record.committed, *journal.unreadable} - {0}))


def held_by_another(m: Machine, now: float) -> Step:
    """A coordinator has taken over: it looks again at once."""
    return replace(with_all_cuts(m), state=State.HELD, due=now), ()


def look_again(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """HELD: perhaps a cut can be read now, as its node is back."""
    return restore(replace(m, journal=replace(m.journal, unreadable={})), now, again=True)


def chosen(m: Machine, event: CutChosen, now: float) -> Step:
    """HELD: a person has decided."""
    committed = tuple(cut for cut in m.record.committed if cut <= event.cut)
    if event.cut and event.cut not in committed:
        why = f"cut {event.cut} is none of {list(m.record.committed)}"
        return m, (Note(action="choice_refused", fields={"why": why}),)
    journal = replace(m.journal, cut=event.cut, unreadable={}, reason=f"{m.journal.reason}; cut {event.cut} was chosen")
    m = replace(m, journal=journal, record=replace(m.record, committed=committed))
    after, todo = restore(m, now, again=True)
    return after, (Note(action="cut_chosen", fields={"cut": event.cut}), *todo)


def not_held(m: Machine, event: CutChosen, now: float) -> Step:
    return m, (Note(action="choice_refused", fields={"why": f"the topology is not held: it is {m.state}"}),)


def restore_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    after, todo = restore(m, now, again=True, late=True)
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
