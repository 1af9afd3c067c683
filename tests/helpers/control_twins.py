"""A small topology of real tasks in memory for the coordinator's tests; a test says what happens, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from leeward.control.coordinator import Coordinator
from leeward.core.keys import GROUPS
from leeward.core.orders import Limits
from leeward.core.plan import Plan, Slot
from leeward.core.table import Table, even_table
from leeward.sim.application import Shape, a_key_in_each_group
from leeward.sim.memory import ListSink, ManualClock
from leeward.sim.process import Process
from leeward.sim.rig import Rig
from leeward.sim.storm import Worker
from leeward.sim.vault import Vault

ID, NAME = "app-1-1", "app"
TASKS = {1: "source", 2: "work", 3: "work", 4: "work", 5: "sink"}
NODES = {"n1": (1, 2), "n2": (1, 2), "n3": (1, 2)}
FIRST = {"source": even_table([1]), "work": even_table([2]), "sink": even_table([5])}
SLOTS = {1: Slot("n1", 1), 2: Slot("n1", 1), 3: Slot("n2", 1), 4: Slot("n2", 1), 5: Slot("n3", 1)}
SHAPE = Shape(
    tasks=TASKS,
    targets={"source": ("work",), "work": ("sink",), "sink": ()},
    keyed=frozenset({("source", "work"), ("work", "sink")}),
    kinds={"source": "source", "work": "stateful", "sink": "stateful"},
    single=("source", "sink"),
    pulses=False,
)
#: Numbers that the source emits: each key group of `work` gets two of them.
LIMIT = 2 * GROUPS
#: Of those, how many it emits each time that it acts.
AT_ONCE = 64


class Killed(Exception):
    """The coordinator's process ended here."""


KEYS = a_key_in_each_group("k")


class Ledger:
    """The user's code: `work` and `sink` keep each number under its key, one key for each key group."""

    def next_tuple(self, process: Process) -> bool:
        number = process.state.get("at", 0) + 1
        if number > LIMIT:
            return False
        process.state["at"] = number
        process.emit("work", number, self.key("work", number))
        return True

    def key(self, component: str, number: int) -> str:
        return KEYS[number % GROUPS]

    def process(self, process: Process, number: int) -> None:
        key = self.key(process.component_name, number)
        before = process.state.get(key, [])
        assert number not in before, f"task {process.task_id} counts {number} twice"
        process.state[key] = [*before, number]
        if process.component_name == "work":
            process.emit("sink", number, key)

    def durable(self, process: Process, state: dict | None) -> None:
        pass

    def check_cut(self, states: dict[str, list[dict[str, Any]]]) -> None:
        """Of the source exactly what it had sent by then is in `work` and in `sink`, once."""
        at = sum(part["at"] for part in states.get("source", []))
        for name in ("work", "sink"):
            numbers = sorted(n for part in states.get(name, []) for values in part.values() for n in values)
            assert numbers == list(range(1, at + 1)), f"{name} has {numbers}, the source was at {at}"


