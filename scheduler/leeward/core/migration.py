"""The coordinator's state machine: one pure table from (state, event) to the next state and what to do.

The shell (`control/coordinator.py`) feeds events and carries out instructions in order; it decides nothing.

Rules
- The journal is written before the step that it names; every step may be repeated.
- A cut number and an epoch are used once. What comes late carries an old number and is ignored.
- Tables change only in RESTORE, when every task has stopped: at an announcement the record carries the new ones, a
  task adopts them when it restores. An abort or an undo brings the old ones back under a newer epoch.
- A cut is committed once every task has reported it without an error, and never before.
- Before PAUSE and before each RESTORE Redis gets the fence, so that an older epoch's writer is refused.
- Failing ZooKeeper ends the coordinator (the next one reads journal and record); failing Nimbus or Redis is an event.
- Every state but IDLE has a deadline at which it goes on, back, or tries again.

    IDLE --plan--> PAUSING --all exported--> MOVING --placed--> RESTORING --all ready--> IDLE
      |  ^            |                        |                   ^    |
      v  |            +--deadline, error: IDLE +--misfit: UNDOING--+    +--cut unreadable, none older: HELD
    CHECKPOINTING                                                  |
    IDLE, CHECKPOINTING, PAUSING --a process was lost--> SETTLING--+
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from leeward.core.control import ControlRecord, Phase, Report, cut_barrier, ready_barrier
from leeward.core.errors import ProtocolError
from leeward.core.journal import Journal, StepName
from leeward.core.orders import (
    Assigned,
    DeadlinePassed,
    DropCuts,
    Event,
    FenceFailed,
    Instruction,
    Limits,
    Note,
    PlanAccepted,
    Rebalance,
    RebalanceFailed,
    RecoverRequested,
    Reported,
    Restarted,
    SetFence,
    State,
    WatchBarrier,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.plan import Placement, Slot, deployment, diff

#: How many past transitions an error tells.
STORY = 20

#: A report whose error starts so says that the cut itself cannot be read; other errors may pass by themselves.
BAD_CUT = "SnapshotError"


# ---- the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All that the coordinator knows. `step` gives the next one."""

    topology_id: str
    tasks: Mapping[int, str]  #: task -> component, all that take part in barriers
    limits: Limits = field(default_factory=Limits)
    state: State = State.OFF
    record: ControlRecord = field(default_factory=ControlRecord)  #: as last written, or about to be
    journal: Journal = field(default_factory=Journal)
    due: float | None = None  #: when DeadlinePassed is to come
    barrier: str = ""  #: the one watched
    arrived: Mapping[int, Report] = field(default_factory=dict)  #: task -> its report at that barrier
    pending: PlanAccepted | None = None  #: waits for the end of a checkpoint
    tries: int = 0  #: of the present step
    lost: bool = False  #: a process was lost while Storm placed: RESTORE needs an epoch of its own
    seen: Assigned | None = None  #: what Storm has, as last published
    stale: Assigned | None = None  #: `seen` when the placement was written: it cannot speak of that placement
    sizes: Mapping[str, int] = field(default_factory=dict)  #: component -> bytes of state in the newest cut
    story: tuple[str, ...] = ()  #: last transitions, oldest first

    @property
    def next_cut(self) -> int:
        """A number that no cut ever had."""
        return 1 + max(
            self.journal.last_cut, self.record.cut, self.record.checkpoint, *self.record.committed, 0
        )

    @property
    def next_epoch(self) -> int:
        """An epoch that neither record nor fence ever had."""
        return 1 + max(self.record.epoch, self.journal.epoch)

    @property
    def complete(self) -> bool:
        """Every task is at the barrier, none with an error."""
        return self.tasks.keys() <= self.arrived.keys() and not any(r.error for r in self.arrived.values())

    @property
    def slots(self) -> Mapping[int, Slot]:
        """Task -> slot, as last published."""
        return self.seen.slots if self.seen else {}


