"""The topology's real tasks and the coordinator's barriers in virtual time.

Tasks run the real protocol (`sim.rig`) on channels that carry markers only: no tuple, and no state, so what state
weighs, and what a step takes, is added where the coordinator reads the barrier. One thing is a stand-in: the reports of
a checkpoint while the stream runs, of which a week has some hundred thousand, are written here, as no task would have
anything to save. The cut of a restart is the tasks' own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from leeward.control.ports import Wake
from leeward.core.control import ControlRecord, Phase, Report
from leeward.core.keys import GROUPS
from leeward.core.plan import Slot
from leeward.core.table import Table
from leeward.sim.application import Shape
from leeward.sim.memory import ListSink, ManualClock, MemoryBarriers, MemoryControlStore
from leeward.sim.rig import Rig
from leeward.sim.world.description import WorldFile
from leeward.sim.world.flows import shares

#: Rounds in which all tasks do what they can, at most: tasks that wait to be heard call without an end.
ROUNDS = 12
#: The first port of a node.
FIRST_PORT = 6700


class Silent:
    """The user's code of every component: there are no tuples."""

    def next_tuple(self, process: object) -> bool:
        """Nothing to emit."""
        return False

    def key(self, component: str, item: object) -> None:
        """No key."""

    def durable(self, process: object, state: object) -> None:
        """Nothing to forget."""


class SilentTasks(Rig):
    """Every task of a world's topology, placed as Storm would deal them out, and connected."""

    restless = False  #: the record has changed since they acted

    def __init__(self, world: WorldFile, clock: ManualClock) -> None:
        self.topology, self.topology_id = world.name, f"{world.name}-1-1"
        super().__init__(_shape(world), rng=random.Random(0), sink=ListSink(), limit=0)
        self.application: Any = Silent()
        self.clock = clock
        nodes = {node.id: tuple(range(FIRST_PORT, FIRST_PORT + node.slots)) for node in world.nodes}
        slots = [Slot(id, FIRST_PORT + at) for at in range(max(map(len, nodes.values()))) for id in nodes]
        slots = [slot for slot in slots if slot.port in nodes[slot.node]]
        slots = slots[: world.workers or len(slots)]
        self.place(nodes, {task: slots[at % len(slots)] for at, task in enumerate(self.shape.tasks)})
        self.act()

    def rebalanced(self, *_: object) -> None:
        """Nimbus does not answer before Storm has placed."""
        self._schedule()

    def tell(self) -> None:
        """The record has changed: every task looks when it gets to it."""
        self.restless = True
        for process in self.everything():
            process.looks = True

    def act(self, awaited: str = "", missing: Collection[int] = ()) -> None:
        """Everybody does all that can be done now, until those `missing` at the barrier `awaited` are there."""
        self.restless = False
        for _ in range(ROUNDS):
            wanted = self.world.placement
            if wanted is not None and dict(wanted.slots) != dict(self.storm.slots):
                self._schedule()
            busy = False
            for task in self.shape.tasks:
                process = self.receiver(task)
                if process is not None:
                    busy = self.exhaust(process) or busy
                    self.deliver_to(task)
                    busy = self.exhaust(process) or busy
            if awaited and self.world.barriers.get(awaited, {}).keys() >= set(missing):
                return
            if not busy and not self.network.busy:
                return

    def _schedule(self) -> None:
        """One pass of the plugin, and of the supervisors; new workers are connected at once."""
        self.storm.plugin_passes()
        self.supervise_all()
        self.supervise_all()  # where a worker was ended
        self.network.down.clear()


def _shape(world: WorldFile) -> Shape:
    tasks: dict[int, str] = {}
    for component in world.components:
        for _ in range(component.tasks):
            tasks[len(tasks) + 1] = component.id
    return Shape(
        tasks=tasks,
        targets={c.id: tuple(sorted(s.target for s in world.streams if s.source == c.id)) for c in world.components},
        keyed=frozenset((s.source, s.target) for s in world.streams if s.keyed),
        kinds={c.id: c.kind for c in world.components},
        single=(), pulses=False,
    )  # fmt: skip


class WatchedControl(MemoryControlStore):
    """ControlStore that tells of each record."""

    def __init__(self, rig: SilentTasks, told: Callable[[ControlRecord], None]) -> None:
        super().__init__(rig.world)
        self._told = told

    def write_record(self, record: ControlRecord, **about: object) -> None:
        """As MemoryControlStore's."""
        super().write_record(record, **about)  # type: ignore[arg-type]
        self._told(record)