class FailingVault(Vault):
    """Cuts that some tasks cannot write: `failing` has the errors of a task's next exports."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.failing: dict[int, list[str]] = {}

    def export(self, *, task: int, **about: Any) -> None:
        if errors := self.failing.get(task):
            error = errors.pop()
            name, _, text = error.partition(": ")
            raise type(name, (Exception,), {})(text)
        super().export(task=task, **about)


class Task:
    """A task as a test sees it: its newest process."""

    def __init__(self, cluster: Cluster, task: int) -> None:
        self._cluster, self.id = cluster, task

    @property
    def process(self) -> Process:
        return self._cluster.processes[self.id][-1]

    @property
    def there(self) -> bool:
        """A process of it runs."""
        return self._cluster.receiver(self.id) is not None

    def act(self) -> None:
        """Do all that this task can do by itself, and take what there is for it."""
        if not self.there:
            return
        cluster, process = self._cluster, self.process
        process.looks = True
        cluster.exhaust(process)
        cluster.deliver_to(self.id)
        cluster.exhaust(process)
        if process.kind == "source":
            for _ in range(AT_ONCE):
                process.next_tuple()

    def die(self) -> None:
        """kill -9: all that was on its way to the process is lost. Its worker starts another one."""
        cluster, worker = self._cluster, self._worker
        cluster.storm.kill_process(self.process)
        cluster.network.clear(channel for channel in cluster.network.queues if channel[1] == self.id)
        cluster.storm.start_process(worker, self.id)

    def stop(self) -> None:
        """kill -STOP: it is silent."""
        self.process.stopped = True

    def go_on(self) -> None:
        """kill -CONT."""
        self.process.stopped = False

    @property
    def _worker(self) -> Worker:
        return next(worker for worker in self._cluster.storm.workers.values() if self.id in worker.tasks)

    @property
    def mode(self) -> str:
        return str(self.process.mode)

    @property
    def base(self) -> int:
        return self.process.protocol.base

    @property
    def handover(self) -> int:
        """Epoch of the newest one that it has passed."""
        return self.process.protocol.handover

    @property
    def tables(self) -> dict[str, Table]:
        """In force here."""
        return dict(self.process.protocol.tables)


class Cluster(Rig):
    """The topology, with every task placed and started. Supervisors act as soon as the plugin has placed."""

    topology, topology_id = NAME, ID

    def __init__(self) -> None:
        super().__init__(SHAPE, rng=random.Random(0), sink=ListSink(), limit=LIMIT)
        self.vault, self.application = FailingVault(self.world, ID), Ledger()
        self.place(NODES, SLOTS)
        self.tasks = {task: Task(self, task) for task in TASKS}
        self.unheard: set[int] = set()  #: tasks whose first beat is not there yet

    def beat(self) -> None:
        """Every process that runs leaves a beat."""
        beats = self.world.beats.setdefault(ID, {})
        beats.update(dict.fromkeys(TASKS.keys() - self.storm.silent() - self.unheard, str(self.clock.time)))

    @property
    def slots(self) -> dict[int, Slot]:
        """Where Storm has each task."""
        return dict(self.storm.slots)

    @property
    def written(self) -> dict[int, set[int]]:
        """Cut -> tasks that have written their part of it."""
        return {cut: {t for tasks in parts.values() for t in tasks} for cut, parts in self.vault.parts.items()}

    def schedule(self) -> None:
        """One pass of the plugin, and what supervisors do about it; new workers are connected at once."""
        self.storm.plugin_passes()
        self.supervise_all()
        self.supervise_all()  # where a worker was ended
        self.network.down.clear()

    def rebalanced(self, *_: object) -> None:
        """Nimbus does not answer before all that is done."""
        self.schedule()

    def lose_node(self, node: str) -> None:
        """It is off, and what was on it is gone."""
        self.storm.down.add(node)
        for slot in [slot for slot in self.storm.workers if slot.node == node]:
            self.storm.kill_worker(slot)
        self.vault.lost_swap |= {(node, cut) for cut in self.vault.parts}

    def all_act(self, *, but: tuple[int, ...] = ()) -> None:
        """Each task acts once, upstream tasks first."""
        for task in self.tasks.values():
            if task.id not in but:
                task.act()

    def fail(self, task: int, error: str, times: int = 1) -> None:
        """The next exports of the task fail so."""
        self.vault.failing[task] = [error] * times

    @property
    def runs_by_the_record(self) -> bool:
        """Every task runs, with the state of the base in force."""
        record = self.world.record
        tasks = self.tasks.values()
        return all(task.there and task.mode == "running" and task.base == record.base for task in tasks)


def coordinator(
    cluster: Cluster,
    clock: ManualClock,
    sink: ListSink,
    *,
    fault: Callable[[str], None] | None = None,
    limits: Limits | None = None,
) -> Coordinator:
    """A coordinator of that topology; call `start`."""
    cluster.clock, cluster.sink = clock, sink
    return cluster.new_coordinator(limits=limits, fault=fault)


def settle(cluster: Cluster, clock: ManualClock, coord: Coordinator, *, rounds: int = 200) -> None:
    """Everybody acts until the stream runs and nothing is in progress."""
    for _ in range(rounds):
        coord.silence(cluster.storm.silent())
        coord.work()
        cluster.schedule()
        cluster.all_act()
        coord.work()
        cluster.check_cuts()
        coord.tidy()
        cluster.vault.forget()
        if coord.machine.state == "idle" and cluster.runs_by_the_record and not coord.machine.journal.open:
            return
        clock.time += 1.0
    tasks = {id: (task.mode, task.base, task.handover) for id, task in cluster.tasks.items() if task.there}
    raise AssertionError(f"not settled: {coord.machine.state} {coord.machine.story[-6:]} {tasks}")


def plan(work: list[int], **moves: Slot) -> Plan:
    """Tables with these replicas of `work`, and slots with the given moves (`t3=Slot(...)`)."""
    tables = {**FIRST, "work": even_table(work)}
    return Plan(tables=tables, placement={**SLOTS, **{int(k[1:]): v for k, v in moves.items()}}, reason="test")


def killed_at(step: str, left: list[int]) -> Callable[[str], None]:
    """A fault that takes one from `left` each time that the coordinator takes this step, and kills it with the last."""

    def fault(name: str) -> None:
        if left and name == step:
            left.pop()
            if not left:
                raise Killed(name)

    return fault


def checkpointed(cluster, clock, coord):
    """One more cut is committed."""
    newest = max(cluster.world.record.committed, default=0)
    clock.time += coord.machine.limits.checkpoint_every_s
    settle(cluster, clock, coord)
    assert max(cluster.world.record.committed) > newest


def results(sink):
    """Kind and result of each reconfiguration that is over."""
    return [(end["kind"], end["result"].split(":")[0]) for end in sink.of("reconfiguration_ended")]


def carry_on(cluster, clock, coord, until, rounds=100):
    """Coordinator and tasks act until this is so; supervisors do not, and only the test says that a task is silent."""
    for _ in range(rounds):
        coord.work()
        cluster.check_cuts()
        coord.tidy()
        cluster.vault.forget()
        cluster.all_act()
        if until():
            return
        clock.time += 0.5
    raise AssertionError(coord.machine.story)