Step = tuple[Machine, tuple[Instruction, ...]]
Handler = Callable[[Machine, Event, float], Step]


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
        line = (
            f"{now:.3f} {machine.state} --{type(event).__name__}--> {after.state} epoch {after.record.epoch}"
        )
        after = replace(after, story=(*machine.story, line)[-STORY:])
    return after, instructions


# ---- starting, and starting again


def _restarted(m: Machine, event: Restarted, now: float) -> Step:
    """Finish or undo what the coordinator before this one had begun."""
    if event.record is None:
        m = replace(m, record=ControlRecord(tables=dict(event.initial)))
        idle, _ = _idle(m, now, m.limits.checkpoint_every_s)
        return idle, (
            WriteJournal(journal=Journal()),
            WriteControl(record=m.record),
            Note(action="first_record"),
        )
    m = replace(m, record=event.record, journal=event.journal or Journal())
    phase, journal = m.record.phase, m.journal
    note = Note(
        action="taken_over", fields={"phase": str(phase), "step": str(journal.step), "epoch": m.record.epoch}
    )
    unwritten = journal.open and journal.epoch > m.record.epoch  # the record did not follow the journal
    if unwritten and journal.kind == "reset":
        after, todo = _reset(m, journal.reason, now)
    elif phase is Phase.PAUSE:
        after, todo = _watch(m, State.PAUSING, cut_barrier(m.record.cut), now + m.limits.pause_s)
    elif phase is Phase.MOVE:
        after, todo = _place(m, State.UNDOING if journal.step is StepName.UNDO else State.MOVING, now)
    elif phase is Phase.RESTORE and unwritten:
        after, todo = _restore(m, now)
    elif phase is Phase.RESTORE:
        after, todo = _watch(m, State.RESTORING, ready_barrier(m.record.epoch), now + m.limits.restore_s)
    elif not journal.open:
        after, todo = _idle(m, now)
    elif unwritten:
        after, todo = _abort(m, "the coordinator stopped before the announcement", now)
    else:
        aborted = journal.step is StepName.ANNOUNCE
        after, todo = _close(m, "aborted: the coordinator stopped" if aborted else _result(m), now)
    return after, (note, *todo)


# ---- checkpoints


def _checkpoint(m: Machine, event: Event, now: float) -> Step:
    record = replace(m.record, checkpoint=m.next_cut)
    after, todo = _watch(
        replace(m, record=record),
        State.CHECKPOINTING,
        cut_barrier(record.checkpoint),
        now + m.limits.checkpoint_s,
    )
    return after, (WriteControl(record=record), *todo)


def _checkpoint_report(m: Machine, event: Reported, now: float) -> Step:
    m = _arrive(m, event)
    errors = _errors(m)
    if errors:
        return _give_up(m, errors, now)
    if not m.complete:
        return m, ()
    number = m.record.checkpoint
    record = replace(m.record, committed=_commit(m, number))
    size = sum(report.bytes for report in m.arrived.values())
    note = Note(action="checkpoint_committed", fields={"cut": number, "bytes": size})
    after, todo = _idle(replace(m, record=record, sizes=_sizes(m)), now, m.limits.checkpoint_every_s)
    return after, (WriteControl(record=record), _drop(after), note, *todo)


def _checkpoint_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return _give_up(m, f"missing after {m.limits.checkpoint_s} s: {_missing(m)}", now)


def _give_up(m: Machine, why: str, now: float) -> Step:
    note = Note(action="checkpoint_failed", fields={"cut": m.record.checkpoint, "why": why})
    after, todo = _idle(m, now, m.limits.checkpoint_every_s)
    return after, (note, *todo)


def _defer(m: Machine, event: PlanAccepted, now: float) -> Step:
    return replace(m, pending=event), ()


# ---- pausing


