"""Channels, and when the markers on them are aligned. Bookkeeping; the rules of a task are in `core/protocol.py`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.control import ControlRecord
from leeward.core.errors import ProtocolError
from leeward.core.instructions import COUNTED, Kind, Marker


@dataclass(slots=True)
class Channel:
    """The ordered sequence of tuples and markers from one upstream task."""

    #: items behind a cut, or that arrived while the task was not running
    queue: deque[Any] = field(default_factory=deque)
    cut: Marker | None = None  #: aligned marker that waits for the other channels
    fence: int | None = None  #: drop everything before the probe of this base
    probed: int = -1  #: newest base of which a probe was seen
    called: int = -1  #: newest epoch of which a call was received
    count: int = 0  #: data tuples that came and were not dropped
    dropped: int = 0  #: data tuples that came and were dropped
    since: int = 0  #: `count` at the last marker, less that one if it is counted
    #: the sender's count in the marker before; 0 before the first of all; None: not known until the next marker
    last_sent: int | None = 0

    def compare(self, marker: Marker, base: int) -> tuple[int, int]:
        """How many tuples the sender sent and how many came since the marker before, also if markers were lost between.

        Equal where the count of the marker before is not known, and at the probe of another base than the one in force
        here, as its sender may have been started anew.
        """
        came, self.since = self.count - self.since, self.count - int(marker.kind in COUNTED)
        before, self.last_sent = self.last_sent, marker.sent
        other_base = marker.kind is Kind.PROBE and marker.number != base
        if marker.sent is None or before is None or self.fence is not None or other_base:
            return came, came
        return marker.sent - before, came

    def raise_fence(self, base: int) -> None:
        """Forget what belongs to older bases; items behind the probe of this one stay."""
        self.cut = None
        if self.probed >= base:
            while self.queue:
                item = self.queue.popleft()
                if isinstance(item, Marker) and item.kind is Kind.PROBE and item.number >= base:
                    break
            self.fence = None
        else:
            self.queue.clear()
            self.fence = base

    def forget(self) -> None:
        """Nothing that was sent on it until now matters, nor how much it was."""
        self.queue.clear()
        self.cut = self.fence = self.last_sent = None
        self.since = self.count

    def keep_what_follows(self, epoch: int) -> None:
        """Only what is behind the probe of a base newer than this epoch can still matter."""
        self.cut = None
        while self.queue and not announces(self.queue[0], epoch):
            self.queue.popleft()


Channels = Mapping[int, Channel]


def channel_from(source: int, channels: Channels, task: int) -> Channel:
    """Of an upstream task; raises ProtocolError if it is none."""
    try:
        return channels[source]
    except KeyError:
        raise ProtocolError(
            f"task {task} got a tuple from task {source}, which is not upstream of it.",
            remedy=f"Upstream tasks are {list(channels)}; every input of a Leeward bolt must come from one.",
        ) from None


def announces(item: Any, epoch: int) -> bool:
    """The probe of a base that is still to come."""
    return isinstance(item, Marker) and item.kind is Kind.PROBE and item.number > epoch


def _complete(cuts: Mapping[int, Marker | None]) -> dict[int, Marker]:
    """All of them; none if one is missing."""
    found = {source: cut for source, cut in cuts.items() if cut is not None}
    return found if len(found) == len(cuts) else {}


def cuts_of(channels: Channels, absent: Collection[int], replicas: Collection[int]) -> dict[int, Marker]:
    """Upstream task -> the marker that its channel waits with, once all have one; none of absent tasks.

    Pulses come from replicas only, and route markers of warm tasks are not waited for: there is nothing to cut. Where
    the marker changes which tasks are absent, all send it, those that leave or return too; lost tasks cannot.
    """
    there = {source: channel.cut for source, channel in channels.items() if source not in absent}
    asked = {source: cut for source, cut in there.items() if source in replicas} or there
    of_replicas = _complete(asked)
    if any(cut.kind is Kind.PULSE for cut in of_replicas.values()):
        return of_replicas
    first = next(iter(of_replicas.values()), None)
    if first is not None and first.kind is Kind.ROUTE:
        record = ControlRecord.from_json(first.body)
        after = set(record.absent)
        if after == set(absent):
            return of_replicas
        there = {source: cut for source, cut in there.items() if source not in record.left_out}
        there |= {source: channels[source].cut for source in sorted((channels.keys() & set(absent)) - after)}
    return _complete(there)


def drop_old_checkpoints(channels: Channels, cuts: Mapping[int, Marker]) -> bool:
    """Where a newer checkpoint is in, an upstream task never began the older: it was given up."""
    numbers = {source: cut.number for source, cut in cuts.items() if cut.kind is Kind.CHECKPOINT}
    newest = max(numbers.values(), default=0)
    old = [source for source, number in numbers.items() if number < newest]
    for source in old:
        channels[source].cut = None
    return bool(old)


def stale(marker: Marker, epoch: int, handover: int) -> bool:
    """A pause of an older epoch, which was given up, or the route marker of a handover that was passed."""
    if marker.kind is Kind.ROUTE:
        return marker.number <= handover
    return marker.kind is Kind.PAUSE and marker.number < epoch


def drop_stale(channels: Channels, epoch: int, handover: int) -> None:
    """Channels that wait with a stale marker go on."""
    for channel in channels.values():
        if channel.cut is not None and stale(channel.cut, epoch, handover):
            channel.cut = None


def pause_waits(cuts: Mapping[int, Marker]) -> bool:
    """Some upstream tasks paused, others had already read of the abort: wait for the record."""
    identities = {cut.identity for cut in cuts.values()}
    return len(identities) > 1 and any(kind is Kind.PAUSE for kind, _ in identities)
