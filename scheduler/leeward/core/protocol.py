"""The part of the migration protocol that runs in each task: facts in, instructions out.

All protocol rules of a task live in this file. It knows channels, markers and control records; it does not know
Storm, Redis or ZooKeeper (`leeward.runtime` carries out its instructions) nor what the user's code does.

Words. A *channel* is the ordered sequence of tuples and markers from one upstream task. A marker *cuts* a channel;
it is *aligned* when it is in from every upstream task; from then on everything before it has been processed and
nothing after it has. A channel whose marker is in waits: what arrives on it is queued in order.

Markers (kind, number):
  pulse       n = pulse number; cuts the stream by the data's own time; work goes on
  checkpoint  n = cut; the task exports its state and goes on
  pause       n = epoch; the task exports its state and stops until the control record says RUN
  probe       n = epoch; not aligned: shows that the channel from this sender is up, and that all that follows on it
              belongs to that epoch. It carries the routing tables to the sender's groupings.
  route       n = epoch of a handover; it carries the new tables to the sender's groupings. The task hands over the
              groups that it loses and goes on; tuples of a group that it gains wait until the group is in

While a gained group is not in, an aligned marker counts as not complete and waits, with the channels behind it: every
cut has every group exactly once, and pulses show what they would have shown without the handover.

Modes: STARTING (no record yet) -> RUNNING <-> PAUSED -> RESTORING -> RUNNING; LOST (asked for a reset; waits);
REPLACED (Storm is about to restart this task's worker: its successor restores, this process only waits for its end).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.core.awaiting import Awaited, GroupOf
from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ProtocolError
from leeward.core.instructions import (
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
from leeward.core.table import Table, gained


@dataclass(slots=True)
class Channel:
    """What comes from one upstream task."""

    queue: deque = field(
        default_factory=deque
    )  #: items behind a cut, or that arrived while the task was not running
    cut: Marker | None = None  #: aligned marker that waits for the other channels
    fence: int | None = None  #: drop everything before the probe of this epoch
    probed: int = -1  #: newest epoch of which a probe was seen
    count: int = 0  #: data tuples since the last marker
    counted: bool = False  #: a marker has set the baseline of `count`


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
        self._component, self._stateful = component, group_of is not None
        self._awaited = Awaited(group_of or (lambda _: None))
        self._handover = 0  # epoch of the newest handover that was passed
        self._ahead = 0  # handover whose groups are copied ahead
        self._unsent = False  # groups that it lost are still on their way out
        self._channels = {source: Channel() for source in sorted(upstream)}
        self._checkpoint = 0  # newest cut exported or begun
        self._base = -1  # epoch in which the state in memory was established; -1: none
        self._state_cut = -1  # cut whose state is in memory since this task paused; -1: it has moved on
        self._loaded = False
        self._ready = False
        self._reason = ""  # why this task is LOST

    # --- facts ---

    def on_record(self, record: ControlRecord, *, first: bool = False) -> list[Instruction]:
        """The control record as just read. `first`: no process of this task has run before in base 0."""
        known = self.record
        if known is not None and (record.epoch, _order(record.phase)) < (known.epoch, _order(known.phase)):
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
        channel = self._channel(source)
        if channel.fence is not None or (self.mode in _DEAF and not channel.queue):
            return []
        channel.count += 1
        if self.mode is Mode.RUNNING and channel.cut is None and not channel.queue:
            return [] if self._awaited and self._awaited.holds(item) else [Deliver(item)]
        channel.queue.append(item)
        return []

    def on_marker(self, source: int, marker: Marker) -> list[Instruction]:
        """A marker arrived."""
        channel = self._channel(source)
        lost = self._miscount(source, channel, marker)
        if lost:
            return lost
        if marker.kind is Kind.PROBE:
            return self._on_probe(channel, marker)
        if channel.fence is not None or (self.mode in _DEAF and not channel.queue):
            return []
        channel.queue.append(marker)
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
        """Called a few times a second while restoring: probes go out until everybody runs."""
        if self.mode is Mode.RESTORING and self.record is not None:
            return [self._probe()]
        return []

    # --- for the shell ---

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
        if self.mode is Mode.RUNNING and record.base == self._base:
            self._drop_pauses(record.epoch)
            begun = self._begin_checkpoint(record) + self._copy_ahead(record) + self._begin_handover(record)
            return begun + self._drain()
        joined = self._base == record.base and (self.mode is not Mode.RESTORING or self._ready)
        if not joined:  # a handover needs every task, so one that begins finds none in its base
            if self.mode is not Mode.STARTING or record.base or not first or record.handover:
                return self._lost(f"task {self.task} did not take part in base {record.base}")
            self.tables = record.tables
        self._base = record.base
        self.mode = Mode.RUNNING
        self._drop_pauses(record.epoch)
        resumed = [self._probe(), Resumed(record, self.tables), *self._begin_checkpoint(record)]
        return resumed + self._copy_ahead(record) + self._begin_handover(record) + self._drain()

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
        self.tables, self._handover, self._ahead = record.tables, record.handover, 0
        self._awaited.clear()
        for channel in self._channels.values():
            self._fence(channel, record.epoch)
        return [self._probe(), Load(record, keep)]

    def _lost(self, reason: str) -> list[Instruction]:
        self.mode, self._base, self._reason = Mode.LOST, -1, reason
        self._awaited.clear()
        for (
            channel
        ) in self._channels.values():  # only what follows the probe of a coming epoch can still matter
            channel.cut = None
            while channel.queue and not _announces(channel.queue[0], self._epoch):
                channel.queue.popleft()
        return [Recover(self._epoch, reason)]

    def _announce_pause(self, record: ControlRecord) -> list[Instruction]:
        out = self._begin_checkpoint(record)
        out.append(Send(Marker(kind=Kind.PAUSE, number=record.epoch, body=record.to_json())))
        return out + self._pause(record)

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
        if not record.ahead or not self._stateful:
            return [CopyAhead(record.ahead, {}, {})]
        old, new = self.tables[self._component], record.coming[self._component]
        return [CopyAhead(record.ahead, gained(old, new, self.task), gained(new, old, self.task))]

    def _begin_handover(self, record: ControlRecord) -> list[Instruction]:
        """A spout starts the handover that the record tells of; bolts wait for its marker."""
        if self._channels or record.handover <= self._handover:
            return []
        return self._route(record)

    def _route(self, record: ControlRecord) -> list[Instruction]:
        """From here on the tables of a handover are in force."""
        before, self.tables, self._handover = self.tables, record.tables, record.handover
        self._ahead = 0
        marker = Marker(kind=Kind.ROUTE, number=record.handover, body=record.to_json())
        out: list[Instruction] = [Send(marker, self.tables)]
        if self._stateful:
            old, new = before[self._component], self.tables[self._component]
            comes, goes = gained(old, new, self.task), gained(new, old, self.task)
            self._awaited.expect(comes)
            self._unsent = bool(goes)
            if comes or goes:
                out.append(HandOver(record, comes, goes))
        return out + self._check_handed_over()

    def _check_handed_over(self) -> list[Instruction]:
        return [] if self._awaited or self._unsent else [HandedOver(self._handover)]

    def _on_probe(self, channel: Channel, marker: Marker) -> list[Instruction]:
        if marker.number <= channel.probed:
            return []
        channel.probed = marker.number
        if channel.fence is not None and marker.number >= channel.fence:
            channel.fence = None
            return self._check_ready()
        if marker.number > self._epoch:
            channel.queue.append(
                marker
            )  # what follows belongs to an epoch that this task has not heard of yet
        return []

    def _fence(self, channel: Channel, epoch: int) -> None:
        """Forget what belongs to older epochs; what came behind the probe of this epoch stays."""
        channel.cut = None
        if channel.probed >= epoch:
            while channel.queue:
                item = channel.queue.popleft()
                if isinstance(item, Marker) and item.kind is Kind.PROBE and item.number >= epoch:
                    break
            channel.fence = None
        else:
            channel.queue.clear()
            channel.fence = epoch

    def _check_ready(self) -> list[Instruction]:
        if self.mode is not Mode.RESTORING or self._ready or not self._loaded:
            return []
        if any(channel.fence is not None for channel in self._channels.values()):
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
                        if _announces(item, self._epoch):
                            break  # what follows belongs to an epoch whose record is still to come
                    elif not (item.kind is Kind.PAUSE and item.number < self._epoch):
                        channel.cut = item
                    channel.queue.popleft()
            if self._awaited or not self._channels or any(c.cut is None for c in self._channels.values()):
                return out
            if self._drop_checkpoints():
                continue
            if self._pause_waits():
                return out
            out += self._aligned()
        return out

    def _drop_checkpoints(self) -> bool:
        """Where a newer checkpoint is in, an upstream task never began the older: it was given up."""
        cuts = [channel for channel in self._channels.values() if channel.cut.kind is Kind.CHECKPOINT]
        newest = max((channel.cut.number for channel in cuts), default=0)
        old = [channel for channel in cuts if channel.cut.number < newest]
        for channel in old:
            channel.cut = None
        return bool(old)

    def _pause_waits(self) -> bool:
        """Some upstream tasks paused and others went on, as they knew that it was given up: the record will tell."""
        identities = {channel.cut.identity for channel in self._channels.values()}
        return len(identities) > 1 and any(kind is Kind.PAUSE for kind, _ in identities)

    def _aligned(self) -> list[Instruction]:
        cuts = {source: channel.cut for source, channel in self._channels.items()}
        first = next(iter(cuts.values()))
        odd = {source: cut.identity for source, cut in cuts.items() if cut.identity != first.identity}
        if odd:
            return self._lost(f"channels of task {self.task} disagree: {first.identity} and {odd}")
        for channel in self._channels.values():
            channel.cut = None
        if first.kind is Kind.PULSE:
            return [DeliverPulse(first.number, tuple(cut.body for cut in cuts.values()))]
        record = ControlRecord.from_json(first.body)
        if self.record is None or (record.epoch, _order(record.phase)) > (
            self.record.epoch,
            _order(self.record.phase),
        ):
            self.record = record
        if first.kind is Kind.ROUTE:
            return self._route(record) if record.handover > self._handover else []  # else of an older epoch
        forward = Send(replace(first, sent=None))
        if first.kind is Kind.CHECKPOINT:
            self._checkpoint = first.number
            return [forward, Export(first.number, record)]
        return [forward, *self._pause(record)]

    def _drop_pauses(self, epoch: int) -> None:
        for channel in self._channels.values():
            if channel.cut is not None and channel.cut.kind is Kind.PAUSE and channel.cut.number < epoch:
                channel.cut = None

    def _miscount(self, source: int, channel: Channel, marker: Marker) -> list[Instruction]:
        """Storm drops tuples on links that are down: a marker tells how many there should have been."""
        came, channel.count = channel.count, 0
        baseline, channel.counted = channel.counted, True
        if marker.sent is None or not baseline or channel.fence is not None or marker.kind is Kind.PROBE:
            return []
        if marker.sent == came or self.mode not in (Mode.RUNNING, Mode.PAUSED):
            return []
        return self._lost(
            f"task {source} sent {marker.sent} tuples to task {self.task} before {marker.kind} "
            f"{marker.number}, {came} came"
        )

    def _probe(self) -> Send:
        return Send(Marker(kind=Kind.PROBE, number=self._epoch), self.tables)

    @property
    def _epoch(self) -> int:
        return -1 if self.record is None else self.record.epoch

    def _channel(self, source: int) -> Channel:
        try:
            return self._channels[source]
        except KeyError:
            raise ProtocolError(
                f"task {self.task} got a tuple from task {source}, which is not upstream of it.",
                remedy=f"Upstream tasks are {list(self._channels)}; every input of a Leeward bolt must come from one.",
            ) from None


def _announces(item: Any, epoch: int) -> bool:
    """The probe of an epoch that is still to come."""
    return isinstance(item, Marker) and item.kind is Kind.PROBE and item.number > epoch


#: Modes in which only what follows the probe of a coming epoch can matter.
_DEAF = (Mode.LOST, Mode.REPLACED)

_ORDER = {phase: rank for rank, phase in enumerate((Phase.PAUSE, Phase.MOVE, Phase.RESTORE, Phase.RUN))}


def _order(phase: Phase) -> int:
    """Phases in the order in which they follow each other within one epoch."""
    return _ORDER[phase]
