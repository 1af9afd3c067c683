"""Carries out what `core.migration` decides. One thread; watches only wake it up."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from leeward.control.ports import BarrierStore, Clock, ClusterStore, ControlStore, EventSink, Nimbus, SnapshotStore
from leeward.control.snapshot import ClusterSnapshot, read_snapshot
from leeward.core.control import Phase
from leeward.core.errors import LeewardError, NotReadyError, ProtocolError
from leeward.core.migration import Machine, step
from leeward.core.orders import (
    CutChosen,
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
    Silent,
    State,
    WatchBarrier,
    WriteControl,
    WriteJournal,
    WritePlacement,
)
from leeward.core.plan import Plan, Slot
from leeward.core.table import Table

#: Watches may be missed while ZooKeeper is away: everything is also read this often, in seconds.
POLL_S = 1.0

WATCHED = ("snapshot", "recover", "barrier")

#: Names of the steps, for the fault hook.
STEPS = (
    "claimed", "journal:announce", "fence", "control:pause", "journal:move", "control:move", "placement", "rebalance",
    "journal:undo", "journal:restore", "control:restore", "control:run", "journal:closed", "control:checkpoint",
    "control:ahead", "control:handover", "journal:leave", "journal:prepare",
    "control:prepare", "journal:join",
)  # fmt: skip

#: Sub-phase of RUN that these states announce.
_ASKED = {
    State.CHECKPOINTING: "checkpoint",
    State.COPYING: "ahead",
    State.HANDING: "handover",
    State.PREPARING: "prepare",
}

#: Called with the name of each step after it was taken; tests end the coordinator there.
FaultHook = Callable[[str], None]


class Coordinator:
    """The only writer of one topology's control record. Raises LostLeadershipError when it no longer is."""

    def __init__(
        self,
        *,
        topology: str,
        topology_id: str,
        tasks: Mapping[int, str],
        sinks: Collection[str],
        sources: Collection[str] = (),
        initial: Mapping[str, Table],
        first: Mapping[int, Slot] | None = None,
        control: ControlStore,
        barriers: BarrierStore,
        cluster: ClusterStore,
        snapshots: SnapshotStore,
        nimbus: Nimbus,
        clock: Clock,
        sink: EventSink,
        limits: Limits | None = None,
        fault: FaultHook | None = None,
    ) -> None:
        """`tasks`: task -> component of all that take part; `sinks`: components that no other reads from;
        `sources`: those that read from none; `initial`: tables if there is no record yet, and `first`: then the slots
        to be placed in, as nothing of it runs.
        """
        self._topology, self._initial, self._first = topology, initial, first or {}
        self._control, self._barriers, self._cluster = control, barriers, cluster
        self._snapshots, self._nimbus, self._clock, self._sink = snapshots, nimbus, clock, sink
        self._fault = fault or (lambda step: None)
        self._wakes: queue.Queue[str] = queue.Queue()
        self._dirty = set(WATCHED)
        # one object each, so that watches do not pile up
        self._on = {what: partial(self.wake, what) for what in WATCHED}
        self._polled = 0.0
        self._old: DropCuts | None = None  # for `tidy`
        self._text: str | None = None
        self._barrier = ""  # read last
        self.machine = Machine(
            topology_id=topology_id, tasks=dict(tasks), sinks=frozenset(sinks), sources=frozenset(sources),
            limits=limits or Limits(),
        )  # fmt: skip
        self.snapshot: ClusterSnapshot | None = None  #: as last published
        self.unreadable = ""  #: why the newest snapshot cannot be read; `snapshot` is the one before it

    # --- for the loop

    @property
    def idle(self) -> bool:
        """A plan would be taken now."""
        return self.machine.state in (State.IDLE, State.CHECKPOINTING) and self.machine.pending is None

    def start(self) -> None:
        """Take over: claim the records and finish or undo what was in progress."""
        claim = self._control.claim()
        self._fault("claimed")
        self._read_snapshot()
        self._feed(Restarted(record=claim.record, journal=claim.journal, initial=self._initial, first=self._first))

    def submit(self, plan: Plan, request: str = "") -> None:
        """Begin to carry out a plan that was checked. `request`: the id of the request for it, if there is one."""
        self._feed(PlanAccepted(plan=plan, request=request))

    def silence(self, tasks: frozenset[int], unheard: frozenset[int] = frozenset()) -> None:
        """These tasks, and no others, are silent, and these have not sent a beat yet."""
        changed = tasks != self.machine.silent or unheard != self.machine.unheard
        if changed and self.machine.state is not State.OFF:
            self._read_recoveries()  # a task sends its request before its first beat; the watch may come after it
            self._feed(Silent(tasks=tasks, unheard=unheard))

    def choose(self, cut: int) -> None:
        """A person has decided from where a topology that is held goes on; 0: from empty state."""
        self._feed(CutChosen(cut=cut))

    def wake(self, what: str = "") -> None:
        """End the present wait; callable from any thread."""
        self._wakes.put(what)

    def wait(self, timeout_s: float) -> None:
        """Wait for a watch, the machine's own deadline or `timeout_s`, whichever is first."""
        now = self._clock.now()
        due = self.machine.due if self.machine.due is not None else now + timeout_s
        try:
            if self._wakes.empty():
                timeout = max(0.0, min(timeout_s, due - now, self._polled + POLL_S - now))
                self._dirty.add(self._wakes.get(timeout=self._clock.patience(timeout)))
            while True:
                self._dirty.add(self._wakes.get_nowait())
        except queue.Empty:
            pass

    def work(self) -> None:
        """Take in what has changed, and the deadline if it is over; carry out what follows. Does not wait."""
        now = self._clock.now()
        if now >= self._polled + POLL_S or now < self._polled:
            self._polled = now
            self._dirty |= set(WATCHED)
        dirty, self._dirty = self._dirty, set()
        if "snapshot" in dirty:
            self._read_snapshot()
        if "recover" in dirty:
            self._read_recoveries()
        if "barrier" in dirty and self.machine.barrier:
            self._read_barrier()
        if self.machine.due is not None and self._clock.now() >= self.machine.due:
            self._feed(DeadlinePassed())

    def tidy(self) -> None:
        """Delete cuts and barriers that are over; they cost only room, and the next checkpoint tries again."""
        old, self._old = self._old, None
        if old is None:
            return
        try:
            self._barriers.drop(below=old.below, epoch=old.epoch)
            self._snapshots.delete_cuts(self.machine.topology_id, below=old.below)
        except LeewardError as error:
            self._note("drop_failed", {"why": str(error), "below": old.below})

    # --- facts

    def _read_snapshot(self) -> None:
        text = self._cluster.snapshot(self._on["snapshot"])
        if text == self._text:
            return
        self._text, self.unreadable = text, ""
        try:
            self.snapshot = read_snapshot(text, self.machine.topology_id)
        except NotReadyError:
            return
        except ProtocolError as error:
            self.unreadable = f"the plugin's snapshot cannot be read: {error}"
            return
        self._feed(self.snapshot.assigned)

    def _read_recoveries(self) -> None:
        found = self._barriers.recoveries(self._on["recover"])
        loss, epoch = found.get(self.machine.record.epoch), self.machine.record.epoch
        if loss is not None and self.machine.state is not State.OFF:
            self._feed(RecoverRequested(epoch=epoch, why=loss.why, task=loss.task, fresh=loss.fresh))

    def _read_barrier(self) -> None:
        name, missing = self.machine.barrier, self.machine.missing
        likely = missing if name == self._barrier else ()  # where it has just been made hardly a report can be yet
        self._barrier = name
        arrived = self._barriers.reports(name, self.machine.arrived, self._on["barrier"], likely=likely)
        if arrived:
            self._feed(Reported(barrier=name, reports=tuple(report for _, report in sorted(arrived.items()))))

    # --- deeds

    def _feed(self, event: Event) -> None:
        events: deque[Event] = deque([event])
        while events:
            began, before = self._clock.now(), self.machine.due
            self.machine, todo = step(self.machine, events.popleft(), now=began)
            for instruction in todo:
                failure = self._carry_out(instruction)
                if failure is not None:
                    events.append(failure)
                    break
            due = self.machine.due
            if due is not None and due != before:  # the tasks' time: that of a server which let us wait is not theirs
                self.machine = replace(self.machine, due=due + (self._clock.now() - began))

    def _carry_out(self, instruction: Instruction) -> Event | None:
        """Do it; an event if what failed is not ours and the rest of the batch must not follow."""
        match instruction:
            case WriteJournal(journal=journal):
                self._control.write_journal(journal)
                self._fault(f"journal:{journal.step}")
            case WriteControl(record=record, told=told, journal=journal, barrier=barrier):
                self._control.write_record(record, told=told, journal=journal, barrier=barrier)
                asked = _ASKED.get(self.machine.state) if record.phase is Phase.RUN else None
                self._fault(f"control:{asked or record.phase}")
            case WritePlacement(placement=placement):
                self._control.write_placement(placement)
                self._fault("placement")
            case SetFence(epoch=epoch, base=base):
                return self._try(
                    lambda: self._snapshots.raise_fence(self.machine.topology_id, epoch, base),
                    partial(FenceFailed, epoch=epoch),
                    "fence",
                )
            case Rebalance(workers=workers, executors=executors):
                return self._try(
                    lambda: self._nimbus.rebalance(self._topology, workers=workers, executors=executors),
                    RebalanceFailed,
                    "rebalance",
                )
            case WatchBarrier():
                self._dirty.add("barrier")
                self.wake("barrier")
            case DropCuts():
                self._old = instruction
            case Note(action=action, fields=fields):
                self._note(action, fields)
        return None

    def _try(self, deed: Callable[[], None], failed: Callable[..., Event], name: str) -> Event | None:
        try:
            deed()
        except LeewardError as error:
            return failed(reason=str(error))
        self._fault(name)
        return None

    def _note(self, action: str, fields: Mapping[str, object]) -> None:
        self._sink.emit(action, {"topology": self._topology, **fields})