class TimedBarriers(MemoryBarriers):
    """BarrierStore at which reports are seen when what they report would have taken its time."""

    def __init__(self, world: WorldFile, rig: SilentTasks) -> None:
        super().__init__(rig.world)
        self._costs, self._rig = world.costs, rig
        self._state = {component.id: component.state_bytes for component in world.components}
        self._due: dict[str, float] = {}  # barrier -> when its reports are seen
        self._paused_at: float | None = None
        self._record = ControlRecord(tables=rig.first_tables)
        self._before: Mapping[str, Table] = rig.first_tables  # tables before the newest handover
        self.tables: Mapping[str, Table] = rig.first_tables  #: by which tuples go, or went before the pause
        self._owned: dict[int, int] = {}  # task -> bytes that it owns by those tables
        self._owned_by: object = None  # the tables that it was made of

    def recorded(self, record: ControlRecord) -> None:
        """The coordinator wrote this."""
        now = self._rig.clock.now()
        if record.phase is Phase.PAUSE:
            self._paused_at = now
        if record.phase is Phase.RUN:
            self._paused_at = None
            if record.handover != self._record.handover:
                self._before = self.tables
            self.tables = record.tables
        asks_only = record.phase is Phase.RUN and replace(self._record, checkpoint=record.checkpoint) == record
        commits = replace(self._record, committed=record.committed) == record
        self._record = record
        if not asks_only and not commits:
            self._rig.tell()

    @property
    def runs(self) -> bool:
        """Tuples flow."""
        return self._record.phase is Phase.RUN

    def due(self, barrier: str) -> float | None:
        """When the reports of a barrier that was asked about are seen, s; None if they are, or nobody asked."""
        due = self._due.get(barrier)
        return due if due is not None and due > self._rig.clock.now() else None

    def drop(self, *, below: int, epoch: int) -> None:
        """As MemoryBarriers'."""
        super().drop(below=below, epoch=epoch)
        self._due = {name: due for name, due in self._due.items() if name in self._rig.world.barriers}

    def reports(
        self, barrier: str, known: Iterable[int], wake: Wake, *, likely: Iterable[int] = ()
    ) -> Mapping[int, Report]:
        """As MemoryBarriers', of those that are due."""
        there = super().reports(barrier, known, wake, likely=likely)
        kind = barrier.partition("-")[0]
        if kind == "cut" and self.runs:
            return self._checkpoint(set(known))
        now = self._rig.clock.now()
        if now < self._due.setdefault(barrier, now + self._takes_s(kind, now)):
            return {}
        return {task: self._weighed(kind, report) for task, report in there.items()}

    def _checkpoint(self, known: set[int]) -> dict[int, Report]:
        away = known.union(self._record.absent)
        return {
            task: Report(task=task, component=name, bytes=self._owned_bytes(task))
            for task, name in self._rig.shape.tasks.items()
            if task not in away
        }

    def _takes_s(self, kind: str, now: float) -> float:
        """From the moment in which the coordinator begins to wait."""
        costs = self._costs
        match kind:
            case "ready" if self.runs:
                return costs.worker_start_s
            case "ready":
                whole = costs.restart_s if self._record.restarts else costs.pause_s
                return max(0.0, whole - (now - self._paused_at if self._paused_at is not None else 0.0))
            case "handover":
                return self._waited_s()
            case "ahead":
                return sum(self._state.values()) * costs.per_byte_s
        return 0.0

    def _waited_s(self) -> float:
        moved = sum(self._lost_bytes(task, name) for task, name in self._rig.shape.tasks.items())
        return self._costs.handover_s + moved * self._costs.per_byte_s

    def _weighed(self, kind: str, report: Report) -> Report:
        """With the state that is not really there."""
        if kind == "cut":
            return replace(report, bytes=self._owned_bytes(report.task))
        if kind == "handover" and self._before != self.tables:
            lost = self._lost_bytes(report.task, report.component)
            return replace(report, bytes=lost, waited=round(self._waited_s(), 6))
        return report

    def _owned_bytes(self, task: int) -> int:
        if self._owned_by is not self.tables:
            self._owned_by = self.tables
            self._owned = {
                owner: round(share * self._state[name])
                for name, table in self.tables.items()
                for owner, share in shares(table).items()
            }
        return self._owned.get(task, 0)

    def _lost_bytes(self, task: int, component: str) -> int:
        pairs = zip(self._before[component], self.tables[component], strict=True)
        return round(sum(old == task != new for old, new in pairs) / GROUPS * self._state[component])
