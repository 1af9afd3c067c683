"""The table of transitions, the one way forward, and taking over from a coordinator that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from leeward.core.control import ControlRecord, Phase, cut_barrier, ready_barrier
from leeward.core.errors import ProtocolError
from leeward.core.journal import Journal, StepName
from leeward.core.migration.checkpoints import accept, checkpoint_due, checkpoint_late, checkpoint_report, defer
from leeward.core.migration.handing import (
    ahead_late,
    ahead_report,
    await_witnesses,
    handover_late,
    handover_report,
    handover_unfenced,
)
from leeward.core.migration.machine import Handler, Machine, Step, saw, watch
from leeward.core.migration.moving import (
    hear,
    lost,
    move_late,
    move_lost,
    move_refused,
    pause_report,
    place,
    placed,
    reset,
    settle_late,
    settled,
    silent,
    silent_restoring,
    undo_late,
)
from leeward.core.migration.pausing import abort, begin, close, next_step, pause_late, pause_unfenced, to_idle
from leeward.core.migration.preparing import heard, join, late, seen, take
from leeward.core.migration.restoring import (
    chosen,
    held_by_another,
    look_again,
    not_held,
    restore,
    restore_late,
    restore_lost,
    restore_report,
    restore_unfenced,
)
from leeward.core.migration.telling import result_of
from leeward.core.orders import (
    Assigned,
    CutChosen,
    DeadlinePassed,
    Event,
    FenceFailed,
    Note,
    PlanAccepted,
    RebalanceFailed,
    RecoverRequested,
    Reported,
    Restarted,
    Silent,
    State,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.outcome import aborted
from leeward.core.plan import Placement, Plan, Slot

#: How many past transitions an error lists.
STORY = 20
#: Part of the time between checkpoints after which the first one comes: until then a lost process costs everything.
FIRST_CHECKPOINT = 1 / 3


def step(machine: Machine, event: Event, *, now: float) -> Step:
    """The one way forward. Raises ProtocolError, with the story, for an event that the table does not know."""
    row = TRANSITIONS.get((machine.state, type(event)))
    if row is None:
        raise ProtocolError(
            f"event {type(event).__name__} in state {machine.state} of {machine.topology_id}; "
            f"before: {' | '.join(machine.story) or 'nothing'}.",
            remedy="This is a fault of Leeward: please report it with this story.",
        )
    handler, targets = row
    after, instructions = handler(machine, event, now)
    if after.state not in targets:
        raise ProtocolError(f"{machine.state} --{type(event).__name__}--> {after.state} is not in the table.")
    if after.state is not machine.state or after.record is not machine.record:
        line = f"{now:.3f} {machine.state} --{type(event).__name__}--> {after.state} epoch {after.record.epoch}"
        after = replace(after, story=(*machine.story, line)[-STORY:])
    return after, instructions


def restarted(m: Machine, event: Restarted, now: float) -> Step:
    """Finish or undo what the coordinator before this one had begun."""
    if event.record is None:
        m = replace(m, record=ControlRecord(tables=dict(event.initial)))
        idle, _ = to_idle(m, now, m.limits.checkpoint_every_s * FIRST_CHECKPOINT)
        return idle, (
            WriteJournal(journal=Journal()),
            WriteControl(record=m.record),  # before the placement: no task may start without it
            *first_placement(m, event.first),
            Note(action="first_record"),
        )
    m = replace(m, record=event.record, journal=event.journal or Journal())
    phase, journal = m.record.phase, m.journal
    note = Note(action="taken_over", fields={"phase": str(phase), "step": str(journal.step), "epoch": m.record.epoch})
    unwritten = journal.open and journal.epoch > m.record.epoch  # the record did not follow the journal
    if unwritten and journal.kind == "reset":
        after, todo = reset(m, journal.reason, now)
    elif phase is Phase.RESTORE and journal.step is StepName.HELD:
        after, todo = held_by_another(m, now)
    elif phase is Phase.PAUSE:
        after, todo = watch(m, State.PAUSING, cut_barrier(m.record.cut), now + m.limits.pause_s)
    elif phase is Phase.MOVE:
        after, todo = place(m, State.UNDOING if journal.step is StepName.UNDO else State.MOVING, now)
    elif phase is Phase.RESTORE and unwritten:
        after, todo = restore(m, now)
    elif phase is Phase.RESTORE:
        after, todo = watch(m, State.RESTORING, ready_barrier(m.record.epoch), now + m.limits.restore_s)
    elif not journal.open:
        after, todo = to_idle(m, now)
    elif journal.kind == "rejoin" and (unwritten or journal.step is StepName.PREPARE):
        record = replace(m.record, epoch=m.next_epoch, restarts=())
        m = replace(m, record=record)
        after, todo = close(m, aborted("the coordinator stopped"), now, first=(WriteControl(record=record),))
    elif journal.kind == "rejoin":
        after, todo = await_witnesses(m, now)
    elif journal.step is StepName.PREPARE or (unwritten and journal.step is StepName.JOIN):
        after, todo = (take if journal.step is StepName.PREPARE else join)(m, now)
    elif journal.kind == "handover" and m.record.epoch > journal.epoch:  # the record that gives it up is out
        after, todo = close(m, aborted("the coordinator stopped"), now)
    elif journal.kind == "handover" and not unwritten:
        after, todo = await_witnesses(m, now)
    elif unwritten and journal.kind == "handover" and journal.steps:
        after, todo = next_step(m, now)  # copying ahead for it begins anew
    elif unwritten:
        after, todo = begin_again(m, now)
    else:
        given_up = journal.step is StepName.ANNOUNCE
        after, todo = close(m, aborted("the coordinator stopped") if given_up else result_of(m), now)
    return after, (note, *todo)


def first_placement(m: Machine, slots: Mapping[int, Slot]) -> tuple[WritePlacement, ...]:
    """Nothing runs yet: Storm's next pass places the tasks in these slots, if there are any."""
    if not slots:
        return ()
    return (WritePlacement(placement=Placement(topology_id=m.topology_id, epoch=m.record.epoch, slots=slots)),)


