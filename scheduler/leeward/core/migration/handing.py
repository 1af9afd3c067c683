"""A handover in progress: every task says when it owns by the new tables; the stream goes on meanwhile."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.migration.machine import Machine, Step, arrive, errors_of, missing_of
from leeward.core.migration.moving import reset
from leeward.core.migration.pausing import abort, close, hand_over
from leeward.core.orders import DeadlinePassed, FenceFailed, Instruction, Reported, WritePlacement
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
    moved = sum(report.bytes for report in m.arrived.values())
    first: tuple[Instruction, ...] = ()
    if m.seen is None or not m.seen.managed:  # pin what is there, so that Storm does not move it on its own
        slots = m.journal.new_slots
        first = (
            WritePlacement(placement=Placement(topology_id=m.topology_id, epoch=m.record.epoch, slots=slots)),
        )
    waited = max(report.waited for report in m.arrived.values())
    journal = replace(m.journal, exported=moved, waited=waited)
    return close(replace(m, journal=journal), "done", now, first=first)


def handover_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return reset(m, f"handover: no report after {m.limits.handover_s} s from {missing_of(m)}", now)


def handover_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    return abort(m, f"the fence could not be set: {event.reason}", now)
