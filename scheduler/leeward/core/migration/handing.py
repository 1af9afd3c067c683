"""A handover in progress: its witnesses report when all own by the step's tables; the stream goes on meanwhile."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import handover_barrier
from leeward.core.journal import Journal, StepName
from leeward.core.migration.machine import Machine, Step, arrive, errors_of, missing_of, watch
from leeward.core.migration.moving import reset
from leeward.core.migration.pausing import abort, close, hand_over, next_step
from leeward.core.migration.preparing import take
from leeward.core.orders import (
    DeadlinePassed,
    FenceFailed,
    Instruction,
    Note,
    Reported,
    SetFence,
    State,
    WritePlacement,
)
from leeward.core.outcome import DONE
from leeward.core.plan import Placement


def ahead_report(m: Machine, event: Reported, now: float) -> Step:
    m = arrive(m, event)
    errors = errors_of(m)
    if errors:
        return abort(m, errors, now)
    return hand_over(m, now) if m.complete else (m, ())


def ahead_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return abort(m, f"not copied after {m.limits.ahead_s} s: {missing_of(m)}", now)


def handover_report(m: Machine, event: Reported, now: float) -> Step:
    m = arrive(m, event)
    errors = errors_of(m)
    if errors:
        return reset(m, errors, now)
    if not m.complete:
        return m, ()
    if m.journal.kind == "rejoin":
        return close(m, DONE, now)
    if m.journal.step is StepName.LEAVE:
        return take(m, now)
    if m.journal.step is not StepName.JOIN:
        m = replace(m, journal=tallied(m), arrived={})
    if dict(m.record.tables) != dict(m.journal.new_tables):
        steps = m.journal.steps
        note = Note(action="handover_step", fields={"epoch": m.record.epoch, "steps": steps})
        after, todo = next_step(m, now)
        return after, (note, *todo) if steps else todo
    first: tuple[Instruction, ...] = ()
    if m.seen is None or not m.seen.managed:  # pin what is there, so that Storm does not move it on its own
        slots = m.journal.new_slots
        first = (WritePlacement(placement=Placement(topology_id=m.topology_id, epoch=m.record.epoch, slots=slots)),)
    return close(m, m.journal.result or DONE, now, first=first)


def tallied(m: Machine) -> Journal:
    """The journal with the step that every task has passed; it is written with the next one, or closed."""
    reports = m.arrived.values()
    return replace(
        m.journal,
        steps=m.journal.steps + 1,
        step_tables=m.record.tables,
        exported=m.journal.exported + sum(report.bytes for report in reports),
        waited=max(m.journal.waited, *(report.waited for report in reports)),
    )


def await_witnesses(m: Machine, now: float) -> Step:
    """A step was announced; before it can be over its epoch has to be fenced."""
    after, todo = watch(m, State.HANDING, handover_barrier(m.record.epoch), now + m.limits.handover_s)
    return after, (SetFence(epoch=m.record.epoch), *todo)


def handover_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    if not m.barrier:
        return await_witnesses(m, now)
    return reset(m, f"handover: no report after {m.limits.handover_s} s from {missing_of(m)}", now)


def handover_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    """Before a step's announcement it is given up. After it there is no way back, and Redis is waited for."""
    if m.state is State.HANDING and event.epoch == m.record.epoch:
        note = Note(action="fence_failed", fields={"why": event.reason, "epoch": event.epoch})
        return replace(m, barrier="", due=now + m.limits.retry_s), (note,)
    return abort(m, f"the fence could not be set: {event.reason}", now)
