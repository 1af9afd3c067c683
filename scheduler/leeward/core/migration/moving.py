"""Between the barriers: Storm moves executors, or all tasks have to be placed again."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import Phase
from leeward.core.journal import Journal, StepName
from leeward.core.migration.failover import evacuate, gone_of, leave_out, mend, owners_of, unreplaceable
from leeward.core.migration.machine import (
    Machine,
    Step,
    arrive,
    errors_of,
    is_placed,
    misfit,
    rebalance,
    saw,
    sizes_of,
    with_cut,
)
from leeward.core.migration.pausing import abort
from leeward.core.migration.restoring import restore
from leeward.core.migration.telling import phase_note, summary_of
from leeward.core.orders import (
    Assigned,
    DeadlinePassed,
    Note,
    RebalanceFailed,
    RecoverRequested,
    Reported,
    Silent,
    State,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.outcome import Ending, Outcome
from leeward.core.plan import Placement
from leeward.core.table import movers


def pause_report(m: Machine, event: Reported, now: float) -> Step:
    m = arrive(m, event)
    errors = errors_of(m)
    if errors:
        return abort(m, errors, now)
    if not m.complete:
        return m, ()
    exported = sum(report.bytes for report in m.arrived.values())
    record = replace(m.record, committed=with_cut(m, m.record.cut))
    m = replace(m, record=record, sizes=sizes_of(m), journal=replace(m.journal, exported=exported))
    if not m.journal.moves:
        return restore(m, now)
    journal = m.journal.at(StepName.MOVE, now, placement_epoch=record.epoch)
    record = record.with_phase(Phase.MOVE)
    after, todo = place(replace(m, journal=journal, record=record), State.MOVING, now)
    return after, (
        WriteJournal(journal=journal),
        WriteControl(record=record),
        phase_note(m, Phase.MOVE, exported=exported),
        *todo,
    )


def place(m: Machine, state: State, now: float) -> Step:
    """Want the slots of the journal and wait until Storm has them."""
    slots = m.journal.new_slots
    placement = Placement(topology_id=m.topology_id, epoch=m.journal.placement_epoch, slots=slots)
    m = replace(m, state=state, due=now + m.limits.misfit_s, tries=1, barrier="", arrived={}, stale=m.seen)
    if is_placed(m):
        return restore(m, now)
    return m, (WritePlacement(placement=placement), rebalance(m, slots))


def placed(m: Machine, event: Assigned, now: float) -> Step:
    m = saw(m, event)
    return restore(m, now) if is_placed(m) else (m, ())


def move_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    if misfit(m):
        return undo(m, f"the plugin reports: {misfit(m)}", now)
    if m.tries >= m.limits.move_tries:
        return undo(m, f"Storm has not placed it after {m.tries} calls of rebalance", now)
    return move_again(m, now)


def undo(m: Machine, why: str, now: float) -> Step:
    """Back to the old slots and tables; the cut is committed, so nothing is lost."""
    epoch = m.next_epoch
    journal = m.journal.at(
        StepName.UNDO,
        now,
        epoch=epoch,
        placement_epoch=epoch,
        new_tables=m.journal.old_tables,
        new_slots=m.journal.old_slots,
        result=Outcome(Ending.UNDONE, why),
    )
    record = replace(m.record, epoch=epoch, tables=dict(journal.old_tables))
    after, todo = place(replace(m, journal=journal, record=record), State.UNDOING, now)
    return after, (
        WriteJournal(journal=journal),
        WriteControl(record=record),
        Note(action="reconfiguration_undone", fields={"epoch": epoch, "why": why}),
        *todo,
    )


def undo_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """The old slots cannot be had either (a node is gone, Nimbus is away): any slots will do."""
    if dict(m.slots) == dict(m.journal.new_slots):
        return restore(m, now)
    if m.tries < m.limits.move_tries and not misfit(m):
        return move_again(m, now)
    after, todo = settle(m, now)
    return after, (WritePlacement(placement=None), *todo)


def move_again(m: Machine, now: float) -> Step:
    m = replace(m, tries=m.tries + 1, due=now + m.limits.move_s)
    note = Note(action="rebalance_again", fields={"tries": m.tries, "epoch": m.record.epoch})
    return m, (note, rebalance(m, m.journal.new_slots))


def move_refused(m: Machine, event: RebalanceFailed, now: float) -> Step:
    """The plugin's next periodic pass may place all the same; at the deadline Nimbus is asked again."""
    return m, (Note(action="rebalance_failed", fields={"why": event.reason, "tries": m.tries}),)


def move_lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    """All that counts is in the cut; only RESTORE must have a newer epoch than the one that the task gave up."""
    return (replace(m, lost=True) if event.epoch == m.record.epoch else m), ()


def lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    if event.epoch != m.record.epoch or (event.fresh and event.task in m.record.left_out):
        return m, ()
    if m.silent:  # the task that asks is there
        m = replace(m, silent=m.silent - {event.task})
    warm = event.fresh and event.task not in owners_of(m)
    if warm and m.state in (State.IDLE, State.CHECKPOINTING):
        return leave_out(m, {event.task}, now)
    return reset(m, event.why, now)


def hear(m: Machine, event: Silent, now: float) -> Step:
    """Note silent tasks, and those without a first beat. While Storm places that is all: RESTORE asks for the tasks.

    A first checkpoint that waits for first beats (`checkpoint_due`) begins when the last of them is in.
    """
    heard = bool(m.unheard) and not event.unheard
    waits = heard and m.state is State.IDLE and m.tries
    after = replace(m, silent=event.tasks, unheard=event.unheard, due=now if waits else m.due)
    return after, (Note(action="tasks_heard", fields={}),) if heard else ()


def silent(m: Machine, event: Silent, now: float) -> Step:
    """While the stream goes on. Tasks that no other can replace are waited for: their successors ask for a reset."""
    m, heard = hear(m, event, now)
    after, todo = _react(m, now)
    return after, (*heard, *todo)


def _react(m: Machine, now: float) -> Step:
    gone = gone_of(m)
    names = ", ".join(f"{task} ({m.tasks[task]})" for task in sorted(gone))
    if gone and unreplaceable(m, gone) and m.state is State.PAUSING:  # no task is paused for reports that cannot come
        return abort(m, f"silent: {names}", now)
    if not gone or unreplaceable(m, gone):
        return (mend(m, now) if m.state is State.IDLE else None) or (m, ())
    if gone & owners_of(m) or (m.state in (State.HANDING, State.PREPARING) and not m.record.witnesses):
        return reset(m, f"silent: {names}", now)
    if m.state in (State.IDLE, State.CHECKPOINTING):
        return leave_out(m, gone, now)
    if m.state is State.PAUSING or gone & movers(m.record.tables, m.record.coming):
        return abort(m, f"silent: {names}", now)
    return m, ()


def silent_restoring(m: Machine, event: Silent, now: float) -> Step:
    """A task that has not come back is left out, if others can take its groups."""
    m, heard = hear(m, event, now)
    gone = gone_of(m) & set(m.missing)
    _, left_out = evacuate(m.tasks, m.journal.new_tables, gone)
    after, todo = restore(m, now, again=True) if left_out else (m, ())
    return after, (*heard, *todo)


def reset(m: Machine, why: str, now: float) -> Step:
    """Everything goes back to the last committed cut; out of a pause with the tables of before.

    Out of a handover with the new ones: some tasks may have gone over to them.
    """
    pausing = m.record.phase is Phase.PAUSE
    tables = m.journal.old_tables if pausing else m.record.tables
    cut = m.record.committed[-1] if m.record.committed else 0
    last = m.next_cut - 1
    journal = Journal(
        kind="reset",
        epoch=m.next_epoch,
        cut=cut,
        last_cut=last,
        old_cut=m.record.cut,
        reason=why,
        request=request_of(m),
        old_tables=tables,
        new_tables=tables,
        old_slots=m.known,
        new_slots=m.known,
    ).at(StepName.RESTORE, now)
    notes = [Note(action="reset", fields={"epoch": m.record.epoch, "cut": cut, "why": why})]
    if pausing or m.state in (State.COPYING, State.HANDING, State.PREPARING):
        result = Outcome(Ending.ABORTED if pausing or m.state is State.COPYING else Ending.RESET, why)
        notes.insert(0, Note(action="reconfiguration_ended", fields=summary_of(m, result, now)))
    after, todo = settle(replace(m, journal=journal, pending=None), now)
    return after, (WriteJournal(journal=journal), *notes, *todo)


def request_of(m: Machine) -> str:
    """Whose request the reset ends: of the plan that was being carried out, or that waited for a checkpoint."""
    if m.pending is not None:
        return m.pending.request
    return m.journal.request if m.journal.open else ""


def settle(m: Machine, now: float) -> Step:
    m = replace(m, state=State.SETTLING, due=now + m.limits.settle_s, barrier="", arrived={})
    return restore(m, now) if is_settled(m) else (m, ())


def is_settled(m: Machine) -> bool:
    """Storm has every task somewhere, but for those that are left out."""
    _, left_out = evacuate(m.tasks, m.journal.new_tables, m.silent or ())
    return m.tasks.keys() - set(left_out) <= m.slots.keys()


def settled(m: Machine, event: Assigned, now: float) -> Step:
    m = saw(m, event)
    return restore(m, now) if is_settled(m) else (m, ())


def settle_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """Tasks that are not placed will miss barrier 2, which is tried again."""
    return restore(m, now)