def _announce(m: Machine, event: PlanAccepted, now: float) -> Step:
    plan, cut, epoch = event.plan, m.next_cut, m.next_epoch
    journal = Journal(
        kind="restart",
        epoch=epoch,
        cut=cut,
        last_cut=cut,
        old_cut=m.record.cut,
        reason=plan.reason,
        old_tables=m.record.tables,
        new_tables=plan.tables,
        old_slots=m.slots,
        new_slots=plan.placement,
    ).at(StepName.ANNOUNCE, now)
    stays = tuple(
        task
        for task in sorted(m.tasks)
        if task in m.slots and m.slots[task].node == plan.placement[task].node
    )
    record = replace(m.record, epoch=epoch, phase=Phase.PAUSE, cut=cut, tables=dict(plan.tables), stays=stays)
    m = replace(m, record=record, journal=journal, pending=None)
    after, todo = _watch(m, State.PAUSING, cut_barrier(cut), now + m.limits.pause_s)
    fields = {
        "epoch": epoch,
        "cut": cut,
        "reason": plan.reason,
        "moves": journal.moves,
        "changes": _changes(m),
    }
    return after, (
        WriteJournal(journal=journal),
        Note(action="reconfiguration_started", fields=fields),
        SetFence(epoch=epoch),
        WriteControl(record=record),
        *todo,
    )


def _pause_report(m: Machine, event: Reported, now: float) -> Step:
    m = _arrive(m, event)
    errors = _errors(m)
    if errors:
        return _abort(m, errors, now)
    if not m.complete:
        return m, ()
    exported = sum(report.bytes for report in m.arrived.values())
    record = replace(m.record, committed=_commit(m, m.record.cut))
    m = replace(m, record=record, sizes=_sizes(m), journal=replace(m.journal, exported=exported))
    if not m.journal.moves:
        return _restore(m, now)
    journal = m.journal.at(StepName.MOVE, now, placement_epoch=record.epoch)
    record = record.with_phase(Phase.MOVE)
    after, todo = _place(replace(m, journal=journal, record=record), State.MOVING, now)
    return after, (
        WriteJournal(journal=journal),
        WriteControl(record=record),
        _phase(m, Phase.MOVE, exported=exported),
        *todo,
    )


def _pause_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    return _abort(m, f"no report after {m.limits.pause_s} s from {_missing(m)}", now)


def _pause_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    return _abort(m, f"the fence could not be set: {event.reason}", now)


def _abort(m: Machine, why: str, now: float) -> Step:
    """Nothing was restarted and every state is in memory: go on as before, under a newer epoch."""
    journal = m.journal
    record = replace(
        m.record,
        epoch=m.next_epoch,
        phase=Phase.RUN,
        tables=dict(journal.old_tables),
        cut=journal.old_cut,
        stays=(),
    )
    return _close(replace(m, record=record), f"aborted: {why}", now, first=(WriteControl(record=record),))


# ---- Storm moves executors


def _place(m: Machine, state: State, now: float) -> Step:
    """Want the slots of the journal and wait until Storm has them."""
    slots = m.journal.new_slots
    placement = Placement(topology_id=m.topology_id, epoch=m.journal.placement_epoch, slots=slots)
    m = replace(m, state=state, due=now + m.limits.misfit_s, tries=1, barrier="", arrived={}, stale=m.seen)
    if _is_placed(m):
        return _restore(m, now)
    return m, (WritePlacement(placement=placement), _rebalance(m, slots))


def _placed(m: Machine, event: Assigned, now: float) -> Step:
    m = replace(m, seen=event)
    return _restore(m, now) if _is_placed(m) else (m, ())


def _move_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    if _misfit(m):
        return _undo(m, f"the plugin says: {_misfit(m)}", now)
    if m.tries >= m.limits.move_tries:
        return _undo(m, f"Storm has not placed it after {m.tries} calls of rebalance", now)
    return _move_again(m, now)


def _undo(m: Machine, why: str, now: float) -> Step:
    """Back to the old slots and tables; the cut is committed, so nothing is lost."""
    epoch = m.next_epoch
    journal = m.journal.at(
        StepName.UNDO,
        now,
        epoch=epoch,
        placement_epoch=epoch,
        new_tables=m.journal.old_tables,
        new_slots=m.journal.old_slots,
        result=f"undone: {why}",
    )
    record = replace(m.record, epoch=epoch, tables=dict(journal.old_tables))
    after, todo = _place(replace(m, journal=journal, record=record), State.UNDOING, now)
    return after, (
        WriteJournal(journal=journal),
        WriteControl(record=record),
        Note(action="reconfiguration_undone", fields={"epoch": epoch, "why": why}),
        *todo,
    )


