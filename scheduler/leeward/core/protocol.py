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

Modes: STARTING (no record yet) -> RUNNING <-> PAUSED -> RESTORING -> RUNNING; LOST (asked for a reset; waits);
REPLACED (Storm is about to restart this task's worker: its successor restores, this process only waits for its end).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ProtocolError


class Kind(StrEnum):
    """Marker kinds, see the module's docstring."""

    PULSE = "pulse"
    CHECKPOINT = "checkpoint"
    PAUSE = "pause"
    PROBE = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A control tuple in the data stream."""

    kind: Kind
    number: int  #: pulse number, cut or epoch, by kind
    sent: int | None = None  #: data tuples on this channel since its previous marker; None: not counted
    body: Any = None  #: pulse: data; pause: the control record; checkpoint: epoch

    @property
    def identity(self) -> tuple[Kind, int]:
        """Two markers with the same identity are the same cut on two channels."""
        return self.kind, self.number


class Mode(StrEnum):
    """What the task is doing, see the module's docstring."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    RESTORING = "restoring"
    LOST = "lost"
    REPLACED = "replaced"


# --- instructions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deliver:
    """Process this tuple."""

    item: Any


@dataclass(frozen=True, slots=True)
class DeliverPulse:
    """Call the pulse handler, then forward the pulse downstream."""

    number: int
    bodies: tuple[Any, ...]  #: one for each upstream task, by task id


@dataclass(frozen=True, slots=True)
class Send:
    """Send this marker to every downstream task."""

    marker: Marker


@dataclass(frozen=True, slots=True)
class Export:
    """Write the state to the snapshot `cut` and report at its barrier."""

    cut: int
    record: ControlRecord  #: whose epoch fences the write; in PAUSE its tables tell what stays on the node


@dataclass(frozen=True, slots=True)
class Load:
    """Own exactly the groups of the record's tables, with the state of its cut; then call `loaded`."""

    record: ControlRecord
    keep: bool  #: what is in memory is the state of that cut: groups that stay need not be read


@dataclass(frozen=True, slots=True)
class Ready:
    """Report at the ready barrier of this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Recover:
    """State or tuples were lost: ask the coordinator for a reset."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The task processes tuples (again), under this record."""

    record: ControlRecord


Instruction = Deliver | DeliverPulse | Send | Export | Load | Ready | Recover | Resumed


@dataclass(slots=True)
class _Channel:
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

    def __init__(self, task: int, upstream: Iterable[int]) -> None:
        self.task = task
        self.mode = Mode.STARTING
        self.record: ControlRecord | None = None
        self._channels = {source: _Channel() for source in sorted(upstream)}
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

    def on_tuple(self, source: int, item: Any) -> list[Instruction]:
        """A data tuple arrived."""
        channel = self._channel(source)
        if channel.fence is not None or (self.mode in _DEAF and not channel.queue):
            return []
        channel.count += 1
        if self.mode is Mode.RUNNING and channel.cut is None and not channel.queue:
            return [Deliver(item)]
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

    def on_timer(self) -> list[Instruction]:
        """Called a few times a second while restoring: probes go out until everybody runs."""
        if self.mode is Mode.RESTORING and self.record is not None:
            return [self._probe()]
        return []

    # --- for the shell ---

    @property
    def open(self) -> bool:
        """A spout may emit, a bolt's user code may run."""
        return self.mode is Mode.RUNNING

    @property
    def buffered(self) -> int:
        """Items queued on all channels."""
        return sum(len(channel.queue) for channel in self._channels.values())

    # --- rules ---

    def _run(self, record: ControlRecord, first: bool) -> list[Instruction]:
        if self.mode is Mode.RUNNING and record.base == self._base:
            self._drop_pauses(record.epoch)
            return self._begin_checkpoint(record) + self._drain()
        joined = self._base == record.base and (self.mode is not Mode.RESTORING or self._ready)
        if not joined and not (self.mode is Mode.STARTING and record.base == 0 and first):
            return self._lost(f"task {self.task} did not take part in base {record.base}")
        self._base = record.base
        self._checkpoint = max(self._checkpoint, record.checkpoint)
        self.mode = Mode.RUNNING
        self._drop_pauses(record.epoch)
        return [self._probe(), Resumed(record), *self._drain()]

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
        self._loaded = self._ready = False
        for channel in self._channels.values():
            self._fence(channel, record.epoch)
        return [self._probe(), Load(record, keep)]

    def _lost(self, reason: str) -> list[Instruction]:
        self.mode, self._base, self._reason = Mode.LOST, -1, reason
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

    def _on_probe(self, channel: _Channel, marker: Marker) -> list[Instruction]:
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

    def _fence(self, channel: _Channel, epoch: int) -> None:
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
                        out.append(Deliver(item))
                    elif item.kind is Kind.PROBE:
                        if _announces(item, self._epoch):
                            break  # what follows belongs to an epoch whose record is still to come
                    elif not (item.kind is Kind.PAUSE and item.number < self._epoch):
                        channel.cut = item
                    channel.queue.popleft()
            if not self._channels or any(channel.cut is None for channel in self._channels.values()):
                return out
            out += self._aligned()
        return out

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
        forward = Send(replace(first, sent=None))
        if first.kind is Kind.CHECKPOINT:
            self._checkpoint = first.number
            return [forward, Export(first.number, record)]
        return [forward, *self._pause(record)]

    def _drop_pauses(self, epoch: int) -> None:
        for channel in self._channels.values():
            if channel.cut is not None and channel.cut.kind is Kind.PAUSE and channel.cut.number < epoch:
                channel.cut = None

    def _miscount(self, source: int, channel: _Channel, marker: Marker) -> list[Instruction]:
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
        return Send(Marker(kind=Kind.PROBE, number=self._epoch))

    @property
    def _epoch(self) -> int:
        return -1 if self.record is None else self.record.epoch

    def _channel(self, source: int) -> _Channel:
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
