"""A reconfiguration is announced, given up, or over; between two of them the coordinator is idle.

A plan that moves no executor that works is announced as a handover, step by step: tables change while the stream goes
on. Warm tasks that it moves go first (`preparing`).
"""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import Phase, ahead_barrier, cut_barrier, handover_barrier
from leeward.core.journal import Journal, StepName
from leeward.core.migration.failover import mend
from leeward.core.migration.machine import Machine, Step, drop_old, missing_of, watch
from leeward.core.migration.steps import in_order, moved_bytes, next_tables, witnesses_of
from leeward.core.migration.telling import changes_of, summary_of
from leeward.core.orders import (
    DeadlinePassed,
    FenceFailed,
    Instruction,
    Note,
    PlanAccepted,
    SetFence,
    State,
    WriteControl,
    WriteJournal,
)
from leeward.core.outcome import Outcome, aborted
from leeward.core.plan import restarting
from leeward.core.table import movers


def to_idle(m: Machine, now: float, wait_s: float = 0.0) -> Step:
    m = replace(m, state=State.IDLE, due=now + wait_s, barrier="", arrived={}, tries=0, lost=False)
    if m.pending and not m.away:
        return begin(m, m.pending, now)
    refused: tuple[Instruction, ...] = ()
    if m.pending:
        m, refused = refuse_pending(m, "tasks are away")
    after, todo = mend(m, now) or (m, ())
    return after, (*refused, *todo)


def refuse_pending(m: Machine, why: str) -> Step:
    """The plan that waited does not begin; the requester has the answer."""
    result = aborted(why)
    request = m.pending.request if m.pending else ""
    journal = Journal(kind="handover", result=result, request=request, last_cut=m.next_cut - 1, epoch=m.record.epoch)
    note = Note(action="plan_refused", fields={"why": str(result)})
    return replace(m, pending=None, journal=journal), (note, WriteJournal(journal=journal))


def close(m: Machine, result: Outcome, now: float, first: tuple[Instruction, ...] = ()) -> Step:
    """Back to IDLE. The record goes out first: until the journal is closed, the next coordinator closes it.

    Emit events first: the closed journal is also the answer to the requester.
    """
    action = "rejoin_ended" if m.journal.kind == "rejoin" else "reconfiguration_ended"
    note = Note(action=action, fields=summary_of(m, result, now))
    journal = m.journal.at(StepName.CLOSED, now, result=result, epoch=m.record.epoch, last_cut=m.next_cut - 1)
    wait_s = m.limits.rest_s if journal.kind == "handover" else 0.0
    after, todo = to_idle(replace(m, journal=journal), now, wait_s)
    return after, (*first, note, WriteJournal(journal=journal), drop_old(after), *todo)


def begin(m: Machine, event: PlanAccepted, now: float) -> Step:
    return (plan_handover if is_live(m, event) else announce)(m, event, now)


def is_live(m: Machine, event: PlanAccepted) -> bool:
    """No worker in which a task works has to be restarted, and that may be made use of. A source stops before another
    of its tasks begins: the first tuples of the one would meet the last ones of the other on different channels.
    """
    placement, tables = event.plan.placement, event.plan.tables
    if not m.limits.live or not placement.keys() <= m.slots.keys():
        return False
    if any(tables[name] != m.record.tables[name] for name in m.sources):
        return False
    idle = m.tasks.keys() - {owner for table in m.record.tables.values() for owner in table}
    return idle >= set(restarting(m.slots, placement))


def plan_handover(m: Machine, event: PlanAccepted, now: float) -> Step:
    plan = event.plan
    journal = Journal(
        kind="handover",
        epoch=m.journal.epoch,
        cut=m.record.cut,
        last_cut=m.next_cut - 1,
        old_cut=m.record.cut,
        old_handover=m.record.handover,
        reason=plan.reason,
        request=event.request,
        old_tables=m.record.tables,
        new_tables=plan.tables,
        old_slots=m.slots,
        new_slots=plan.placement,
        order=in_order(m.record.tables, plan),
    )
    m = replace(m, journal=journal, pending=None)
    absent = restarting(m.slots, plan.placement)
    after, todo = announce_absent(m, StepName.LEAVE, absent, now) if absent else next_step(m, now)
    return after, (started(after), *todo)