def _undo_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """The old slots cannot be had either (a node is gone, Nimbus is away): any slots will do."""
    if dict(m.slots) == dict(m.journal.new_slots):
        return _restore(m, now)
    if m.tries < m.limits.move_tries and not _misfit(m):
        return _move_again(m, now)
    after, todo = _settle(m, now)
    return after, (WritePlacement(placement=None), *todo)


def _move_again(m: Machine, now: float) -> Step:
    m = replace(m, tries=m.tries + 1, due=now + m.limits.move_s)
    note = Note(action="rebalance_again", fields={"tries": m.tries, "epoch": m.record.epoch})
    return m, (note, _rebalance(m, m.journal.new_slots))


def _move_refused(m: Machine, event: RebalanceFailed, now: float) -> Step:
    """The plugin's next periodic pass may place all the same; at the deadline Nimbus is asked again."""
    return m, (Note(action="rebalance_failed", fields={"why": event.reason, "tries": m.tries}),)


def _move_lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    """All that counts is in the cut; only RESTORE must have a newer epoch than the one that the task gave up."""
    return (replace(m, lost=True) if event.epoch == m.record.epoch else m), ()


# ---- a process was lost


def _lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    return _reset(m, event.why, now) if event.epoch == m.record.epoch else (m, ())


def _reset(m: Machine, why: str, now: float) -> Step:
    """Everything goes back to the last committed cut. Out of a pause with the tables of before."""
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
        old_tables=tables,
        new_tables=tables,
        old_slots=m.slots,
        new_slots=m.slots,
    ).at(StepName.RESTORE, now)
    notes = [Note(action="reset", fields={"epoch": m.record.epoch, "cut": cut, "why": why})]
    if pausing:
        notes.insert(0, Note(action="reconfiguration_ended", fields=_summary(m, f"aborted: {why}", now)))
    after, todo = _settle(replace(m, journal=journal, pending=None), now)
    return after, (WriteJournal(journal=journal), *notes, *todo)


def _settle(m: Machine, now: float) -> Step:
    m = replace(m, state=State.SETTLING, due=now + m.limits.settle_s, barrier="", arrived={})
    return _restore(m, now) if _all_placed(m) else (m, ())


def _settled(m: Machine, event: Assigned, now: float) -> Step:
    m = replace(m, seen=event)
    return _restore(m, now) if _all_placed(m) else (m, ())


def _settle_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    """Tasks that are not placed will miss barrier 2, which is tried again."""
    return _restore(m, now)


# ---- restoring


def _restore(m: Machine, now: float, *, again: bool = False) -> Step:
    """RESTORE the journal's cut with the journal's tables; `again` under a newer epoch."""
    epoch = m.next_epoch if again or m.lost else max(m.record.epoch, m.journal.epoch)
    journal = m.journal.at(StepName.RESTORE, now, epoch=epoch)
    record = replace(
        m.record,
        epoch=epoch,
        phase=Phase.RESTORE,
        base=epoch,
        cut=journal.cut,
        tables=dict(journal.new_tables),
        stays=(),
        restarts=() if again else _restarting(journal.old_slots, m.slots),
    )
    tries = m.tries + 1 if m.state is State.RESTORING else 1
    m = replace(m, record=record, journal=journal, lost=False, tries=tries)
    after, todo = _watch(m, State.RESTORING, ready_barrier(epoch), now + m.limits.restore_s)
    return after, (
        WriteJournal(journal=journal),
        SetFence(epoch=epoch),
        WriteControl(record=record),
        _phase(m, Phase.RESTORE, tries=tries, cut=record.cut),
        *todo,
    )


def _restarting(before: Mapping[int, Slot], after: Mapping[int, Slot]) -> tuple[int, ...]:
    """Tasks in slots whose executors change: Storm restarts exactly those workers, seconds after it placed them."""
    old, new = _by_slot(before), _by_slot(after)
    return tuple(task for task in sorted(after) if old.get(after[task]) != new[after[task]])


