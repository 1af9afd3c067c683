"""Storm in the simulator: slots, worker processes, what the plugin places, and what supervisors do about it in time.

Between two steps of a supervisor the old worker of a task and its new one may both be there, as on a real cluster: an
old process goes on with what it knows (a *zombie*) until its supervisor ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from leeward.core.plan import Placement, Slot
from leeward.sim.memory import snapshot_text
from leeward.sim.network import Outbox
from leeward.sim.parts import ARig
from leeward.sim.process import Process


@dataclass(slots=True)
class Worker:
    """A worker process and its tasks' Python processes."""

    slot: Slot
    tasks: frozenset[int]
    outboxes: dict[int, Outbox]
    processes: dict[int, Process]
    stopped: bool = False


@dataclass(slots=True)
class Storm:
    """Nodes, the assignment, and the workers that are there."""

    pair: ARig
    nodes: dict[str, tuple[int, ...]]
    slots: dict[int, Slot]  #: the assignment
    workers: dict[Slot, Worker] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)  #: nodes that are off
    frozen: set[str] = field(default_factory=set)  #: nodes whose supervisor does nothing
    refuses: bool = False  #: the plugin finds that no placement fits
    _published: tuple[object, ...] = ()  # inputs of the snapshot

    def plugin_passes(self, *_: object) -> None:
        """Place if the placement fits; tasks of nodes that are off go anywhere else."""
        wanted = self.pair.world.placement
        reason = self._misfit(wanted)
        if wanted is not None and not reason:
            self.slots = dict(wanted.slots)
        elif any(slot.node in self.down for slot in self.slots.values()):
            used = {slot for slot in self.slots.values() if slot.node not in self.down}
            free = [slot for slot in self.all_slots() if slot not in used] or self.all_slots()
            self.slots = {
                task: slot if slot.node not in self.down else free[task % len(free)]
                for task, slot in self.slots.items()
            }
        seen = (self.slots, set(self.down), reason, wanted.epoch if wanted else None)
        if seen == self._published:
            return
        self._published = seen
        self.pair.world.snapshot = snapshot_text(
            nodes={node: ports for node, ports in self.nodes.items() if node not in self.down},
            topology_id=self.pair.topology_id, name=self.pair.topology, tasks=self.pair.shape.tasks, slots=self.slots,
            managed=not reason, epoch=wanted.epoch if wanted else None, reason=reason,
        )  # fmt: skip
        self.pair.world.changed()

    def all_slots(self) -> list[Slot]:
        """Of nodes that are on."""
        return [
            Slot(node, port) for node, ports in sorted(self.nodes.items()) if node not in self.down for port in ports
        ]

    def _misfit(self, wanted: Placement | None) -> str:
        if wanted is None:
            return "no plan"
        if self.refuses:
            return "the simulator refuses it"
        gone = {slot.node for slot in wanted.slots.values()} - (self.nodes.keys() - self.down)
        return f"plan names unknown node '{min(gone)}'" if gone else ""

    def supervise(self, slot: Slot) -> bool:
        """One step of the supervisor for a slot: end a worker whose tasks changed, or start the one that is wanted."""
        if slot.node in self.frozen:
            return False
        wanted = frozenset(task for task, place in self.slots.items() if place == slot)
        there = self.workers.get(slot)
        if there is not None and (there.tasks != wanted or slot.node in self.down):
            self.kill_worker(slot)
            return True
        if there is None and wanted and slot.node not in self.down:
            self._start(slot, wanted)
            return True
        if there is not None and not there.stopped:
            for task, process in there.processes.items():
                if not process.alive:  # a Python process that died: the worker starts it anew
                    self.start_process(there, task)
                    return True
        return False

    def _start(self, slot: Slot, tasks: frozenset[int]) -> None:
        names = self.pair.shape.tasks
        outboxes = {task: Outbox(task, names[task]) for task in sorted(tasks)}
        worker = self.workers[slot] = Worker(slot, tasks, outboxes, {})
        network = self.pair.network
        for task in sorted(tasks):
            ends = [channel for channel in network.queues if task in channel]
            network.down |= {channel for channel in ends if channel[0] not in tasks or channel[1] not in tasks}
            network.clear(channel for channel in ends if channel[1] == task)
            self.start_process(worker, task)

    def start_process(self, worker: Worker, task: int) -> None:
        """Start the Python process of a task."""
        process = Process(self.pair, task, worker)
        worker.processes[task] = process
        self.pair.processes[task].append(process)

    def kill_process(self, process: Process) -> None:
        """kill -9: items in its pipe are lost, items behind the pipe are not."""
        process.alive = False
        self._forget(process)
        rng, network = self.pair.rng, self.pair.network
        for channel, queue in network.queues.items():
            if channel[1] == process.task_id and queue:
                network.drop(channel, 0, rng.randint(0, len(queue)))

    def kill_worker(self, slot: Slot) -> None:
        """All its processes end, and what it had not sent yet is lost."""
        worker = self.workers.pop(slot)
        rng, network = self.pair.rng, self.pair.network
        for task, process in worker.processes.items():
            process.alive = False
            self._forget(process)
            if self.pair.processes[task]:
                continue  # its successor is there already
            network.clear(channel for channel in network.queues if channel[1] == task)
            for channel, queue in network.queues.items():
                if channel[0] == task and queue:
                    network.drop(channel, rng.randint(0, len(queue)), len(queue))

    def _forget(self, process: Process) -> None:
        there = self.pair.processes[process.task_id]
        if process in there:
            there.remove(process)

    def silent(self) -> frozenset[int]:
        """Tasks without a process that leaves beats: none is there, or it or its worker is stopped."""
        speak = {
            task
            for worker in self.workers.values()
            if not worker.stopped
            for task, process in worker.processes.items()
            if process.runs
        }
        return frozenset(self.pair.shape.tasks.keys() - speak)
