"""The part of the migration protocol that runs in each task: facts in, instructions out.

It knows channels, markers and control records; it does not know Storm, Redis or ZooKeeper (`leeward.runtime` carries
out its instructions) nor what the user's code does. `TRANSITIONS` at the end has the states of a task and what leads
from one to another; `core/alignment.py` has when markers are aligned.

Words. A *channel* is the ordered sequence of tuples and markers from one upstream task. A marker *cuts* a channel;
it is *aligned* when it is in from every upstream task; from then on everything before it has been processed and
nothing after it has. A channel whose marker is in waits: its items are queued in order.

While a gained group is not in, an aligned marker counts as not complete and waits, with the channels behind it: every
cut has every group exactly once, and pulses show what they would have shown without the handover.

A task can be *absent*: nobody waits for its markers, and it takes no notice of any. A warm task leaves at the route
marker that names it absent. A task whose process was lost, or silent for too long, is left out of the base by a
RESTORE; its channels stay behind their fence. Either returns at a route marker that does not name it any more, after
calls have shown that the channels from and to it are up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from leeward.core.alignment import (
    Channel,
    announces,
    channel_from,
    cuts_of,
    drop_old_checkpoints,
    drop_stale,
    pause_waits,
    stale,
)
from leeward.core.awaiting import Awaited, GroupOf
from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ProtocolError
from leeward.core.instructions import (
    IGNORES_DATA,
    BeforeCheckpoint,
    CopyAhead,
    Deliver,
    DeliverPulse,
    Export,
    Fact,
    HandedOver,
    HandOver,
    Instruction,
    Kind,
    Load,
    Marker,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
)
from leeward.core.table import Table, gained, movers

PRACTICE = 50  #: calls that no task waits for: the first markers of a worker's life take 40 ms


class TaskProtocol:
    """State machine of one task. Every public method returns the instructions to carry out, in order."""

    def __init__(
        self, task: int, upstream: Iterable[int], *, component: str = "", group_of: GroupOf | None = None
    ) -> None:
        """`group_of`: from a tuple to its key group, for a task whose state moves with its groups."""
        self.task = task
        self.mode = Mode.STARTING
        self.record: ControlRecord | None = None
        self.tables: Mapping[str, Table] = {}  #: in force here: its groupings route, and it owns, by these
        self._replicas: frozenset[int] = frozenset()  # of all components, by these tables
        self._component, self._stateful = component, group_of is not None
        self._awaited = Awaited(group_of or (lambda _: None))
        self.handover = 0  #: epoch of the newest handover that was passed
        self._witnesses: tuple[int, ...] = ()  # tasks that report that one; empty: all
        self._absent: frozenset[int] = frozenset()  # tasks that take no part, since that handover
        self._practice = PRACTICE  # calls that are still to be sent for practice
        self._heard = 0  # epoch in which all channels to and from absent tasks have carried a call
        self._may_return = False  # this process is the one that is to return, not one that Storm is about to end
        self._ahead = 0  # handover whose groups are copied ahead
        self._unsent = False  # groups that it lost are still on their way out
        self._channels = {source: Channel() for source in sorted(upstream)}
        self._checkpoint = 0  # newest cut exported or begun
        self.base = -1  #: epoch in which the state in memory was established; -1: none
        self._state_cut = -1  # cut whose state is in memory since this task paused; -1: it has moved on
        self._loaded = self._ready = False
        self._reason = ""  # why this task is LOST
        self._short = ""  # tuples that were missing before it read a record
        self._fresh = False  # it is LOST as it has just started
        self._first = False  # no process of this task has run before in base 0

    # --- facts ---

    def on_record(self, record: ControlRecord, *, first: bool = False) -> list[Instruction]:
        """The control record as just read. `first`: no process of this task has run before in base 0."""
        known = self.record
        if known is not None and record.stage < known.stage:
            return []  # an older version than one that a marker brought
        if self.mode is Mode.REPLACED and known is not None and record.epoch == known.epoch:
            return []  # a coordinator that took over has written the record anew
        self.record, self._first = record, first
        left_out = self.task in record.left_out
        match record.phase:
            case Phase.RESTORE:
                fact = Fact.RESTORE_WITHOUT if left_out else Fact.RESTORE
            case Phase.RUN:
                fact = Fact.RUN_WITHOUT if left_out else Fact.RUN
            case Phase.PAUSE:
                fact = Fact.PAUSE
            case Phase.MOVE:
                fact = Fact.MOVE
        return self._step(fact, record)

    def _step(self, fact: Fact, about: Any) -> list[Instruction]:
        """The one way from state to state. Raises ProtocolError for what the table does not know."""
        before = self.mode
        handler, targets = TRANSITIONS[before, fact]
        out = handler(self, about)
        if self.mode not in targets:
            raise ProtocolError(
                f"task {self.task}: {before} --{fact}--> {self.mode} is not in the table.",
                remedy="This is a fault of Leeward: please report it.",
            )
        return out

    def clear(self, source: int) -> Channel | None:
        """The channel, if its data tuples may be processed as they come, without asking on_tuple about each.

        The caller adds them to its `count`, and calls this again after any other call of this object.
        """
        channel = self._channels.get(source)
        if channel is None or channel.cut or channel.queue or channel.fence is not None or not self.open:
            return None
        return None if source in self._absent else channel

    def on_tuple(self, source: int, item: Any) -> list[Instruction]:
        """A data tuple arrived."""
        channel = channel_from(source, self._channels, self.task)
        ignored = self.mode in IGNORES_DATA or source in self._absent
        if channel.fence is not None or (ignored and channel.cut is None and not channel.queue):
            channel.dropped += 1
            return []
        channel.count += 1
        if self.mode is Mode.RUNNING and channel.cut is None and not channel.queue:
            return [] if self._awaited and self._awaited.holds(item) else [Deliver(item)]
        channel.queue.append(item)
        return []

    def on_marker(self, source: int, marker: Marker) -> list[Instruction]:
        """A marker arrived."""
        channel = channel_from(source, self._channels, self.task)
        sent, came = channel.compare(marker, self.base)
        if sent != came and source not in self._absent and (self.mode, Fact.MISCOUNT) in TRANSITIONS:
            lost = self._step(
                Fact.MISCOUNT,
                f"task {source} sent {sent} tuples and markers to task {self.task} before {marker.kind} "
                f"{marker.number}, {came} came",
            )
            if self.mode is Mode.LOST:
                return lost
        if marker.kind is Kind.PROBE:
            return self._on_probe(channel, marker)
        if marker.kind is Kind.CALL:
            channel.called = max(channel.called, marker.number)
            return self._check_heard()
        if channel.fence is not None or (
            self.mode in IGNORES_DATA and not channel.queue and not self._brings_back(marker)
        ):
            return []
        channel.queue.append(marker)
        if self.mode is Mode.AWAY and self._is_back():
            return self._step(Fact.RETURN, None)
        return self._drain()

    def misrouted(self, why: str) -> list[Instruction]:
        """A tuple came whose key group this task does not own: the marker that gave the group away, or brought it, was
        lost with the batch that it was in.
        """
        return self._step(Fact.MISCOUNT, why) if (self.mode, Fact.MISCOUNT) in TRANSITIONS else []

    def loaded(self, record: ControlRecord) -> list[Instruction]:
        """The state that Load asked for is in memory."""
        if self.mode is not Mode.RESTORING or self.record is None or record.epoch != self.record.epoch:
            return []
        self._loaded = True
        return self._check_ready()

    def arrived(self, epoch: int, groups: Iterable[int]) -> list[Instruction]:
        """The state of these groups, which HandOver named, is in memory."""
        if self.mode is not Mode.RUNNING or epoch != self.handover or not self._awaited:
            return []
        out: list[Instruction] = [Deliver(item) for item in self._awaited.arrive(groups)]
        return out + self._check_handed_over() + self._drain()

    def sent(self, epoch: int) -> list[Instruction]:
        """The state of the groups that it lost, which HandOver named, is where the new owners find it."""
        if self.mode is not Mode.RUNNING or epoch != self.handover or not self._unsent:
            return []
        self._unsent = False
        return self._check_handed_over()

    def on_timer(self) -> list[Instruction]:
        """Called a few times a second, if `timed`: probes until all tasks run, calls until absent ones are back."""
        if not self.timed:
            return []
        if self.mode is Mode.RESTORING:
            return [self._unaligned(Kind.PROBE)]
        self._practice = max(0, self._practice - 1)
        return [self._unaligned(Kind.CALL)]

    # --- for the shell ---

    def practice(self, calls: int) -> None:
        """Send so many calls for practice instead of PRACTICE; a simulator has no worker to warm up."""
        self._practice = calls

    @property
    def timed(self) -> bool:
        """`on_timer` has markers to send."""
        practises = self._practice > 0 and self.mode is Mode.RUNNING
        return self.record is not None and (self.mode is Mode.RESTORING or practises or self._calls)

    @property
    def open(self) -> bool:
        """A spout may emit, a bolt's user code may run on all of its state."""
        return self.mode is Mode.RUNNING and not self._awaited

    @property
    def waiting(self) -> bool:
        """Something waits for a group that is not in."""
        return bool(self._awaited) and self.buffered > 0

    @property
    def came(self) -> dict[int, int]:
        """Data tuples that came, by upstream task; any thread may ask."""
        return {source: channel.count + channel.dropped for source, channel in self._channels.items()}

    @property
    def buffered(self) -> int:
        """Items queued on all channels, and those that wait for their group."""
        return sum(len(channel.queue) for channel in self._channels.values()) + len(self._awaited)

    # --- rules ---

    def _go_on(self, record: ControlRecord) -> list[Instruction]:
        """RUNNING: the record may ask for something. Bolts begin checkpoints and handovers at markers alone."""
        if record.base != self.base:
            return self._not_of(record)
        drop_stale(self._channels, record.epoch, self.handover)
        begun = self._begin_checkpoint(record) + self._copy_ahead(record) + self._begin_handover(record)
        return begun + self._drain() + self._check_heard()

    def _start(self, record: ControlRecord) -> list[Instruction]:
        """STARTING: only the first process of a task may begin, and only in base 0: its state is empty."""
        if self.task in record.restarts:
            return self._stand_aside(record)
        if record.base or not self._first or record.handover:  # a handover that begins needs every task in its base
            return self._not_of(record)
        if self._short:
            return self._lost(self._short)
        self._use(record.tables)
        return self._run(record, new=True)

    def _resume(self, record: ControlRecord) -> list[Instruction]:
        """PAUSED, RESTORING: on with what is in memory, if that is the state of this base."""
        if record.base != self.base or (self.mode is Mode.RESTORING and not self._ready):
            return self._not_of(record)
        return self._run(record, new=False)

    def _run(self, record: ControlRecord, *, new: bool) -> list[Instruction]:
        self.base = record.base
        self.mode = Mode.RUNNING
        drop_stale(self._channels, record.epoch, self.handover)
        resumed: list[Instruction] = [self._unaligned(Kind.PROBE), Resumed(record, self.tables, new)]
        resumed += self._begin_checkpoint(record)
        return resumed + self._copy_ahead(record) + self._begin_handover(record) + self._drain()

    def _not_of(self, record: ControlRecord) -> list[Instruction]:
        return self._lost(f"task {self.task} did not take part in base {record.base}")

    def _run_without(self, record: ControlRecord) -> list[Instruction]:
        """RUNNING: a process of an older base stands aside."""
        return self._go_on(record) if record.base == self.base else self._stand_aside(record)

    def _stand_aside(self, record: ControlRecord) -> list[Instruction]:
        """AWAY, with nothing: its groups are others'. It may return when `restarts` names it."""
        if self.mode is Mode.AWAY and record.base == self.base:
            return self._check_heard()
        self.mode, self.base, self._may_return = Mode.AWAY, record.base, True
        self._use(record.tables)
        self.handover, self._ahead, self._absent = record.handover, 0, frozenset(record.absent)
        self._checkpoint, self._state_cut, self._unsent = max(self._checkpoint, record.checkpoint), -1, False
        self._awaited.clear()
        for channel in self._channels.values():
            channel.forget()
        return [Resumed(record, self.tables, new=True), *self._check_heard()]

    def _stay_away(self, record: ControlRecord) -> list[Instruction]:
        """AWAY under RUN. A source has no channel that could bring it back: it returns at the record."""
        if record.base != self.base:
            return self._not_of(record)
        if self._channels or record.handover <= self.handover:
            return self._check_heard()
        self.mode = Mode.RUNNING
        return self._begin_handover(record)

    def _return(self, _: object) -> list[Instruction]:
        self.mode = Mode.RUNNING
        return self._drain()

    def _ask_again(self, record: ControlRecord) -> list[Instruction]:
        if self._fresh and self.task in record.restarts and record.phase is Phase.RUN:
            return self._stand_aside(record)  # it had read an older record: it is the process that is to return
        return [Recover(record.epoch, self._reason, self._fresh)]

    def _remember(self, why: str) -> list[Instruction]:
        """STARTING: if this process may begin, it has lost something."""
        self._short = self._short or why
        return []

    def _begin_lost(self, record: ControlRecord) -> list[Instruction]:
        return self._lost(f"task {self.task} started again while the topology was in {record.phase}")

    def _ignore(self, _: object) -> list[Instruction]:
        return []

    def _use(self, tables: Mapping[str, Table]) -> None:
        self.tables, self._replicas = tables, frozenset().union(*tables.values())

    def _restore(self, record: ControlRecord) -> list[Instruction]:
        if self.mode is Mode.RESTORING and self.base == record.base:
            return []
        if self.mode is not Mode.STARTING and self.task in record.restarts:  # a process of before
            self.mode, self.base = Mode.REPLACED, -1
            return []
        keep = self.mode is Mode.PAUSED and self._state_cut == record.cut  # memory is what that cut has
        self._checkpoint = max(self._checkpoint, record.checkpoint)
        self.mode, self.base = Mode.RESTORING, record.base
        self._state_cut = -1
        self._loaded = self._ready = self._unsent = False
        self._use(record.tables)
        self.handover, self._ahead = record.handover, 0
        self._absent = frozenset(record.absent)
        self._awaited.clear()
        for channel in self._channels.values():
            channel.raise_fence(record.base)
        return [self._unaligned(Kind.PROBE), Load(record, keep)]

    def _lost(self, reason: str) -> list[Instruction]:
        self._fresh = self.mode is Mode.STARTING and not self._short
        self.mode, self.base, self._reason = Mode.LOST, -1, reason
        self._awaited.clear()
        for channel in self._channels.values():
            channel.keep_what_follows(self._epoch)
        return [Recover(self._epoch, reason, self._fresh)]

    def _announce_pause(self, record: ControlRecord) -> list[Instruction]:
        """Sources stop at the record; bolts wait for the marker."""
        if self._channels:
            return []
        marker = Marker(kind=Kind.PAUSE, number=record.epoch, body=record.to_json())
        begun = self._begin_checkpoint(record)
        return [*begun, BeforeCheckpoint(record.cut), Send(marker), *self._pause(record)]

    def _pause(self, record: ControlRecord) -> list[Instruction]:
        self.mode = Mode.PAUSED
        self._checkpoint = self._state_cut = record.cut
        return [Export(record.cut, record)]

    def _begin_checkpoint(self, record: ControlRecord) -> list[Instruction]:
        """A spout starts the checkpoint that the record asks for; bolts wait for its marker."""
        if self._channels or record.checkpoint <= self._checkpoint:
            return []
        self._checkpoint = record.checkpoint
        marker = Marker(kind=Kind.CHECKPOINT, number=record.checkpoint, body=record.to_json())
        return [BeforeCheckpoint(record.checkpoint), Send(marker), Export(record.checkpoint, record)]

    def _copy_ahead(self, record: ControlRecord) -> list[Instruction]:
        """Begin to copy what a coming handover will move, or give it up; not if that handover is on its way here."""
        if record.ahead == self._ahead or record.handover == self._ahead != 0:
            return []
        self._ahead = record.ahead
        if self.task not in movers(self.tables, record.coming):
            call = [self._unaligned(Kind.CALL)] if record.ahead else []  # wakes the tasks that markers pass
            return [CopyAhead(0, {}, {}), *call]
        if not self._stateful:
            return [CopyAhead(record.ahead, {}, {})]
        old, new = self.tables[self._component], record.coming[self._component]
        return [CopyAhead(record.ahead, gained(old, new, self.task), gained(new, old, self.task))]

    def _begin_handover(self, record: ControlRecord) -> list[Instruction]:
        """A spout starts the handover that the record announces; bolts wait for its marker."""
        return [] if self._channels or record.handover <= self.handover else self._route(record)

    def _route(self, record: ControlRecord) -> list[Instruction]:
        """From here on the tables of a handover are in force."""
        before = self.tables
        early = self._ahead > record.handover  # no task waited for it, and it copies for the next handover already
        out = [] if early else self._copy_ahead(record)  # if that was for another one, it is given up
        self._use(record.tables)
        self.handover, self._witnesses, self._absent = record.handover, record.witnesses, frozenset(record.absent)
        self._ahead = self._ahead if early else 0
        drop_stale(self._channels, record.epoch, record.handover)
        marker = Marker(kind=Kind.ROUTE, number=record.handover, body=record.to_json())
        out.append(Send(marker, self.tables))
        if self._stateful:
            old, new = before[self._component], self.tables[self._component]
            comes, goes = gained(old, new, self.task), gained(new, old, self.task)
            self._awaited.expect(comes)
            self._unsent = bool(goes)
            if comes or goes:
                out.append(HandOver(record, comes, goes))
        out += self._check_handed_over()
        if self.task in self._absent:
            self._leave(record)
        return out

    def _leave(self, record: ControlRecord) -> None:
        """From here on no task waits for this one. Its successor returns; this process if Storm lets it be."""
        self.mode, self._may_return = Mode.AWAY, self.task in record.left_out
        for channel in self._channels.values():
            channel.queue.clear()

    def _brings_back(self, marker: Marker) -> bool:
        """The route marker after which this task takes part again."""
        if self.mode is not Mode.AWAY or marker.kind is not Kind.ROUTE:
            return False
        if marker.number <= max(self.handover, self.base):  # of before, also of another base
            return False
        record = ControlRecord.from_json(marker.body)  # of an older base: it was on its way while this task was away
        return record.base == self.base and self.task not in record.absent

    def _is_back(self) -> bool:
        """The marker that brings this task back is in from all tasks that take part then."""
        heads = {source: channel.queue[0] for source, channel in self._channels.items() if channel.queue}
        routes = {s: head for s, head in heads.items() if isinstance(head, Marker) and head.kind is Kind.ROUTE}
        absent = set(ControlRecord.from_json(next(iter(routes.values())).body).absent) if routes else set()
        return bool(routes) and self._channels.keys() - absent <= routes.keys()

    @property
    def _calls(self) -> bool:
        """Tasks are about to return, and this process is to send calls: it takes part, or is one of them."""
        record = self.record
        if record is None or record.phase is not Phase.RUN or not record.restarts:
            return False
        returns = self.mode is Mode.AWAY and self._may_return and self.task in record.restarts
        return self.mode is Mode.RUNNING or returns

    def _check_heard(self) -> list[Instruction]:
        """Every channel from and to the tasks that are about to return, as far as it ends here, is up."""
        if not self._calls or self._heard == self._epoch or self.record is None:
            return []
        away, back = set(self.record.absent), set(self.record.restarts)
        sources = self._channels.keys() - (away - back) if self.mode is Mode.AWAY else self._channels.keys() & back
        if any(self._channels[source].called < self._epoch for source in sources):
            return []
        for source in sources:
            self._channels[source].fence = None  # items on it now are from the process that returns
        self._heard = self._epoch
        return [Ready(self._epoch)]

    def _check_handed_over(self) -> list[Instruction]:
        due = not (self._awaited or self._unsent) and (not self._witnesses or self.task in self._witnesses)
        return [HandedOver(self.handover, few=bool(self._witnesses))] if due else []

    def _on_probe(self, channel: Channel, marker: Marker) -> list[Instruction]:
        if marker.number <= channel.probed:
            return []
        channel.probed = marker.number
        if channel.fence is not None and marker.number >= channel.fence:
            channel.fence = None
            return self._check_ready()
        if marker.number > self._epoch:
            channel.queue.append(marker)  # later items belong to a base that this task has not read of yet
        return []

    def _check_ready(self) -> list[Instruction]:
        fenced = any(c.fence is not None for source, c in self._channels.items() if source not in self._absent)
        if self.mode is not Mode.RESTORING or self._ready or not self._loaded or fenced:
            return []
        self._ready = True
        return [Ready(self._epoch)]

    def _drain(self) -> list[Instruction]:
        """Process queued items until each channel is empty or cut; then the aligned marker; and again."""
        out: list[Instruction] = []
        while self.mode is Mode.RUNNING:
            for channel in self._channels.values():
                while channel.queue and channel.cut is None:
                    item = channel.queue[0]
                    if not isinstance(item, Marker):
                        if not self._awaited.holds(item):
                            out.append(Deliver(item))
                    elif item.kind is Kind.PROBE:
                        if announces(item, self._epoch):
                            break  # later items belong to a base whose record is still to come
                    elif not stale(item, self._epoch, self.handover):
                        channel.cut = item
                    channel.queue.popleft()
            cuts = {} if self._awaited else cuts_of(self._channels, self._not_waited_for, self._replicas)
            if not cuts:
                return out
            if drop_old_checkpoints(self._channels, cuts):
                continue
            if pause_waits(cuts):
                return out
            out += self._step(Fact.ALIGNED, cuts)
        return out

    def _aligned(self, cuts: Mapping[int, Marker]) -> list[Instruction]:
        first = next(iter(cuts.values()))
        odd = {source: cut.identity for source, cut in cuts.items() if cut.identity != first.identity}
        if odd:
            return self._lost(f"channels of task {self.task} disagree: {first.identity} and {odd}")
        for source, channel in self._channels.items():
            if source in cuts or (source in self._not_waited_for and not self._returns(source, channel.cut)):
                channel.cut = None
        if first.kind is Kind.PULSE:
            return [DeliverPulse(first.number, tuple(cut.body for cut in cuts.values()))]
        record = ControlRecord.from_json(first.body)
        if self.record is None or record.stage > self.record.stage:
            self.record = record
        if first.kind is Kind.ROUTE:
            return self._route(record)
        forward = Send(replace(first, sent=None))
        if first.kind is Kind.CHECKPOINT:
            self._checkpoint = first.number
            return [BeforeCheckpoint(first.number), forward, Export(first.number, record)]
        return [BeforeCheckpoint(record.cut), forward, *self._pause(record)]

    def _returns(self, source: int, cut: Marker | None) -> bool:
        """An absent task has sent the marker that brings it back; upstream tasks with a backlog send it later."""
        if source not in self._absent or cut is None or cut.kind is not Kind.ROUTE or cut.number <= self.handover:
            return False
        record = ControlRecord.from_json(cut.body)
        return record.base == self.base and source not in record.absent

    def _unaligned(self, kind: Kind) -> Send:
        number = self.base if kind is Kind.PROBE else self._epoch
        return Send(Marker(kind=kind, number=number), self.tables)

    @property
    def _epoch(self) -> int:
        return -1 if self.record is None else self.record.epoch

    @property
    def _not_waited_for(self) -> frozenset[int]:
        """Absent tasks, and those that the record leaves out since: their processes are lost, and send no marker."""
        record = self.record
        return self._absent.union(record.left_out if record is not None and record.base == self.base else ())

    @property
    def works(self) -> bool:
        """It is a replica by the tables in force. A source that is none emits nothing."""
        return self.task in self._replicas