def begin_again(m: Machine, now: float) -> Step:
    """Nothing was announced: carry out the journal's plan from its beginning, for the same request."""
    journal = m.journal
    record = replace(m.record, ahead=0, coming={})
    plan = Plan(tables=journal.new_tables, placement=journal.new_slots, reason=journal.reason)
    if not m.tasks.keys() <= m.slots.keys():
        return abort(m, "the coordinator stopped before the announcement", now)
    return begin(replace(m, record=record), PlanAccepted(plan=plan, request=journal.request), now)


def see(m: Machine, event: Assigned, now: float) -> Step:
    return saw(m, event), ()


def ignore(m: Machine, event: Event, now: float) -> Step:
    """Stale event."""
    return m, ()


def refuse(m: Machine, event: PlanAccepted, now: float) -> Step:
    return m, (Note(action="plan_refused", fields={"why": f"the coordinator is {m.state}: one change at a time"}),)


S = State
_BUSY = (S.COPYING, S.HANDING, S.PREPARING, S.PAUSING, S.MOVING, S.UNDOING, S.SETTLING, S.RESTORING, S.HELD)
_RESET = (S.SETTLING, S.RESTORING)
_BEGUN = (S.COPYING, S.HANDING, S.PAUSING)
#: Tasks that are lost are left out, or return.
_MEND = (S.HANDING, S.PREPARING)


def rows(
    states: Iterable[State], event: type, handler: Handler
) -> dict[tuple[State, type], tuple[Handler, tuple[State, ...]]]:
    return {(state, event): (handler, (state,)) for state in states}


