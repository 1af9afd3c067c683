"""The words between the coordinator's state machine (`core/migration`) and its shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from leeward.core.control import ControlRecord, Report
from leeward.core.journal import Journal
from leeward.core.plan import Placement, Plan, Slot
from leeward.core.table import Table


class State(StrEnum):
    """States of the coordinator, named after the awaited event."""

    OFF = "off"  #: journal and record are not read yet
    IDLE = "idle"  #: the time of the next checkpoint, or a plan
    CHECKPOINTING = "checkpointing"  #: every task's part of a cut, while the stream goes on
    COPYING = "copying"  #: donors' reports that the groups they will lose in a handover are nearly all copied
    HANDING = "handing"  #: witnesses' reports that they own by the new tables, while the stream goes on
    PREPARING = "preparing"  #: Storm to move absent tasks where they are wanted, and a call on every channel
    PAUSING = "pausing"  #: barrier 1: every task's part of the cut, then it is stopped
    MOVING = "moving"  #: Storm to have every executor where the plan wants it
    UNDOING = "undoing"  #: Storm to have every executor where it was
    SETTLING = "settling"  #: a process was lost: Storm to have every executor somewhere
    RESTORING = "restoring"  #: barrier 2: every task's state in, every channel probed
    HELD = "held"  #: no cut can be read: the topology stays stopped until one can, or until a person decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How the coordinator works, and how long it waits, in seconds."""

    pause_s: float = 20.0  #: barrier 1
    misfit_s: float = 5.0  #: before the plugin's "does not fit" is believed: it may be about the plan before
    move_s: float = 10.0  #: between two calls of rebalance
    move_tries: int = 5  #: calls of rebalance before the plan is given up
    settle_s: float = 60.0  #: for Storm to place the executors of a lost node
    restore_s: float = 60.0  #: barrier 2
    restore_tries: int = 3  #: of barrier 2 before an alert
    retry_s: float = 2.0  #: after Redis refused
    held_s: float = 30.0  #: between tries in HELD
    ahead_bytes: int = 4 * 1024  #: state that changes hands in a handover is copied ahead if it is more
    ahead_s: float = 600.0  #: for copying ahead: then the plan is given up
    handover_s: float = 60.0  #: for one step of a handover: then everything is restored, by that step's tables
    prepare_s: float = 60.0  #: for Storm to move warm tasks, and for their calls
    return_s: float = 10.0  #: for the calls of tasks that are back to be received on every channel
    #: Groups that one task gives or takes in one step of a handover. With half of all, what is done most (one replica
    #: becomes two, two become one) is one step and anything else a few: each costs about 0.1 s, even if little moves.
    step_groups: int = 64
    #: The same in bytes of state: while a part of a large state is copied less of it changes than of the whole.
    step_bytes: int = 64 * 1024 * 1024
    rest_s: float = 1.0  #: after a handover, until the next checkpoint: the stream should not feel both at once
    live: bool = True  #: a plan that moves no executor is carried out by handover, not by restart
    checkpoint_every_s: float = 15.0  #: from the end of one checkpoint to the next, at most
    checkpoint_least_s: float = 2.0  #: the same, at least; in between it is CHECKPOINT_SHARE that decides
    checkpoint_s: float = 10.0  #: for one checkpoint
    keep_cuts: int = 2  #: committed cuts that are kept
    restore_from_start: bool = False  #: with no readable cut: empty state, sources from the beginning; else HELD


# ---- events


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """A coordinator has taken over."""

    record: ControlRecord | None  #: None: this topology never had one
    journal: Journal | None
    initial: Mapping[str, Table]  #: tables of a topology that has no record yet
    first: Mapping[int, Slot] = field(default_factory=dict)  #: its slots, if Storm is to place it by a plan at once


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAccepted:
    """This plan is to be carried out."""

    plan: Plan
    request: str = ""  #: id of the request that asked for it; empty: the policy did


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Tasks wrote their reports at a barrier; those that were found together are one event."""

    barrier: str
    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The plugin published what Storm has now."""

    managed: bool  #: the placement of `epoch` fits and is in force
    epoch: int | None
    reason: str  #: if not managed: why
    slots: Mapping[int, Slot]  #: task -> slot; a missing task is not placed


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceFailed:
    """Nimbus refused or could not be reached, after the adapter's own tries."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceFailed:
    """Redis refused the fence of this epoch or could not be reached."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRequested:
    """A task found, in `epoch`, that state or tuples were lost."""

    epoch: int
    why: str
    task: int = -1  #: that found it; -1: not known
    fresh: bool = False  #: it is a process that has just started: nothing but its own memory is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The tasks whose beats have stood still for too long: all of them, whenever that changes."""

    tasks: frozenset[int]
    unheard: frozenset[int] = frozenset()  #: tasks that have not sent a beat yet: Storm is still starting them


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChosen:
    """A person has decided from where a topology that is HELD goes on."""

    cut: int  #: 0: empty state, sources from the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """`Machine.due` is over."""


Event = (
    Restarted
    | PlanAccepted
    | Reported
    | Assigned
    | RebalanceFailed
    | FenceFailed
    | RecoverRequested
    | Silent
    | CutChosen
    | DeadlinePassed
)


# ---- instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJournal:
    """Write the journal; a failure ends the coordinator."""

    journal: Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteControl:
    """Write the control record; a failure ends the coordinator."""

    record: ControlRecord
    told: bool = True  #: to every task; else to sources, from where markers carry it on
    journal: Journal | None = None  #: written with it, both or neither; None: it was written before
    barrier: str = ""  #: made with it, as tasks will reach it soon; empty: the first task to report makes it


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlacement:
    """Write the wanted placement, or take it away (None: Storm's default scheduler may place)."""

    placement: Placement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """Call Nimbus; a failure comes back as RebalanceFailed and drops the rest of the batch."""

    workers: int
    executors: Mapping[str, int]  #: component -> executors; as many as tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFence:
    """Raise the fence in Redis; a failure comes back as FenceFailed and drops the rest of the batch.

    Raised to the epoch in force it changes nothing, and shows whether Redis answers.
    """

    epoch: int
    base: int = 0  #: sinks of an older base are refused too


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchBarrier:
    """From now on post Reported for this barrier, also for reports that are there already."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCuts:
    """Delete snapshots and barriers that nothing can need any more; a failure is only logged."""

    below: int  #: cuts under this number
    epoch: int  #: ready barriers and recover flags under this epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Log it, and notify listeners."""

    action: str  #: fixed name
    fields: Mapping[str, object] = field(default_factory=dict)


Instruction = WriteJournal | WriteControl | WritePlacement | Rebalance | SetFence | WatchBarrier | DropCuts | Note