_M, _F = Mode, Fact
_Handler = Callable[[TaskProtocol, Any], list[Instruction]]

#: (state, fact) -> (rule, states that it may lead to). Every state knows every record. No other pair can occur.
TRANSITIONS: Mapping[tuple[Mode, Fact], tuple[_Handler, tuple[Mode, ...]]] = {
    (_M.STARTING, _F.RUN): (TaskProtocol._start, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.STARTING, _F.RUN_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.STARTING, _F.PAUSE): (TaskProtocol._begin_lost, (_M.LOST,)),
    (_M.STARTING, _F.MOVE): (TaskProtocol._ignore, (_M.STARTING,)),
    (_M.STARTING, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING,)),
    (_M.STARTING, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.STARTING, _F.MISCOUNT): (TaskProtocol._remember, (_M.STARTING,)),
    (_M.RUNNING, _F.RUN): (TaskProtocol._go_on, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.RUNNING, _F.RUN_WITHOUT): (TaskProtocol._run_without, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.RUNNING, _F.PAUSE): (TaskProtocol._announce_pause, (_M.RUNNING, _M.PAUSED)),
    (_M.RUNNING, _F.MOVE): (TaskProtocol._ignore, (_M.RUNNING,)),
    (_M.RUNNING, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.RUNNING, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.RUNNING, _F.ALIGNED): (TaskProtocol._aligned, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.RUNNING, _F.MISCOUNT): (TaskProtocol._lost, (_M.LOST,)),
    (_M.PAUSED, _F.RUN): (TaskProtocol._resume, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.PAUSED, _F.RUN_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.PAUSED, _F.PAUSE): (TaskProtocol._ignore, (_M.PAUSED,)),
    (_M.PAUSED, _F.MOVE): (TaskProtocol._ignore, (_M.PAUSED,)),
    (_M.PAUSED, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.PAUSED, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.PAUSED, _F.MISCOUNT): (TaskProtocol._lost, (_M.LOST,)),
    (_M.RESTORING, _F.RUN): (TaskProtocol._resume, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
    (_M.RESTORING, _F.RUN_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.RESTORING, _F.PAUSE): (TaskProtocol._ignore, (_M.RESTORING,)),
    (_M.RESTORING, _F.MOVE): (TaskProtocol._ignore, (_M.RESTORING,)),
    (_M.RESTORING, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.RESTORING, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.LOST, _F.RUN): (TaskProtocol._ask_again, (_M.LOST, _M.AWAY)),
    (_M.LOST, _F.RUN_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.LOST, _F.PAUSE): (TaskProtocol._ask_again, (_M.LOST,)),
    (_M.LOST, _F.MOVE): (TaskProtocol._ask_again, (_M.LOST,)),
    (_M.LOST, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.LOST, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.REPLACED, _F.RUN): (TaskProtocol._ignore, (_M.REPLACED,)),
    (_M.REPLACED, _F.RUN_WITHOUT): (TaskProtocol._ignore, (_M.REPLACED,)),
    (_M.REPLACED, _F.PAUSE): (TaskProtocol._ignore, (_M.REPLACED,)),
    (_M.REPLACED, _F.MOVE): (TaskProtocol._ignore, (_M.REPLACED,)),
    (_M.REPLACED, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.REPLACED, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.AWAY, _F.RUN): (TaskProtocol._stay_away, (_M.AWAY, _M.RUNNING, _M.LOST)),
    (_M.AWAY, _F.RUN_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.AWAY, _F.PAUSE): (TaskProtocol._ignore, (_M.AWAY,)),
    (_M.AWAY, _F.MOVE): (TaskProtocol._ignore, (_M.AWAY,)),
    (_M.AWAY, _F.RESTORE): (TaskProtocol._restore, (_M.RESTORING, _M.REPLACED)),
    (_M.AWAY, _F.RESTORE_WITHOUT): (TaskProtocol._stand_aside, (_M.AWAY,)),
    (_M.AWAY, _F.RETURN): (TaskProtocol._return, (_M.RUNNING, _M.PAUSED, _M.AWAY, _M.LOST)),
}  # fmt: skip
