"""The coordinator's knowledge, and helpers that its steps share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.core.control import ControlRecord, Report
from leeward.core.journal import Journal
from leeward.core.orders import (
    Assigned,
    DropCuts,
    Instruction,
    Limits,
    PlanAccepted,
    Rebalance,
    Reported,
    State,
    WatchBarrier,
)
from leeward.core.plan import Slot
from leeward.core.table import givers


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All that the coordinator knows. `step` gives the next one."""

    topology_id: str
    tasks: Mapping[int, str]  #: task -> component, all that take part in barriers
    sinks: frozenset[str] = frozenset()  #: components that no other reads from; empty: not known
    sources: frozenset[str] = frozenset()  #: components that only emit
    limits: Limits = field(default_factory=Limits)
    state: State = State.OFF
    record: ControlRecord = field(default_factory=ControlRecord)  #: as last written, or about to be
    journal: Journal = field(default_factory=Journal)
    due: float | None = None  #: when DeadlinePassed is to come
    barrier: str = ""  #: the one watched
    arrived: Mapping[int, Report] = field(default_factory=dict)  #: task -> its report at that barrier
    pending: PlanAccepted | None = None  #: waits for the end of a checkpoint
    tries: int = 0  #: of the present step
    call_from: float = 0.0  #: tasks that are back are called no earlier
    lost: bool = False  #: a process was lost while Storm placed: RESTORE needs an epoch of its own
    silent: frozenset[int] | None = None  #: tasks whose beats have stopped; None: not known yet
    unheard: frozenset[int] = frozenset()  #: tasks that have not sent a beat yet
    seen: Assigned | None = None  #: Storm's assignment, as last published
    known: Mapping[int, Slot] = field(default_factory=dict)  #: task -> slot where Storm had it last
    stale: Assigned | None = None  #: `seen` when the placement was written: it cannot be about that placement
    sizes: Mapping[str, int] = field(default_factory=dict)  #: component -> bytes of state in the newest cut
    story: tuple[str, ...] = ()  #: last transitions, oldest first

    @property
    def next_cut(self) -> int:
        """A number that no cut ever had."""
        return 1 + max(self.journal.last_cut, self.record.cut, self.record.checkpoint, *self.record.committed, 0)

    @property
    def next_epoch(self) -> int:
        """An epoch that neither record nor fence ever had."""
        return 1 + max(self.record.epoch, self.journal.epoch)

    @property
    def missing(self) -> list[int]:
        """Tasks that are not at the barrier: of those that give state ahead, of a handover's witnesses, or of all."""
        record = self.record
        expected = self.tasks.keys() - (set(record.left_out) - set(record.restarts))
        if self.state is State.COPYING:
            expected = givers(record.tables, record.coming)
        elif self.state is State.HANDING and record.witnesses:
            expected = set(record.witnesses)
        return sorted(expected - self.arrived.keys())

    @property
    def away(self) -> tuple[int, ...]:
        """Tasks that take no part, or whose process is not there, ascending: a plan may count on all the others."""
        silent = self.silent or ()  # it may not be known yet
        return tuple(sorted({*self.record.absent, *silent, *self.starting}))

    def named(self, tasks: Iterable[int]) -> str:
        """These tasks for people, each with its component."""
        return ", ".join(f"{task} ({self.tasks[task]})" for task in tasks)

    @property
    def starting(self) -> frozenset[int]:
        """Tasks that Storm has placed and that have not sent a beat yet. One without a slot has a reason of its own."""
        return self.unheard & self.slots.keys()

    @property
    def complete(self) -> bool:
        """Every reporter is at the barrier, none with an error."""
        return not self.missing and not any(r.error for r in self.arrived.values())

    @property
    def slots(self) -> Mapping[int, Slot]:
        """Task -> slot, as last published."""
        return self.seen.slots if self.seen else {}


def saw(m: Machine, event: Assigned) -> Machine:
    """Storm's assignment now. A task that it does not place for a moment is likely to stay where it was."""
    return replace(m, seen=event, known={**m.known, **event.slots})


Step = tuple[Machine, tuple[Instruction, ...]]
#: The event is of the type that stands beside the handler in `table.TRANSITIONS`.
Handler = Callable[[Machine, Any, float], Step]


def watch(m: Machine, state: State, barrier: str, due: float) -> Step:
    return replace(m, state=state, barrier=barrier, arrived={}, due=due), (WatchBarrier(name=barrier),)


def arrive(m: Machine, event: Reported) -> Machine:
    if event.barrier != m.barrier:
        return m
    return replace(m, arrived={**m.arrived, **{r.task: r for r in event.reports if r.task in m.tasks}})


def errors_of(m: Machine) -> str:
    return "; ".join(
        f"task {task} ({report.component}): {report.error}"
        for task, report in sorted(m.arrived.items())
        if report.error
    )


def missing_of(m: Machine) -> str:
    return ", ".join(f"{task} ({m.tasks[task]})" for task in m.missing) or "none"


def sizes_of(m: Machine) -> dict[str, int]:
    sizes = dict.fromkeys(m.tasks.values(), 0)
    for task, report in m.arrived.items():
        sizes[m.tasks[task]] += report.bytes
    return sizes


def with_cut(m: Machine, cut: int) -> tuple[int, ...]:
    return tuple(sorted({*m.record.committed, cut}))[-m.limits.keep_cuts :]


def drop_old(m: Machine) -> DropCuts:
    return DropCuts(below=min(m.record.committed, default=0), epoch=m.record.epoch)


def rebalance(m: Machine, slots: Mapping[int, Slot]) -> Rebalance:
    executors: dict[str, int] = {}
    for component in m.tasks.values():
        executors[component] = executors.get(component, 0) + 1
    return Rebalance(workers=len(set(slots.values())), executors=dict(sorted(executors.items())))


def is_placed(m: Machine) -> bool:
    """Storm has exactly the slots of the journal, by our placement of this epoch."""
    seen = m.seen
    return (
        seen is not None
        and seen.managed
        and seen.epoch == m.journal.placement_epoch
        and dict(seen.slots) == dict(m.journal.new_slots)
    )


def misfit(m: Machine) -> str:
    """Why the plugin does not follow the placement; empty if it does, or has not spoken since it was written."""
    if m.seen is None or m.seen is m.stale or m.seen.managed:
        return ""
    return m.seen.reason or "not managed"