def _by_slot(slots: Mapping[int, Slot]) -> dict[Slot, set[int]]:
    workers: dict[Slot, set[int]] = {}
    for task, slot in slots.items():
        workers.setdefault(slot, set()).add(task)
    return workers


def _restore_report(m: Machine, event: Reported, now: float) -> Step:
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
            after, todo = _fall_back(m, now)
            return after, (note, *todo)
        return replace(m, barrier="", due=now + m.limits.retry_s), (note,)
    m = _arrive(m, event)
    if not m.complete:
        return m, ()
    record = m.record.with_phase(Phase.RUN)
    result = _result(m)
    first: tuple[Instruction, ...] = (WriteControl(record=record),)
    if m.journal.kind == "restart" and not m.journal.placement_epoch:
        # nothing moved: still pin what is there, so that Storm does not move it on its own
        placement = Placement(topology_id=m.topology_id, epoch=record.epoch, slots=m.journal.new_slots)
        first = (*first, WritePlacement(placement=placement))
    return _close(replace(m, record=record), result, now, first=first)


def _result(m: Machine) -> str:
    """How the journal's reconfiguration ends when every task is ready."""
    return m.journal.result or (f"reset: {m.journal.reason}" if m.journal.kind == "reset" else "done")


def _fall_back(m: Machine, now: float) -> Step:
    """The cut cannot be read: take the committed one before it, or none, or wait for a person."""
    bad = m.record.cut
    earlier = tuple(cut for cut in m.record.committed if cut < bad)
    if not earlier and (bad == 0 or not m.limits.restore_from_start):
        note = Note(
            action="alert", fields={"why": f"cut {bad} cannot be read and no older one is left: held"}
        )
        return replace(m, state=State.HELD, due=now + m.limits.held_s, barrier="", arrived={}), (note,)
    cut = earlier[-1] if earlier else 0
    journal = replace(m.journal, cut=cut, last_cut=m.next_cut - 1)
    m = replace(m, journal=journal, record=replace(m.record, committed=earlier))
    after, todo = _restore(m, now, again=True)
    return after, (
        Note(action="alert", fields={"why": f"cut {bad} cannot be read: restoring cut {cut}"}),
        *todo,
    )


def _restore_late(m: Machine, event: DeadlinePassed, now: float) -> Step:
    after, todo = _restore(m, now, again=True)
    if m.tries >= m.limits.restore_tries:
        why = f"barrier 2 was not reached in {m.tries} tries; missing {_missing(m)}"
        todo = (Note(action="alert", fields={"why": why}), *todo)
    return after, todo


def _restore_lost(m: Machine, event: RecoverRequested, now: float) -> Step:
    if event.epoch != m.record.epoch:
        return m, ()
    return _restore(m, now, again=True)


def _restore_unfenced(m: Machine, event: FenceFailed, now: float) -> Step:
    note = Note(action="fence_failed", fields={"why": event.reason, "epoch": m.record.epoch})
    return replace(m, barrier="", due=now + m.limits.retry_s), (note,)


# ---- shared pieces


def _idle(m: Machine, now: float, wait_s: float = 0.0) -> Step:
    m = replace(m, state=State.IDLE, due=now + wait_s, barrier="", arrived={}, tries=0, lost=False)
    return _announce(m, m.pending, now) if m.pending else (m, ())


def _close(m: Machine, result: str, now: float, first: tuple[Instruction, ...] = ()) -> Step:
    """Back to IDLE. The record goes out first: until the journal is closed, the next coordinator closes it."""
    note = Note(action="reconfiguration_ended", fields=_summary(m, result, now))
    journal = m.journal.at(StepName.CLOSED, now, result=result, epoch=m.record.epoch, last_cut=m.next_cut - 1)
    after, todo = _idle(replace(m, journal=journal), now)
    return after, (*first, WriteJournal(journal=journal), note, _drop(after), *todo)


