"""The words between the protocol of a task (`core/protocol.py`) and its shell (`leeward.runtime`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leeward.core.control import ControlRecord
from leeward.core.table import Table


class Kind(StrEnum):
    """Marker kinds; docs/protocol.md lists them with what they carry."""

    PULSE = "pulse"  #: the application's own punctuation; cuts the streams by the data's time
    CHECKPOINT = "checkpoint"  #: every task exports its part of a cut, and the stream goes on
    PAUSE = "pause"  #: every task exports its part of a cut, and stops
    PROBE = "probe"  #: not aligned: shows that the channel is up, and that what follows belongs to a base
    ROUTE = "route"  #: the sender routes by the tables of a handover from here on
    CALL = "call"  #: not aligned: shows that a channel from or to a task that returns is up; wakes upstream tasks


#: Kinds that a channel counts with its data tuples. A pulse shows what its senders' tables give it, so the loss of a
#: route marker must show at the pulse behind it. The loss of another kind delays work and makes no result wrong.
COUNTED = frozenset({Kind.PULSE, Kind.ROUTE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A control tuple in the data stream."""

    kind: Kind
    number: int  #: pulse number, cut or epoch, by kind
    sent: int | None = None  #: items before it on this channel that are counted (`COUNTED`); None: not known
    body: Any = None  #: pulse: data; pause, checkpoint, route: the control record

    @property
    def identity(self) -> tuple[Kind, int]:
        """Two markers with the same identity are the same cut on two channels."""
        return self.kind, self.number


class Mode(StrEnum):
    """States of a task; `core/protocol.py` has the table of transitions."""

    STARTING = "starting"  #: the process has not read a control record yet; it queues what arrives
    RUNNING = "running"  #: processes tuples
    PAUSED = "paused"  #: has exported a cut, and waits for the end of the restart
    RESTORING = "restoring"  #: loads the groups that it owns, and waits for the probe on each channel
    LOST = "lost"  #: state or tuples were lost: it has asked for a reset
    REPLACED = "replaced"  #: Storm is about to end this process: its successor restores
    AWAY = "away"  #: absent: owns nothing, and no task waits for it, until a route marker brings it back


class Fact(StrEnum):
    """Facts that may change a task's state."""

    RESTORE = "record RESTORE"  #: a base begins, and this task is part of it
    RESTORE_WITHOUT = "record RESTORE, absent"  #: a base begins, and this task is not part of it
    RUN = "record RUN"  #: tuples are processed; the record may ask for a checkpoint, a copy ahead or a handover
    RUN_WITHOUT = "record RUN, absent"  #: tuples are processed, and this task was left out
    PAUSE = "record PAUSE"  #: a restart begins: sources stop and send the pause marker
    MOVE = "record MOVE"  #: Storm places executors
    ALIGNED = "marker aligned"  #: a marker is in from every upstream task that takes part
    MISCOUNT = "tuples missing"  #: a marker's count differs from the number of tuples received
    RETURN = "route marker, back"  #: a route marker is in on every channel that names this task absent no more


#: States in which only what follows the probe of a coming base, or the marker that brings a task back, can matter.
IGNORES_DATA = (Mode.LOST, Mode.REPLACED, Mode.AWAY)


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
    tables: Mapping[str, Table] | None = None  #: that the sender's groupings route by from here on; None: as before


@dataclass(frozen=True, slots=True)
class BeforeCheckpoint:
    """Let the user's code flush: its output and its state at this point belong to this cut."""

    cut: int


@dataclass(frozen=True, slots=True)
class Export:
    """Write the state to the snapshot `cut` and report at its barrier."""

    cut: int
    record: ControlRecord  #: whose epoch fences the write; in PAUSE its tables show which groups stay on the node


@dataclass(frozen=True, slots=True)
class Load:
    """Own exactly the groups of the record's tables, with the state of its cut; then call `loaded`."""

    record: ControlRecord
    keep: bool  #: memory holds the state of that cut: groups that stay need not be read


@dataclass(frozen=True, slots=True)
class Ready:
    """Report at the ready barrier of this epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Recover:
    """State or tuples were lost: ask the coordinator for a reset."""

    epoch: int
    reason: str
    fresh: bool = False  #: this process has just started: only its predecessor's memory is missing


@dataclass(frozen=True, slots=True)
class Resumed:
    """The task processes tuples (again), under this record."""

    record: ControlRecord
    tables: Mapping[str, Table]  #: in force at this task; the record may name a handover still to come
    new: bool  #: a process that begins without state: nothing was loaded


@dataclass(frozen=True, slots=True)
class CopyAhead:
    """These groups will change hands: begin to send and receive them, and report at the barrier; 0: give it up."""

    number: int  #: epoch of the handover to come
    gained: Mapping[int, int]  #: group -> the task that sends it
    lost: Mapping[int, int]  #: group -> the task that is to have it


@dataclass(frozen=True, slots=True)
class HandOver:
    """Groups change hands here: send those that go, then call `sent`; receive those that come, calling `arrived`."""

    record: ControlRecord  #: of the handover
    gained: Mapping[int, int]  #: group -> the task that sends it
    lost: Mapping[int, int]  #: group -> the task that is to have it


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Report at the handover barrier of this epoch."""

    epoch: int
    few: bool = False  #: only a few tasks report, and the coordinator waits for them


Instruction = (
    Deliver
    | DeliverPulse
    | Send
    | BeforeCheckpoint
    | Export
    | Load
    | Ready
    | Recover
    | Resumed
    | CopyAhead
    | HandOver
    | HandedOver
)
