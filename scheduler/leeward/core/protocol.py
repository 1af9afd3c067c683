"""The part of the migration protocol that runs in each task: facts in, instructions out.

All protocol rules of a task live in this file. It knows channels, markers and control records; it does not know
Storm, Redis or ZooKeeper (`leeward.runtime` carries out its instructions) nor what the user's code does.

Words. A *channel* is the ordered sequence of tuples and markers from one upstream task. A marker *cuts* a channel;
it is *aligned* when it is in from every upstream task; from then on everything before it has been processed and
nothing after it has. A channel whose marker is in waits: what arrives on it is queued in order.

Markers (kind, number):
  pulse       n = pulse number; cuts the stream by the data's own time; work goes on. It goes from replicas to
              replicas by the tables in force: at a warm task there is nothing to cut
  checkpoint  n = cut; the task exports its state and goes on
  pause       n = epoch; the task exports its state and stops until the control record says RUN
  probe       n = base; not aligned: shows that the channel from this sender is up, and that all that follows on it
              belongs to that base. It carries the routing tables to the sender's groupings.
  route       n = epoch of a handover, with new tables for the sender's groupings; warm tasks' are not waited for. The
              task hands over what it loses and goes on; tuples of a group that it gains wait until the group is in
  call        n = epoch; not aligned: shows that the channel from this sender is up, where absent tasks are to return.
              A task that begins to run sends some for practice, and before a handover one wakes who is warm

While a gained group is not in, an aligned marker counts as not complete and waits, with the channels behind it: every
cut has every group exactly once, and pulses show what they would have shown without the handover.

A warm task can be *absent*, from the route marker that says so to the one that does not: nobody waits for its markers,
and it takes no notice of any. Its process may end meanwhile; a new one joins at the marker that brings the task back.

Modes: STARTING (no record yet) -> RUNNING <-> PAUSED -> RESTORING -> RUNNING; LOST (asked for a reset; waits);
REPLACED (Storm is about to restart this task's worker: its successor restores, this process only waits for its end);
RUNNING or STARTING -> AWAY (absent) -> RUNNING.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from leeward.core.instructions import (
    DEAF,
    CopyAhead,
    Deliver,
    DeliverPulse,
    Export,
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

PRACTICE = 50  #: calls that nobody waits for: the first markers of a worker's life take 40 ms


class TaskProtocol:
    """State machine of one task. Every public method returns the instructions to carry out, in order."""

    def __init__(
        self, task: int, upstream: Iterable[int], *, component: str = "", group_of: GroupOf | None = None
    ) -> None:
        """`group_of`: from a tuple to its key group, for a task whose state moves with its groups."""
        self.task = task
        self.mode = Mode.STARTING
        self.record: ControlRecord | None = None
        self.tables: Mapping[str, Table] = {}  #: in force here: what its groupings route by and what it owns
        self._replicas: frozenset[int] = frozenset()  # of all components, by these tables
        self._component, self._stateful = component, group_of is not None
        self._awaited = Awaited(group_of or (lambda _: None))
        self._handover = 0  # epoch of the newest handover that was passed
        self._witnesses: tuple[int, ...] = ()  # who reports that one; empty: all
        self._absent: frozenset[int] = frozenset()  # tasks that take no part, since that handover
        self._practice = PRACTICE  # calls that are still to be sent for practice
        self._heard = 0  # epoch in which it has heard all channels to and from absent tasks
        self._began_away = False  # this process has never been part of anything: it is the one that is to join
        self._ahead = 0  # handover whose groups are copied ahead
        self._unsent = False  # groups that it lost are still on their way out
        self._channels = {source: Channel() for source in sorted(upstream)}
        self._checkpoint = 0  # newest cut exported or begun
        self._base = -1  # epoch in which the state in memory was established; -1: none
        self._state_cut = -1  # cut whose state is in memory since this task paused; -1: it has moved on
        self._loaded = self._ready = False
        self._reason = ""  # why this task is LOST

    # --- facts ---

    def on_record(self, record: ControlRecord, *, first: bool = False) -> list[Instruction]:
        """The control record as just read. `first`: no process of this task has run before in base 0."""
        known = self.record
        if known is not None and record.stage < known.stage:
            return []  # an older version than one that a marker brought
        if self.mode is Mode.REPLACED and known is not None and record.epoch == known.epoch:
            return []  # a coordinator that took over has written the record anew
        self.record = record
        if record.phase is Phase.RESTORE:
            return self._restore(record)
        if self.mode is Mode.LOST:
            return [Recover(record.epoch, self._reason)]
        if self.mode is Mode.REPLACED:
            return []
        if record.phase is Phase.RUN:
            return self._run(record, first)
        if self.mode is Mode.STARTING and record.phase is Phase.PAUSE:
            return self._lost(f"task {self.task} started again while the topology was in {record.phase}")
        if record.phase is Phase.PAUSE and self.mode is Mode.RUNNING and not self._channels:
            return self._announce_pause(record)
        return []

    def clear(self, source: int) -> Channel | None:
        """The channel, if its data tuples may be processed as they come, without asking on_tuple about each.

        Whoever does so adds them to its `count`, and asks again after any other call of this object.
        """
        channel = self._channels.get(source)
        if channel is None or channel.cut or channel.queue or channel.fence is not None or not self.open:
            return None
        return channel

    def on_tuple(self, source: int, item: Any) -> list[Instruction]:
        """A data tuple arrived."""
        channel = channel_from(source, self._channels, self.task)
        if channel.fence is not None or (self.mode in DEAF and not channel.queue):
            return []
        channel.count += 1
        if self.mode is Mode.RUNNING and channel.cut is None and not channel.queue:
            return [] if self._awaited and self._awaited.holds(item) else [Deliver(item)]
        channel.queue.append(item)
        return []

    def on_marker(self, source: int, marker: Marker) -> list[Instruction]:
        """A marker arrived."""
        channel = channel_from(source, self._channels, self.task)
        lost = self._miscount(source, channel, marker)
        if lost:
            return lost
        if marker.kind is Kind.PROBE:
            return self._on_probe(channel, marker)
        if marker.kind is Kind.CALL:
            channel.called = max(channel.called, marker.number)
            return self._check_heard()
        if channel.fence is not None or (self.mode in DEAF and not channel.queue and not self._brings_back(marker)):
            return []
        channel.queue.append(marker)
        if self.mode is Mode.AWAY and all(channel.queue for channel in self._channels.values()):
            self.mode = Mode.RUNNING
        return self._drain()

    def loaded(self, record: ControlRecord) -> list[Instruction]:
        """The state that Load asked for is in memory."""
        if self.mode is not Mode.RESTORING or self.record is None or record.epoch != self.record.epoch:
            return []
        self._loaded = True
        return self._check_ready()

    def arrived(self, epoch: int, groups: Iterable[int]) -> list[Instruction]:
        """The state of these groups, which HandOver told of, is in memory."""
        if self.mode is not Mode.RUNNING or epoch != self._handover or not self._awaited:
            return []
        out: list[Instruction] = [Deliver(item) for item in self._awaited.arrive(groups)]
        return out + self._check_handed_over() + self._drain()

    def sent(self, epoch: int) -> list[Instruction]:
        """The state of the groups that it lost, which HandOver told of, is where the new owners find it."""
        if self.mode is not Mode.RUNNING or epoch != self._handover or not self._unsent:
            return []
        self._unsent = False
        return self._check_handed_over()

    def on_timer(self) -> list[Instruction]:
        """Called a few times a second, if `timed`: probes until everybody runs, calls until who was absent is heard."""
        if not self.timed:
            return []
        if self.mode is Mode.RESTORING:
            return [self._unaligned(Kind.PROBE)]
        self._practice = max(0, self._practice - 1)
        return [self._unaligned(Kind.CALL)]

    # --- for the shell ---

    @property
    def timed(self) -> bool:
        """`on_timer` has something to say."""
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
    def buffered(self) -> int:
        """Items queued on all channels, and those that wait for their group."""
        return sum(len(channel.queue) for channel in self._channels.values()) + len(self._awaited)

    # --- rules ---

    def _run(self, record: ControlRecord, first: bool) -> list[Instruction]:
        if self.mode is Mode.AWAY and record.base == self._base:
            return self._check_heard()
        if self.mode is Mode.STARTING and self.task in record.restarts:
            return self._start_away(record)
        if self.mode is Mode.RUNNING and record.base == self._base:
            drop_stale(self._channels, record.epoch, self._handover)
            begun = self._begin_checkpoint(record) + self._copy_ahead(record) + self._begin_handover(record)
            return begun + self._drain() + self._check_heard()
        joined = self._base == record.base and (self.mode is not Mode.RESTORING or self._ready)
        if not joined:  # a handover needs every task, so one that begins finds none in its base
            if self.mode is not Mode.STARTING or record.base or not first or record.handover:
                return self._lost(f"task {self.task} did not take part in base {record.base}")
            self._use(record.tables)
        self._base = record.base
        self.mode = Mode.RUNNING
        drop_stale(self._channels, record.epoch, self._handover)
        resumed = [self._unaligned(Kind.PROBE), Resumed(record, self.tables, not joined)]
        resumed += self._begin_checkpoint(record)
        return resumed + self._copy_ahead(record) + self._begin_handover(record) + self._drain()

    def _use(self, tables: Mapping[str, Table]) -> None:
        self.tables, self._replicas = tables, frozenset().union(*tables.values())

    def _restore(self, record: ControlRecord) -> list[Instruction]:
        if self.mode is Mode.RESTORING and self._base == record.base:
            return []
        if self.mode is not Mode.STARTING and self.task in record.restarts:  # a process of before
            self.mode, self._base = Mode.REPLACED, -1
            return []
        keep = self.mode is Mode.PAUSED and self._state_cut == record.cut
        self._checkpoint = max(self._checkpoint, record.checkpoint)
        self.mode, self._base = Mode.RESTORING, record.base
        self._state_cut = -1
        self._loaded = self._ready = self._unsent = False
        self._use(record.tables)
        self._handover, self._ahead = record.handover, 0
        self._absent = frozenset()
        self._awaited.clear()
        for channel in self._channels.values():
            channel.raise_fence(record.base)
        return [self._unaligned(Kind.PROBE), Load(record, keep)]

    def _lost(self, reason: str) -> list[Instruction]:
        self.mode, self._base, self._reason = Mode.LOST, -1, reason
        self._awaited.clear()
        for channel in self._channels.values():
            channel.keep_what_follows(self._epoch)
        return [Recover(self._epoch, reason)]

    def _announce_pause(self, record: ControlRecord) -> list[Instruction]:
        marker = Marker(kind=Kind.PAUSE, number=record.epoch, body=record.to_json())
        return [*self._begin_checkpoint(record), Send(marker), *self._pause(record)]

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
        return [Send(marker), Export(record.checkpoint, record)]

    def _copy_ahead(self, record: ControlRecord) -> list[Instruction]:
        """Begin to copy what a coming handover will move, or give it up; not if that handover is on its way here."""
        if record.ahead == self._ahead or record.handover == self._ahead != 0:
            return []
        self._ahead = record.ahead
        if self.task not in movers(self.tables, record.coming):
            call = [self._unaligned(Kind.CALL)] if record.ahead else []  # wakes whom markers go through
            return [CopyAhead(0, {}, {}), *call]
        if not self._stateful:
            return [CopyAhead(record.ahead, {}, {})]
        old, new = self.tables[self._component], record.coming[self._component]
        return [CopyAhead(record.ahead, gained(old, new, self.task), gained(new, old, self.task))]

    def _begin_handover(self, record: ControlRecord) -> list[Instruction]:
        """A spout starts the handover that the record tells of; bolts wait for its marker."""
        return [] if self._channels or record.handover <= self._handover else self._route(record)

    def _route(self, record: ControlRecord) -> list[Instruction]:
        """From here on the tables of a handover are in force."""
        before = self.tables
        early = self._ahead > record.handover  # nobody waited for this task, and it copies for the next one already
        out = [] if early else self._copy_ahead(record)  # if that was for another one, it is given up
        self._use(record.tables)
        self._handover, self._witnesses, self._absent = record.handover, record.witnesses, frozenset(record.absent)
        self._ahead = self._ahead if early else 0
        drop_stale(self._channels, record.epoch, record.handover)
        for source in self._absent & self._channels.keys():
            self._channels[source].said = None  # its successor counts anew
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
            self._leave()
        return out

    def _leave(self) -> None:
        """From here on nobody waits for this task; its successor is what comes back, or itself if Storm lets it be."""
        self.mode, self._began_away = Mode.AWAY, False
        for channel in self._channels.values():
            channel.queue.clear()

    def _start_away(self, record: ControlRecord) -> list[Instruction]:
        """Storm has started this process where the task, which is absent, is wanted."""
        self.mode, self._base, self._began_away = Mode.AWAY, record.base, True
        self._use(record.tables)
        self._handover, self._absent, self._checkpoint = record.handover, frozenset(record.absent), record.checkpoint
        return [Resumed(record, self.tables, new=True), *self._check_heard()]

    def _brings_back(self, marker: Marker) -> bool:
        """The route marker after which this task takes part again."""
        if self.mode is not Mode.AWAY or marker.kind is not Kind.ROUTE or marker.number <= self._handover:
            return False
        return self.task not in ControlRecord.from_json(marker.body).absent

    @property
    def _calls(self) -> bool:
        """This process is to be heard: it works here, or is the one that comes back."""
        there = self.mode is Mode.RUNNING or (self.mode is Mode.AWAY and self._began_away)
        return there and self.record is not None and self.record.phase is Phase.RUN and bool(self.record.restarts)

    def _check_heard(self) -> list[Instruction]:
        """Every channel to and from absent tasks that ends here is up."""
        if not self._calls or self._heard == self._epoch:
            return []
        sources = self._channels if self.mode is Mode.AWAY else self._absent & self._channels.keys()
        if any(self._channels[source].called < self._epoch for source in sources):
            return []
        self._heard = self._epoch
        return [Ready(self._epoch)]

    def _check_handed_over(self) -> list[Instruction]:
        due = not (self._awaited or self._unsent) and (not self._witnesses or self.task in self._witnesses)
        return [HandedOver(self._handover, few=bool(self._witnesses))] if due else []

    def _on_probe(self, channel: Channel, marker: Marker) -> list[Instruction]:
        if marker.number <= channel.probed:
            return []
        channel.probed = marker.number
        if channel.fence is not None and marker.number >= channel.fence:
            channel.fence = None
            return self._check_ready()
        if marker.number > self._epoch:
            channel.queue.append(marker)  # what follows belongs to a base that this task has not heard of yet
        return []

    def _check_ready(self) -> list[Instruction]:
        fenced = any(channel.fence is not None for channel in self._channels.values())
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
                            break  # what follows belongs to a base whose record is still to come
                    elif not stale(item, self._epoch, self._handover):
                        channel.cut = item
                    channel.queue.popleft()
            cuts = {} if self._awaited else cuts_of(self._channels, self._absent, self._replicas)
            if not cuts:
                return out
            if drop_old_checkpoints(self._channels, cuts):
                continue
            if pause_waits(cuts):
                return out
            out += self._aligned(cuts)
        return out

    def _aligned(self, cuts: Mapping[int, Marker]) -> list[Instruction]:
        first = next(iter(cuts.values()))
        odd = {source: cut.identity for source, cut in cuts.items() if cut.identity != first.identity}
        if odd:
            return self._lost(f"channels of task {self.task} disagree: {first.identity} and {odd}")
        for source, channel in self._channels.items():
            if source in cuts or source in self._absent:
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
            return [forward, Export(first.number, record)]
        return [forward, *self._pause(record)]

    def _miscount(self, source: int, channel: Channel, marker: Marker) -> list[Instruction]:
        """Storm drops tuples on links that are down: a marker tells how many there should have been."""
        sent, came = channel.compare(marker)
        if sent == came or self.mode not in (Mode.RUNNING, Mode.PAUSED):
            return []
        return self._lost(
            f"task {source} sent {sent} tuples and pulses to task {self.task} before {marker.kind} {marker.number}, "
            f"{came} came"
        )

    def _unaligned(self, kind: Kind) -> Send:
        number = self._base if kind is Kind.PROBE else self._epoch
        return Send(Marker(kind=kind, number=number), self.tables)

    @property
    def _epoch(self) -> int:
        return -1 if self.record is None else self.record.epoch
