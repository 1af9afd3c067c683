"""Warm tasks are brought where a plan wants them, while the stream goes on.

Storm restarts every worker whose executors change, so only tasks go that share their slots, old and new, with tasks
that do no work either. They leave all channels at one route marker and join at another; in between Storm takes them.
"""

from __future__ import annotations

from dataclasses import replace

from leeward.core.control import ready_barrier
from leeward.core.journal import StepName
from leeward.core.migration.failover import let_return
from leeward.core.migration.machine import Machine, Step, arrive, is_placed, misfit, saw, watch
from leeward.core.migration.moving import reset
from leeward.core.migration.pausing import announce_absent, close
from leeward.core.orders import (
    Assigned,
    DeadlinePassed,
    Note,
    Reported,
    State,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.outcome import aborted
from leeward.core.plan import Placement


def take(m: Machine, now: float) -> Step:
    """No task waits for them any more: write their new slots. Storm's next pass places them, no rebalance is needed."""
    epoch = m.next_epoch
    journal = m.journal.at(StepName.PREPARE, now, epoch=epoch, placement_epoch=epoch)
    record = replace(m.record, epoch=epoch, restarts=m.record.absent)
    placement = Placement(topology_id=m.topology_id, epoch=epoch, slots=journal.new_slots)
    m = replace(m, journal=journal, record=record, stale=m.seen, tries=0)
    after, todo = watch(m, State.PREPARING, ready_barrier(epoch), now + m.limits.misfit_s)
    first = (WriteJournal(journal=journal), WriteControl(record=record), WritePlacement(placement=placement))
    return after, (*first, *todo)


def join(m: Machine, now: float) -> Step:
    """Every channel to and from them has carried a call: they take part again."""
    return announce_absent(m, StepName.JOIN, (), now)


def seen(m: Machine, event: Assigned, now: float) -> Step:
    return go_on(saw(m, event), now)


def heard(m: Machine, event: Reported, now: float) -> Step:
    return go_on(arrive(m, event), now)


def go_on(m: Machine, now: float) -> Step:
    if m.journal.kind == "rejoin":
        return let_return(m, now) if m.complete else (m, ())
    return join(m, now) if m.complete and is_placed(m) else (m, ())


def late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """A placement that does not fit, or that Storm does not make, is given up; else calls have to follow."""
    if m.journal.kind == "rejoin":
        record = replace(m.record, epoch=m.next_epoch, restarts=())
        ended = aborted(f"not all tasks were heard in {m.limits.return_s} s")
        # else nothing but calls would happen: no checkpoint, no plan, no answer to a request
        m = replace(m, record=record, call_from=now + m.limits.return_s)
        return close(m, ended, now, first=(WriteControl(record=record),))
    if misfit(m):
        return stay(m, f"the plugin reports: {misfit(m)}", now)
    if m.tries == 0:
        return replace(m, tries=1, due=now + m.limits.prepare_s), ()
    if not is_placed(m):
        return stay(m, f"Storm has not placed the warm tasks in {m.limits.prepare_s} s", now)
    return reset(m, f"warm tasks sent no call in {m.limits.prepare_s} s", now)


def stay(m: Machine, why: str, now: float) -> Step:
    """They come back where they were. If Storm took one all the same, its process asks for a reset."""
    journal = replace(m.journal, result=aborted(why), new_tables=m.journal.old_tables, new_slots=m.journal.old_slots)
    placement = Placement(topology_id=m.topology_id, epoch=journal.epoch, slots=journal.new_slots)
    after, todo = join(replace(m, journal=journal), now)
    note = Note(action="prepare_given_up", fields={"why": why})
    return after, (todo[0], WritePlacement(placement=placement), note, *todo[1:])