def _summary(m: Machine, result: str, now: float) -> dict[str, object]:
    """What is told of a reconfiguration that ended; `pause_s` is from the announcement to RUN."""
    times = sorted((at, name) for name, at in m.journal.times.items() if name != StepName.CLOSED)
    ends = [at for at, _ in times[1:]] + [now]
    phases = {f"{name}_s": round(end - at, 4) for (at, name), end in zip(times, ends, strict=True)}
    return {
        "kind": m.journal.kind,
        "epoch": m.record.epoch,
        "result": result,
        "reason": m.journal.reason,
        "changes": _changes(m),
        "pause_s": round(now - times[0][0], 4) if times else 0.0,
        "phases": phases,
        "bytes_exported": m.journal.exported,
        "bytes_imported": sum(r.bytes for r in m.arrived.values()) if m.state is State.RESTORING else 0,
    }


def _watch(m: Machine, state: State, barrier: str, due: float) -> Step:
    return replace(m, state=state, barrier=barrier, arrived={}, due=due), (WatchBarrier(name=barrier),)


def _arrive(m: Machine, event: Reported) -> Machine:
    if event.barrier != m.barrier or event.report.task not in m.tasks:
        return m
    return replace(m, arrived={**m.arrived, event.report.task: event.report})


def _errors(m: Machine) -> str:
    return "; ".join(
        f"task {task} ({report.component}): {report.error}"
        for task, report in sorted(m.arrived.items())
        if report.error
    )


def _missing(m: Machine) -> str:
    missing = sorted(m.tasks.keys() - m.arrived.keys())
    return ", ".join(f"{task} ({m.tasks[task]})" for task in missing) or "none"


def _sizes(m: Machine) -> dict[str, int]:
    sizes = dict.fromkeys(m.tasks.values(), 0)
    for task, report in m.arrived.items():
        sizes[m.tasks[task]] += report.bytes
    return sizes


def _commit(m: Machine, cut: int) -> tuple[int, ...]:
    return tuple(sorted({*m.record.committed, cut}))[-m.limits.keep_cuts :]


def _drop(m: Machine) -> DropCuts:
    return DropCuts(below=min(m.record.committed, default=0), epoch=m.record.epoch)


def _rebalance(m: Machine, slots: Mapping[int, Slot]) -> Rebalance:
    executors: dict[str, int] = {}
    for component in m.tasks.values():
        executors[component] = executors.get(component, 0) + 1
    return Rebalance(workers=len(set(slots.values())), executors=dict(sorted(executors.items())))


def _phase(m: Machine, phase: Phase, **fields: object) -> Note:
    return Note(action="phase", fields={"phase": str(phase), "epoch": m.record.epoch, **fields})