#: (state, event) -> (handler, states that it may lead to). Any other pair is a fault.
TRANSITIONS: Mapping[tuple[State, type], tuple[Handler, tuple[State, ...]]] = {
    # events that every state can meet late, and those that are only taken note of
    **rows((s for s in State if s is not S.OFF), Reported, ignore),
    **rows((s for s in State if s is not S.OFF), FenceFailed, ignore),
    **rows((s for s in State if s is not S.OFF), RebalanceFailed, ignore),
    **rows(State, Assigned, see),
    **rows(_BUSY, PlanAccepted, refuse),
    **rows((s for s in State if s is not S.OFF), CutChosen, not_held),
    **rows((S.MOVING, S.UNDOING, S.SETTLING, S.HELD), Silent, hear),
    # starting
    (S.OFF, Restarted): (restarted, tuple(s for s in State if s is not S.OFF and s is not S.CHECKPOINTING)),
    # running
    (S.IDLE, DeadlinePassed): (checkpoint_due, (S.CHECKPOINTING, S.IDLE)),
    (S.IDLE, PlanAccepted): (accept, (*_BEGUN, S.CHECKPOINTING, S.IDLE, *_MEND)),
    (S.IDLE, RecoverRequested): (lost, (S.IDLE, S.HANDING, *_RESET)),
    (S.IDLE, Silent): (silent, (S.IDLE, *_MEND, *_RESET)),
    (S.CHECKPOINTING, Reported): (checkpoint_report, (S.CHECKPOINTING, S.IDLE, *_BEGUN, *_MEND)),
    (S.CHECKPOINTING, DeadlinePassed): (checkpoint_late, (S.IDLE, *_BEGUN, *_MEND)),
    (S.CHECKPOINTING, Silent): (silent, (S.CHECKPOINTING, S.HANDING, *_RESET)),
    (S.CHECKPOINTING, PlanAccepted): (defer, (S.CHECKPOINTING,)),
    (S.CHECKPOINTING, RecoverRequested): (lost, (S.CHECKPOINTING, S.HANDING, *_RESET)),
    # a handover
    (S.COPYING, Reported): (ahead_report, (S.COPYING, S.HANDING, S.IDLE, *_MEND)),
    (S.COPYING, DeadlinePassed): (ahead_late, (S.IDLE, *_MEND)),
    (S.COPYING, FenceFailed): (handover_unfenced, (S.IDLE, *_MEND)),
    (S.COPYING, Silent): (silent, (S.COPYING, S.IDLE, *_MEND, *_RESET)),
    (S.COPYING, RecoverRequested): (lost, (S.COPYING, *_RESET)),
    (S.HANDING, Reported): (handover_report, (S.HANDING, S.COPYING, S.PREPARING, S.IDLE, *_MEND, *_RESET)),
    (S.HANDING, DeadlinePassed): (handover_late, (S.HANDING, *_RESET)),
    (S.HANDING, FenceFailed): (handover_unfenced, (S.HANDING, S.IDLE, *_MEND)),
    (S.HANDING, Silent): (silent, (S.HANDING, *_RESET)),
    (S.HANDING, RecoverRequested): (lost, (S.HANDING, *_RESET)),
    # warm tasks go where they are wanted
    (S.PREPARING, Assigned): (seen, (S.PREPARING, S.HANDING)),
    (S.PREPARING, Reported): (heard, (S.PREPARING, S.HANDING)),
    (S.PREPARING, DeadlinePassed): (late, (S.PREPARING, S.HANDING, S.IDLE, *_RESET)),
    (S.PREPARING, Silent): (silent, (S.PREPARING, *_RESET)),
    (S.PREPARING, RecoverRequested): (lost, (S.PREPARING, *_RESET)),
    # barrier 1
    (S.PAUSING, Reported): (pause_report, (S.PAUSING, S.IDLE, S.MOVING, S.RESTORING, *_MEND)),
    (S.PAUSING, DeadlinePassed): (pause_late, (S.IDLE, *_MEND)),
    (S.PAUSING, FenceFailed): (pause_unfenced, (S.IDLE, *_MEND)),
    (S.PAUSING, Silent): (silent, (S.PAUSING, S.IDLE, *_MEND, *_RESET)),
    (S.PAUSING, RecoverRequested): (lost, (S.PAUSING, *_RESET)),
    # Storm moves executors
    (S.MOVING, Assigned): (placed, (S.MOVING, S.RESTORING)),
    (S.MOVING, DeadlinePassed): (move_late, (S.MOVING, S.UNDOING, S.RESTORING)),
    (S.MOVING, RebalanceFailed): (move_refused, (S.MOVING,)),
    (S.MOVING, RecoverRequested): (move_lost, (S.MOVING,)),
    (S.UNDOING, Assigned): (placed, (S.UNDOING, S.RESTORING)),
    (S.UNDOING, DeadlinePassed): (undo_late, (S.UNDOING, *_RESET)),
    (S.UNDOING, RebalanceFailed): (move_refused, (S.UNDOING,)),
    (S.UNDOING, RecoverRequested): (move_lost, (S.UNDOING,)),
    (S.SETTLING, Assigned): (settled, (S.SETTLING, S.RESTORING)),
    (S.SETTLING, DeadlinePassed): (settle_late, (S.RESTORING,)),
    (S.SETTLING, RecoverRequested): (ignore, (S.SETTLING,)),
    # barrier 2
    (S.RESTORING, Reported): (restore_report, (S.RESTORING, S.IDLE, S.HELD, *_MEND)),
    (S.RESTORING, Silent): (silent_restoring, (S.RESTORING,)),
    (S.RESTORING, DeadlinePassed): (restore_late, (S.RESTORING,)),
    (S.RESTORING, FenceFailed): (restore_unfenced, (S.RESTORING,)),
    (S.RESTORING, RecoverRequested): (restore_lost, (S.RESTORING,)),
    (S.HELD, DeadlinePassed): (look_again, (S.RESTORING,)),
    (S.HELD, CutChosen): (chosen, (S.HELD, S.RESTORING)),
    (S.HELD, RecoverRequested): (ignore, (S.HELD,)),
}