def announce_absent(m: Machine, step: StepName, absent: tuple[int, ...], now: float) -> Step:
    """Name the tasks that take no part from the route markers on. Every task reports, warm ones too.

    These markers change no table, and no owner, so no fence is raised.
    """
    epoch = m.next_epoch
    journal = m.journal.at(step, now, epoch=epoch)
    record = replace(m.record, epoch=epoch, handover=epoch, witnesses=(), absent=absent, restarts=())
    m = replace(m, record=record, journal=journal)
    after, todo = watch(m, State.HANDING, handover_barrier(epoch), now + m.limits.handover_s)
    return after, (WriteJournal(journal=journal), WriteControl(record=record), *todo)


def next_step(m: Machine, now: float) -> Step:
    """Much state is copied ahead first, under the epoch that the step will have."""
    epoch, tables = m.next_epoch, next_tables(m)
    journal = replace(m.journal, epoch=epoch, old_handover=m.record.handover)
    m = replace(m, journal=journal)
    little = m.sizes and moved_bytes(m, tables) <= m.limits.ahead_bytes  # not known before the first cut
    if little or not movers(m.record.tables, tables):
        return hand_over(m, now)
    journal = journal.at(StepName.AHEAD, now)
    record = replace(m.record, ahead=epoch, coming=tables)
    m = replace(m, record=record, journal=journal)
    after, todo = watch(m, State.COPYING, ahead_barrier(epoch), now + m.limits.ahead_s)
    write = WriteControl(record=record, journal=journal, barrier=after.barrier)
    return after, (write, SetFence(epoch=record.epoch), *todo)  # without Redis it is given up at once


def hand_over(m: Machine, now: float) -> Step:
    """The next step of what the journal plans: from here on there is no way back to the tables before it."""
    journal, tables = m.journal.at(StepName.HANDOVER, now), next_tables(m)
    before, epoch = m.record.epoch, journal.epoch
    witnesses = witnesses_of(m, tables)
    record = replace(m.record, epoch=epoch, handover=epoch, witnesses=witnesses, tables=tables, ahead=0, coming={})
    m = replace(m, record=record, journal=journal)
    after, todo = watch(m, State.HANDING, handover_barrier(epoch), now + m.limits.handover_s)
    write = WriteControl(record=record, told=False, journal=journal, barrier=after.barrier)
    return after, (SetFence(epoch=before), write, SetFence(epoch=epoch), *todo)


def started(m: Machine, **fields: object) -> Note:
    journal = m.journal
    about = {"kind": journal.kind, "reason": journal.reason, "moves": journal.moves, "changes": changes_of(m)}
    return Note(action="reconfiguration_started", fields={"epoch": journal.epoch, **fields, **about})


def announce(m: Machine, event: PlanAccepted, now: float) -> Step:
    plan, cut, epoch = event.plan, m.next_cut, m.next_epoch
    journal = Journal(
        kind="restart",
        epoch=epoch,
        cut=cut,
        last_cut=cut,
        old_cut=m.record.cut,
        old_handover=m.record.handover,
        reason=plan.reason,
        request=event.request,
        old_tables=m.record.tables,
        new_tables=plan.tables,
        old_slots=m.slots,
        new_slots=plan.placement,
    ).at(StepName.ANNOUNCE, now)
    stays = tuple(
        task for task in sorted(m.tasks) if task in m.slots and m.slots[task].node == plan.placement[task].node
    )
    record = replace(m.record, epoch=epoch, phase=Phase.PAUSE, cut=cut, tables=dict(plan.tables), stays=stays)
    m = replace(m, record=record, journal=journal, pending=None)
    after, todo = watch(m, State.PAUSING, cut_barrier(cut), now + m.limits.pause_s)
    return after, (
        WriteJournal(journal=journal),
        started(m, cut=cut),
        SetFence(epoch=epoch),
        WriteControl(record=record),
        *todo,
    )


def abort(m: Machine, why: str, now: float) -> Step:
    """Nothing was restarted and every state is in memory: go on as before, under a newer epoch.

    A handover that has taken steps stays where it is.
    """
    journal = m.journal
    record = replace(
        m.record,
        epoch=m.next_epoch,
        phase=Phase.RUN,
        tables=dict(journal.undone_tables),
        cut=journal.old_cut,
        handover=journal.old_handover,
        ahead=0,
        coming={},
        stays=(),
    )
    return close(replace(m, record=record), aborted(why), now, first=(WriteControl(record=record),))


def pause_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return abort(m, f"no report after {m.limits.pause_s} s from {missing_of(m)}", now)


def pause_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    return abort(m, f"the fence could not be set: {event.reason}", now)
