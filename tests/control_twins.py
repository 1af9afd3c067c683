"""In-memory tasks and plugin around `leeward.control.memory.World`: they behave as the protocol says, and may die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leeward.control.coordinator import Coordinator
from leeward.control.memory import (
    ListSink,
    ManualClock,
    MemoryBarriers,
    MemoryClusterStore,
    MemoryControlStore,
    MemoryNimbus,
    MemorySnapshots,
    World,
    snapshot_text,
)
from leeward.core.control import Phase, Report, ahead_barrier, cut_barrier, handover_barrier, ready_barrier
from leeward.core.errors import FencedError
from leeward.core.orders import Limits
from leeward.core.plan import Placement, Plan, Slot
from leeward.core.table import Table, even_table, givers

ID, NAME = "app-1-1", "app"
TASKS = {1: "source", 2: "work", 3: "work", 4: "work", 5: "sink"}
NODES = {"n1": (1, 2), "n2": (1, 2), "n3": (1, 2)}
FIRST = {"source": even_table([1]), "work": even_table([2]), "sink": even_table([5])}
SLOTS = {1: Slot("n1", 1), 2: Slot("n1", 1), 3: Slot("n2", 1), 4: Slot("n2", 1), 5: Slot("n3", 1)}


class Killed(Exception):
    """The coordinator's process ended here."""


