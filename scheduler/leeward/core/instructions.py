"""The words between the protocol of a task (`core/protocol.py`) and its shell (`leeward.runtime`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leeward.core.control import ControlRecord
from leeward.core.table import Table


class Kind(StrEnum):
    """Marker kinds, see `core/protocol.py`."""

    PULSE = "pulse"
    CHECKPOINT = "checkpoint"
    PAUSE = "pause"
    PROBE = "probe"
    ROUTE = "route"
    CALL = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A control tuple in the data stream."""

    kind: Kind
    number: int  #: pulse number, cut or epoch, by kind
    sent: int | None = None  #: data tuples and pulses that went before it on this channel; None: not counted
    body: Any = None  #: pulse: data; pause, checkpoint, route: the control record

    @property
    def identity(self) -> tuple[Kind, int]:
        """Two markers with the same identity are the same cut on two channels."""
        return self.kind, self.number


class Mode(StrEnum):
    """What the task is doing, see `core/protocol.py`."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    RESTORING = "restoring"
    LOST = "lost"
    REPLACED = "replaced"
    AWAY = "away"


#: Modes in which only what follows the probe of a coming base, or the marker that brings a task back, can matter.
DEAF = (Mode.LOST, Mode.REPLACED, Mode.AWAY)


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
    tables: Mapping[str, Table]  #: in force at this task; the record may tell of a handover still to come
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
    few: bool = False  #: only a few tasks do, and somebody waits for them


Instruction = (
    Deliver | DeliverPulse | Send | Export | Load | Ready | Recover | Resumed | CopyAhead | HandOver | HandedOver
)
