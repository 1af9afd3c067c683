"""Checkpoints: a cut of a topology that runs on, so that a lost process costs little."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import cut_barrier
from leeward.core.migration.machine import (
    Machine,
    Step,
    arrive,
    drop_old,
    errors_of,
    missing_of,
    sizes_of,
    watch,
    with_cut,
)
from leeward.core.migration.pausing import begin, is_live, refuse_pending, to_idle
from leeward.core.orders import DeadlinePassed, Event, Instruction, Note, PlanAccepted, Reported, State, WriteControl

#: The part of a task's time that encoding and writing its part of a checkpoint may take.
SHARE = 0.02


def checkpoint_due(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """The first checkpoint waits until Storm has started all tasks, as a plan would have to wait for its end; at most
    as long as a checkpoint may take: then it begins, and its failure names the tasks.
    """
    if m.unheard and not m.record.committed and not m.tries:
        note = Note(action="tasks_awaited", fields={"tasks": sorted(m.unheard)})
        return replace(m, tries=1, due=now + m.limits.checkpoint_s), (note,)
    return checkpoint(replace(m, tries=0), event, now)


def checkpoint(m: Machine, event: Event, now: float) -> Step:
    record = replace(m.record, checkpoint=m.next_cut)
    after, todo = watch(
        replace(m, record=record),
        State.CHECKPOINTING,
        cut_barrier(record.checkpoint),
        now + m.limits.checkpoint_s,
    )
    return after, (WriteControl(record=record, told=False), *todo)


def checkpoint_report(m: Machine, event: Reported, now: float) -> Step:
    m = arrive(m, event)
    errors = errors_of(m)
    if errors:
        return give_up(m, errors, now)
    if not m.complete:
        return m, ()
    number = m.record.checkpoint
    record = replace(m.record, committed=with_cut(m, number))
    size = sum(report.bytes for report in m.arrived.values())
    note = Note(action="checkpoint_committed", fields={"cut": number, "bytes": size})
    after, todo = to_idle(replace(m, record=record, sizes=sizes_of(m)), now, interval(m))
    return after, (WriteControl(record=record, told=False), drop_old(after), note, *todo)


def interval(m: Machine) -> float:
    """Until the next checkpoint: as long as the stores of all tasks allow. If none says anything, short, so that little
    is repeated after a loss, but only as far as it is cheap."""
    if allowed := [report.period_s for report in m.arrived.values() if report.period_s]:
        return min(m.limits.checkpoint_every_s, *allowed)
    longest = max((report.seconds for report in m.arrived.values()), default=0.0)
    least = min(m.limits.checkpoint_least_s, m.limits.checkpoint_every_s)
    return min(m.limits.checkpoint_every_s, max(least, longest / SHARE))


def checkpoint_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return give_up(m, f"missing after {m.limits.checkpoint_s} s: {missing_of(m)}", now)


def give_up(m: Machine, why: str, now: float) -> Step:
    note = Note(action="checkpoint_failed", fields={"cut": m.record.checkpoint, "why": why})
    refused: tuple[Instruction, ...] = ()
    if m.pending is not None and lacks_fallback(m, m.pending):
        m, refused = refuse_pending(m, why)
    after, todo = to_idle(m, now, m.limits.checkpoint_every_s)
    return after, (note, *refused, *todo)


def lacks_fallback(m: Machine, event: PlanAccepted) -> bool:
    """The cut of a restart's pause may lie in the swap area of a node that is lost: there has to be one before it."""
    return not is_live(m, event) and not m.record.committed


def accept(m: Machine, event: PlanAccepted, now: float) -> Step:
    """Begin, or take a cut of the running topology first: the newest one may be that of a pause, and bound to nodes."""
    if m.away:
        return refuse_pending(replace(m, pending=event), "tasks are away")
    bound = m.record.cut and m.record.cut == max(m.record.committed, default=0)
    if (bound and is_live(m, event)) or lacks_fallback(m, event):
        return checkpoint(replace(m, pending=event), event, now)
    return begin(m, event, now)


def defer(m: Machine, event: PlanAccepted, now: float) -> Step:
    return replace(m, pending=event), ()