@dataclass
class Cluster:
    """The plugin and Storm: nodes, where tasks are, and the cuts that tasks have written."""

    world: World = field(default_factory=World)
    nodes: dict[str, tuple[int, ...]] = field(default_factory=lambda: dict(NODES))
    slots: dict[int, Slot] = field(default_factory=lambda: dict(SLOTS))
    saved: dict[int, dict[int, dict[str, Table]]] = field(default_factory=dict)  #: cut -> task -> tables
    tasks: dict[int, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = {task: Task(cluster=self, id=task) for task in TASKS}
        self.schedule()

    def schedule(self, *_: object) -> None:
        """One pass of the plugin: place if the placement fits, else what lost its node goes anywhere."""
        wanted = self.world.placement
        reason = self._misfit(wanted)
        if wanted is not None and not reason:
            self.move(dict(wanted.slots))
        else:
            homes = [Slot(node, port) for node, ports in sorted(self.nodes.items()) for port in ports]
            self.move(
                {
                    task: slot if slot.node in self.nodes else homes[task % len(homes)]
                    for task, slot in self.slots.items()
                }
            )
        self.world.snapshot = snapshot_text(
            nodes=self.nodes, topology_id=ID, name=NAME, tasks=TASKS, slots=self.slots,
            managed=not reason, epoch=wanted.epoch if wanted else None, reason=reason,
        )  # fmt: skip
        self.world.changed()

    def _misfit(self, wanted: Placement | None) -> str:
        if wanted is None:
            return "no plan"
        for slot in wanted.slots.values():
            if slot.port not in self.nodes.get(slot.node, ()):
                return f"plan names unknown node '{slot.node}'"
        return ""

    def move(self, slots: dict[int, Slot]) -> None:
        """A worker whose tasks change starts anew, with all its tasks."""

        def workers(slots: dict[int, Slot]) -> dict[int, tuple[Slot, frozenset[int]]]:
            return {t: (s, frozenset(o for o in slots if slots[o] == s)) for t, s in slots.items()}

        before, after = workers(self.slots), workers(slots)
        self.slots = slots
        for task in sorted(slots):
            if before.get(task) != after[task]:
                self.tasks[task].die()


@dataclass
class Task:
    """One task's process; `act` is one look at the control record."""

    cluster: Cluster
    id: int
    mode: str = "starting"  #: starting, running, paused, restoring, lost, away
    base: int = -1
    first: bool = True  #: no process of this task has run before
    tables: dict[str, Table] = field(default_factory=dict)
    checkpoint: int = 0
    ahead: int = 0  #: handover that it copies ahead for
    handover: int = 0  #: newest one that it has passed
    owes: bool = False  #: its report of that
    awaited: bool = False  #: this process is the one that comes back where the task is absent
    heard: int = 0  #: newest epoch in which it has heard those who were absent
    awaits: set[int] = field(default_factory=set)  #: tasks whose groups it is to get, in that handover
    fail_next: str = ""  #: error of the next export
    deaths: int = 0

    def die(self) -> None:
        """The process ends and Storm starts another."""
        started = self.mode != "starting" or self.deaths
        self.first = self.first and not started
        self.mode, self.base, self.tables, self.handover = "starting", -1, {}, 0
        self.awaits, self.ahead, self.owes, self.awaited, self.heard = set(), 0, False, False, 0
        self.deaths += 1

    def act(self) -> None:
        record = self.cluster.world.record
        if record is None:
            if self.mode == "starting" and self.first:
                self.mode, self.base, self.tables, self.first = "running", 0, dict(FIRST), False
            return
        if record.phase is Phase.RESTORE:
            self._restore(record)
        elif record.phase is Phase.RUN:
            self._run(record)
        elif self.mode == "starting":
            self._lose(record, "started again outside RUN")
        elif self.mode == "lost":
            self._lose(record, "still lost")
        elif record.phase is Phase.PAUSE and self.mode == "running":
            self.mode = "paused"
            self._export(record.cut, record)

    def _run(self, record) -> None:
        if self.mode == "starting" and record.base == 0 and self.first and not record.handover:
            self.base, self.tables, self.checkpoint = 0, dict(record.tables), record.checkpoint
        elif self.mode == "starting" and self.id in record.restarts:
            self.mode, self.base, self.awaited = "away", record.base, True
            self.tables, self.handover, self.checkpoint = dict(record.tables), record.handover, record.checkpoint
        elif self.base != record.base:
            self._lose(record, "not of this base")
            return
        self.first = False
        if record.restarts and self.heard < record.epoch and (self.mode != "away" or self.awaited):
            self.heard = record.epoch
            self._report(ready_barrier(record.epoch), "")
        if self.mode != "away":
            self.mode = "running"
        if record.checkpoint > self.checkpoint:
            self._export(record.checkpoint, record)
        if record.ahead != self.ahead and "redis" not in self.cluster.world.refuse:
            self.ahead, error, self.fail_next = record.ahead, self.fail_next, ""
            if self.id in givers(record.tables, record.coming):
                self._report(ahead_barrier(self.ahead), error)
        if record.handover > self.handover:
            self._pass(record)
        if self.owes:
            self._hand_over()

    def _pass(self, record) -> None:
        """From the route marker on it owns by the new tables."""
        pairs = zip(self.tables[TASKS[self.id]], record.tables[TASKS[self.id]], strict=True)
        self.awaits = {old for old, new in pairs if new == self.id != old}
        if TASKS[self.id] == "sink":
            self.awaits |= {owner for table in self.tables.values() for owner in table} - {self.id}
        self.owes = not record.witnesses or self.id in record.witnesses
        self.tables, self.handover = record.tables, record.handover
        self.mode, self.awaited = "away" if self.id in record.absent else "running", False

    def _hand_over(self) -> None:
        """The report comes when all that gave up a group to this task have done so, and at a sink when all that worked
        have passed.
        """
        givers = [self.cluster.tasks[task] for task in self.awaits]
        given = all((giver.base, giver.handover) == (self.base, self.handover) for giver in givers)
        if given and "redis" not in self.cluster.world.refuse:
            self.owes = False
            self._report(handover_barrier(self.handover), "")

    def _restore(self, record) -> None:
        if self.base == record.base:
            return
        self.mode, self.base, self.checkpoint = "restoring", record.base, max(self.checkpoint, record.checkpoint)
        self.first = False
        error = ""
        if record.cut and self.cluster.saved.get(record.cut, {}).keys() != TASKS.keys():
            error = f"SnapshotError: cut {record.cut} is missing"
            self.base = -1
        self.tables, self.handover, self.awaits, self.owes = record.tables, record.handover, set(), False
        self._report(ready_barrier(record.epoch), error)

    def _export(self, cut: int, record) -> None:
        self.checkpoint = max(cut, self.checkpoint)
        world, error = self.cluster.world, self.fail_next
        self.fail_next = ""
        if "redis" in world.refuse:
            error = "ConnectionError: redis"
        elif world.fences.get(ID, 0) > record.epoch:
            error = f"{FencedError.__name__}: fenced"
        if not error:
            self.cluster.saved.setdefault(cut, {})[self.id] = dict(self.tables)
            world.cuts.setdefault(ID, set()).add(cut)
        self._report(cut_barrier(cut), error)

    def _report(self, barrier: str, error: str) -> None:
        report = Report(task=self.id, component=TASKS[self.id], error=error, bytes=10, keys=1, waited=0.3)
        self.cluster.world.barriers.setdefault(barrier, {})[self.id] = report
        self.cluster.world.changed()

    def _lose(self, record, why: str) -> None:
        self.mode, self.base = "lost", -1
        self.cluster.world.recoveries[record.epoch] = f"task {self.id}: {why}"
        self.cluster.world.changed()


def coordinator(
    cluster: Cluster,
    clock: ManualClock,
    sink: ListSink,
    *,
    fault: Callable[[str], None] | None = None,
    limits: Limits | None = None,
) -> Coordinator:
    """A coordinator on the twins; call `start`."""
    world = cluster.world
    return Coordinator(
        topology=NAME, topology_id=ID, tasks=TASKS, sinks=("sink",), initial=FIRST, control=MemoryControlStore(world),
        barriers=MemoryBarriers(world), cluster=MemoryClusterStore(world), snapshots=MemorySnapshots(world),
        nimbus=MemoryNimbus(world, place=cluster.schedule), clock=clock, sink=sink, limits=limits, fault=fault,
    )  # fmt: skip


def settle(cluster: Cluster, clock: ManualClock, coord: Coordinator, *, rounds: int = 200) -> None:
    """Everybody acts until the stream runs and nothing is in progress."""
    for _ in range(rounds):
        coord.work()
        cluster.schedule()
        for task in cluster.tasks.values():
            task.act()
        coord.work()
        coord.tidy()
        record = cluster.world.record
        if (
            coord.machine.state == "idle"
            and all(task.mode == "running" and task.base == record.base for task in cluster.tasks.values())
            and not coord.machine.journal.open
        ):
            return
        clock.time += 1.0
    tasks = {id: (task.mode, task.base, task.handover) for id, task in cluster.tasks.items()}
    raise AssertionError(f"not settled: {coord.machine.state} {coord.machine.story[-6:]} {tasks}")


def plan(work: list[int], **moves: Slot) -> Plan:
    """Tables with these replicas of `work`, and slots with the given moves (`t3=Slot(...)`)."""
    tables = {**FIRST, "work": even_table(work)}
    return Plan(tables=tables, placement={**SLOTS, **{int(k[1:]): v for k, v in moves.items()}}, reason="test")