def _changes(m: Machine) -> list[dict[str, object]]:
    """Which components the journal's plan scales or moves; empty where the old places are not known."""
    journal = m.journal
    if not set(journal.new_slots) <= set(journal.old_slots):
        return []
    before = deployment(journal.old_tables, journal.old_slots)
    after = deployment(journal.new_tables, journal.new_slots)
    return [
        {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
        for c in diff(before, after)
    ]


def _is_placed(m: Machine) -> bool:
    """Storm has exactly the slots of the journal, by our placement of this epoch."""
    seen = m.seen
    return (
        seen is not None
        and seen.managed
        and seen.epoch == m.journal.placement_epoch
        and dict(seen.slots) == dict(m.journal.new_slots)
    )


def _misfit(m: Machine) -> str:
    """Why the plugin does not follow the placement; empty if it does, or has not spoken since it was written."""
    if m.seen is None or m.seen is m.stale or m.seen.managed:
        return ""
    return m.seen.reason or "not managed"


def _all_placed(m: Machine) -> bool:
    return m.tasks.keys() <= m.slots.keys()


def _see(m: Machine, event: Assigned, now: float) -> Step:
    return replace(m, seen=event), ()


def _ignore(m: Machine, event: Event, now: float) -> Step:
    """It speaks of something that is over."""
    return m, ()


def _refuse(m: Machine, event: PlanAccepted, now: float) -> Step:
    return m, (
        Note(action="plan_refused", fields={"why": f"the coordinator is {m.state}: one change at a time"}),
    )


S = State
_BUSY = (S.PAUSING, S.MOVING, S.UNDOING, S.SETTLING, S.RESTORING, S.HELD)
_RESET = (S.SETTLING, S.RESTORING)


def _rows(states: Iterable[State], event: type, handler: Handler) -> dict[tuple[State, type], tuple]:
    return {(state, event): (handler, (state,)) for state in states}


#: (state, event) -> (handler, states that it may lead to). What is not here is a fault.
TRANSITIONS: Mapping[tuple[State, type], tuple[Handler, tuple[State, ...]]] = {
    # what every state can meet late, and what is only taken note of
    **_rows((s for s in State if s is not S.OFF), Reported, _ignore),
    **_rows((s for s in State if s is not S.OFF), FenceFailed, _ignore),
    **_rows((s for s in State if s is not S.OFF), RebalanceFailed, _ignore),
    **_rows(State, Assigned, _see),
    **_rows(_BUSY, PlanAccepted, _refuse),
    # starting
    (S.OFF, Restarted): (_restarted, tuple(s for s in State if s is not S.OFF and s is not S.CHECKPOINTING)),
    # running
    (S.IDLE, DeadlinePassed): (_checkpoint, (S.CHECKPOINTING,)),
    (S.IDLE, PlanAccepted): (_announce, (S.PAUSING,)),
    (S.IDLE, RecoverRequested): (_lost, (S.IDLE, *_RESET)),
    (S.CHECKPOINTING, Reported): (_checkpoint_report, (S.CHECKPOINTING, S.IDLE, S.PAUSING)),
    (S.CHECKPOINTING, DeadlinePassed): (_checkpoint_late, (S.IDLE, S.PAUSING)),
    (S.CHECKPOINTING, PlanAccepted): (_defer, (S.CHECKPOINTING,)),
    (S.CHECKPOINTING, RecoverRequested): (_lost, (S.CHECKPOINTING, *_RESET)),
    # barrier 1
    (S.PAUSING, Reported): (_pause_report, (S.PAUSING, S.IDLE, S.MOVING, S.RESTORING)),
    (S.PAUSING, DeadlinePassed): (_pause_late, (S.IDLE,)),
    (S.PAUSING, FenceFailed): (_pause_unfenced, (S.IDLE,)),
    (S.PAUSING, RecoverRequested): (_lost, (S.PAUSING, *_RESET)),
    # Storm moves executors
    (S.MOVING, Assigned): (_placed, (S.MOVING, S.RESTORING)),
    (S.MOVING, DeadlinePassed): (_move_late, (S.MOVING, S.UNDOING, S.RESTORING)),
    (S.MOVING, RebalanceFailed): (_move_refused, (S.MOVING,)),
    (S.MOVING, RecoverRequested): (_move_lost, (S.MOVING,)),
    (S.UNDOING, Assigned): (_placed, (S.UNDOING, S.RESTORING)),
    (S.UNDOING, DeadlinePassed): (_undo_late, (S.UNDOING, *_RESET)),
    (S.UNDOING, RebalanceFailed): (_move_refused, (S.UNDOING,)),
    (S.UNDOING, RecoverRequested): (_move_lost, (S.UNDOING,)),
    (S.SETTLING, Assigned): (_settled, (S.SETTLING, S.RESTORING)),
    (S.SETTLING, DeadlinePassed): (_settle_late, (S.RESTORING,)),
    (S.SETTLING, RecoverRequested): (_ignore, (S.SETTLING,)),
    # barrier 2
    (S.RESTORING, Reported): (_restore_report, (S.RESTORING, S.IDLE, S.HELD)),
    (S.RESTORING, DeadlinePassed): (_restore_late, (S.RESTORING,)),
    (S.RESTORING, FenceFailed): (_restore_unfenced, (S.RESTORING,)),
    (S.RESTORING, RecoverRequested): (_restore_lost, (S.RESTORING,)),
    (S.HELD, DeadlinePassed): (_restore_late, (S.RESTORING,)),
    (S.HELD, RecoverRequested): (_ignore, (S.HELD,)),
}
