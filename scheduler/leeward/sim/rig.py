"""A simulated topology: Storm, network, stores and the real tasks, ready for a real coordinator.

Nothing happens by itself: a driver (a `Pair` by its seed, a test step by step) decides what comes next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from leeward.control.coordinator import Coordinator
from leeward.core.control import ControlRecord
from leeward.core.orders import Limits
from leeward.core.plan import Slot
from leeward.core.table import Table, even_table
from leeward.runtime.handover.pieces import PIECE_BYTES
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

    piece_bytes = PIECE_BYTES  #: size of the pieces of a handover
    practice = 0  #: calls that each task sends for practice

    def __init__(self, shape: Shape, *, rng: random.Random, sink: ListSink, limit: int) -> None:
        """`limit`: numbers that each source emits."""
        self.shape, self.rng, self.sink = shape, rng, sink
        self.world, self.clock, self.outside = World(), ManualClock(), Outside()
        self.vault = Vault(self.world, self.topology_id)
        self.network = Network(shape.tasks, shape.targets, shape.keyed)
        self.application: Any = Application(shape, self.outside, limit)
        self.processes: dict[int, list[Process]] = {task: [] for task in shape.tasks}  #: newest last
        self.joined: set[int] = set()  #: tasks of which a process has run
        self.mail: dict[tuple[int, int], list[bytes]] = {}  #: (epoch, receiver) -> pieces of a handover
        self.first_tables = self._first_tables()
        self.losses: list[str] = []  #: why tasks have asked for a reset
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

    def everything(self) -> list[Process]:
        """All processes that are there."""
        return [process for processes in self.processes.values() for process in processes]

    def receiver(self, task: int) -> Process | None:
        """The newest process of a task that runs."""
        for process in reversed(self.processes[task]):
            if process.runs:
                return process
        return None

    def on_the_way(self, piece: bytes) -> list[bytes]:
        """A piece of a handover, as its receiver gets it."""
        return [piece]

    def deliver_to(self, task: int) -> None:
        """Deliver all that there is for a task, if a process of it runs."""
        receiver = self.receiver(task)
        for channel in self.network.order:
            while receiver is not None and channel[1] == task and channel in self.network.busy:
                receiver.receive(channel[0], self.network.take(channel))

    def exhaust(self, process: Process) -> bool:
        """Let a process do all that it can do by itself; False if that was nothing."""
        done = False
        for _ in range(JOBS):
            busy = process.work() | process.carry()
            process.attend()
            if not (busy or (process.jobs and not process.hangs)):
                break
            done = True
        return done

    def supervise_all(self) -> bool:
        """Each supervisor acts on each of its slots; False if there was nothing to do."""
        busy = False
        for slot in sorted({*self.storm.workers, *self.storm.all_slots()}):
            busy = self.storm.supervise(slot) or busy
        return busy

    def check_cuts(self) -> None:
        """Every committed cut is a consistent snapshot."""
        for cut in self.world.record.committed if self.world.record else ():
            if cut not in self._checked:
                self._checked.add(cut)
                self.application.check_cut(self.vault.entries(cut))
