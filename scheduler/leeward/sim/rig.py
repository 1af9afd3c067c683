"""A simulated topology: Storm, network, stores and the real tasks, ready for a real coordinator.

Nothing happens by itself: a driver (a `Pair` by its seed, a test step by step) decides what comes next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from leeward.control.coordinator import Coordinator
from leeward.core.control import ControlRecord
from leeward.core.orders import Limits
from leeward.core.plan import Slot
from leeward.core.table import Table, even_table
from leeward.sim.application import Application, Outside, Shape
from leeward.sim.memory import (
    ListSink,
    ManualClock,
    MemoryBarriers,
    MemoryClusterStore,
    MemoryControlStore,
    MemoryNimbus,
    MemorySnapshots,
    World,
)
from leeward.sim.network import Network
from leeward.sim.process import Process
from leeward.sim.storm import Storm
from leeward.sim.vault import Vault

#: Jobs that a process does in a row, at most: a receiver that waits for pieces never runs out of them.
JOBS = 30


class Rig:
    """See the module. `place` builds Storm and starts all processes."""

    topology, topology_id = "sim", "sim-1-1"
    storm: Storm

    def __init__(self, shape: Shape, *, rng: random.Random, sink: ListSink, limit: int) -> None:
        """`limit`: numbers that each source emits."""
        self.shape, self.rng, self.sink = shape, rng, sink
        self.world, self.clock, self.outside = World(), ManualClock(), Outside()
        self.vault = Vault(self.world, self.topology_id)
        self.network = Network(shape.tasks, shape.targets, shape.keyed)
        self.application = Application(shape, self.outside, limit)
        self.processes: dict[int, list[Process]] = {task: [] for task in shape.tasks}  #: newest last
        self.joined: set[int] = set()  #: tasks of which a process has run
        self.mail: dict[tuple[int, int], list[bytes]] = {}  #: (epoch, receiver) -> pieces of a handover
        self.first_tables = self._first_tables()
        self._checked: set[int] = set()  # cuts

    def _first_tables(self) -> dict[str, Table]:
        members: dict[str, list[int]] = {}
        for task, name in sorted(self.shape.tasks.items()):
            members.setdefault(name, []).append(task)
        return {name: even_table(tasks[:1]) for name, tasks in members.items()}

    def place(self, nodes: Mapping[str, tuple[int, ...]], slots: Mapping[int, Slot]) -> None:
        """Start every worker, connect all of them, and let each task read the record: Storm begins only then."""
        self.storm = Storm(self, dict(nodes), dict(slots))
        self.storm.plugin_passes()
        for slot in self.storm.all_slots():
            self.storm.supervise(slot)
        self.network.down.clear()
        for processes in self.processes.values():
            processes[0].work()
            processes[0].work()
            processes[0].attend()

    def new_coordinator(self, *, limits: Limits | None, fault: Callable[[str], None] | None) -> Coordinator:
        """One more coordinator of this topology; it has not started."""
        world = self.world
        sinks = [name for name, targets in self.shape.targets.items() if not targets]
        return Coordinator(
            topology=self.topology, topology_id=self.topology_id, tasks=self.shape.tasks, sinks=sinks,
            sources=[name for name in self.first_tables if self.shape.kinds[name] == "source"],
            initial=self.first_tables, control=MemoryControlStore(world), barriers=MemoryBarriers(world),
            cluster=MemoryClusterStore(world), snapshots=MemorySnapshots(world),
            nimbus=MemoryNimbus(world, place=self.rebalanced), clock=self.clock, sink=self.sink,
            limits=limits, fault=fault,
        )  # fmt: skip

    def rebalanced(self, *_: object) -> None:
        """Nimbus was asked for a rebalance: the plugin places."""
        self.storm.plugin_passes()

    def record_for(self, process: Process) -> tuple[ControlRecord | None, bool]:
        """The record that a task reads, and whether there is no newer one."""
        return (self.world.record if process.task.hurries else self.world.told), True

    def runs(self, process: Process) -> bool:
        """The process is there, and neither it nor its worker is stopped."""
        return process.runs and not any(
            worker.stopped and process in worker.processes.values() for worker in self.storm.workers.values()
        )

    def deliver_from(self, channel: tuple[int, int]) -> bool:
        """Deliver the next item of a channel that has one; False if nobody would take it."""
        there = [process for process in self.processes[channel[1]] if self.runs(process)]
        if not there:
            return False
        there[-1].receive(channel[0], self.network.take(channel))
        return True

    def exhaust(self, process: Process) -> None:
        """Let a process do all that it can do by itself."""
        for _ in range(JOBS):
            busy = process.work() | process.carry()
            process.attend()
            if not (busy or process.jobs):
                break

    def supervise_all(self) -> None:
        """Each supervisor acts on each of its slots."""
        for slot in sorted({*self.storm.workers, *self.storm.all_slots()}):
            self.storm.supervise(slot)

    def check_cuts(self) -> None:
        """Every committed cut is a consistent snapshot."""
        for cut in self.world.record.committed if self.world.record else ():
            if cut not in self._checked:
                self._checked.add(cut)
                self.application.check_cut(self.vault.entries(cut))
