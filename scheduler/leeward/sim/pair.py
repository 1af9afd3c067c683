"""Both ends of the protocol in memory: the real coordinator and real tasks, under faults, by one seed.

`Pair(seed).run()` builds a small topology on a simulated Storm, takes some hundred steps in an order that the seed
decides (a tuple is delivered, a task reads the record, the coordinator works, a process dies ...), then lets faults
stop and everything come to rest. After each step it checks what must always hold: at most one process owns a key
group, nothing is counted twice, every committed cut is a consistent snapshot, every result is right. At the end
nothing may be missing. A failure raises `Broken`, which tells the seed, the last steps, and how to replay them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping

from leeward.control.coordinator import Coordinator
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ClusterRefusedError
from leeward.core.instructions import Marker, Mode
from leeward.core.orders import Limits, State
from leeward.core.plan import Plan, Slot
from leeward.core.table import Table, even_table
from leeward.sim.application import ONE, TWO
from leeward.sim.memory import ListSink
from leeward.sim.process import Process
from leeward.sim.rig import Rig
from leeward.sim.rules import Rules

NODES = {"n1": (1, 2), "n2": (1, 2), "n3": (1, 2)}
#: Numbers that each source emits.
LIMIT = 36
#: Steps with faults, and rounds after them until all must be at rest.
STEPS, ROUNDS = 260, 400
#: Lines of the story that a failure tells.
STORY = 60


class Broken(AssertionError):
    """Something that must hold does not; the text has seed, story and how to replay it."""


class Killed(Exception):
    """The coordinator's process ended here."""


class Tale(ListSink):
    """EventSink that tells the story as well."""

    def __init__(self, story: deque[str]) -> None:
        super().__init__()
        self._story = story

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        super().emit(action, fields)
        if action not in ("phase", "checkpoint_committed"):
            about = " ".join(f"{name}={fields[name]}" for name in ("why", "result", "tasks", "kind") if name in fields)
            self._story.append(f"event: {action} {about}")


class Pair(Rig):
    """See the module."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        rng = random.Random(seed)
        self.seed, self.steps = seed, steps
        self.story: deque[str] = deque(maxlen=STORY)
        super().__init__(rng.choice((TWO, TWO, ONE)), rng=rng, sink=Tale(self.story), limit=LIMIT)
        self.rules = Rules(self.first_tables)
        self.history: list[ControlRecord | None] = [None]
        self.told: list[ControlRecord | None] = [None]
        self.coordinator: Coordinator | None = None
        self.zombies: list[Coordinator] = []
        self.fuse: int | None = None
        self.limits = Limits(
            live=self.rng.random() < 0.8, ahead_bytes=self.rng.choice((-1, 8, 10**9)),
            step_groups=self.rng.choice((20, 64, 128)), checkpoint_every_s=5.0, settle_s=5.0, restore_s=20.0,
            held_s=5.0,
        )  # fmt: skip
        self.place(NODES, self._first_slots())
        self._lead()

    # --- the topology

    def _first_slots(self) -> dict[int, Slot]:
        slots = [Slot(node, port) for node, ports in NODES.items() for port in ports]
        self.rng.shuffle(slots)
        return {task: slots[place % 5] for place, task in enumerate(sorted(self.shape.tasks))}

    def record_for(self, process: Process) -> tuple[ControlRecord | None, bool]:
        """The record that a task reads: the newest, or one a little older; whether it is the newest."""
        versions = self.history if process.task.hurries else self.told
        lag = self.rng.choice((0, 0, 0, 1, 2))
        version = max(len(versions) - 1 - lag, 0)
        return versions[version], version == len(versions) - 1

    # --- the coordinator

    def _fault(self, step: str) -> None:
        self._versions()
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                self.story.append(f"the coordinator is killed after {step}")
                raise Killed

    def _lead(self) -> None:
        self.coordinator = self.new_coordinator(limits=self.limits, fault=self._fault)
        self._guarded(self.coordinator.start)

    def _guarded(self, deed: object, *arguments: object) -> None:
        coordinator = self.coordinator
        assert coordinator is not None
        try:
            deed(*arguments)  # type: ignore[operator]
        except Killed:
            self.zombies.append(coordinator)
            self.coordinator = None
        except (LostLeadershipError, ClusterRefusedError) as error:
            self.story.append(f"the coordinator ends: {error}")
            self.coordinator = None
        self._versions()

    def _versions(self) -> None:
        """Keep every version of the record, and let all processes know that there is another."""
        if self.world.record is not self.history[-1]:
            self.history.append(self.world.record)
            record = self.world.record
            if record is not None:
                self.story.append(
                    f"record: {record.phase} epoch {record.epoch} base {record.base} cut {record.cut} checkpoint "
                    f"{record.checkpoint} handover {record.handover} absent {record.absent} restarts {record.restarts}"
                )
                self.rules.record(record, self.world.told, self.network.queues)
            if self.world.told is not self.told[-1]:
                self.told.append(self.world.told)
            for processes in self.processes.values():
                for process in processes:
                    process.looks = True
            self.outside.base = max(self.outside.base, self.world.bases.get(self.topology_id, 0))

    # --- steps

    def run(self) -> Pair:
        """All of it. Raises Broken."""
        try:
            for _ in range(self.steps):
                self._step()
            self._rest()
        except Broken:
            raise
        except Exception as error:
            lines = "\n  ".join(self.story)
            raise Broken(
                f"seed {self.seed}: {type(error).__name__}: {error}\n  {lines}\n"
                f"Replay it: python -m leeward.sim.torture --replay {self.seed}"
            ) from error
        return self

    def _step(self) -> None:
        number = self.rng.random()
        for share, deed in _DEEDS:
            if number < share:
                getattr(self, deed.__name__)()  # a test's pair may have its own
                break
            number -= share
        self._check()

    def _some_process(self) -> Process | None:
        running = [process for processes in self.processes.values() for process in processes if self.runs(process)]
        return self.rng.choice(running) if running else None

    def _deliver(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            if not self.network.busy:
                return
            self.deliver_from(self.rng.choice(sorted(self.network.busy)))

    def _emit(self) -> None:
        sources = [p for task, name in self.shape.tasks.items() if self.shape.kinds[name] == "source"
                   for p in self.processes[task] if self.runs(p)]  # fmt: skip
        if sources:
            source = self.rng.choice(sources)
            for _ in range(self.rng.randint(1, 3)):
                source.next_tuple()

    def _work(self) -> None:
        process = self._some_process()
        if process is not None:
            for _ in range(self.rng.randint(1, 3)):
                if not process.work():
                    break
            process.attend()

    def _carry(self) -> None:
        process = self._some_process()
        if process is not None:
            process.carry()
            process.attend()

    def _coordinate(self) -> None:
        if self.coordinator is None:
            if self.rng.random() < 0.3:
                self.fuse = None
                self.story.append("another coordinator takes over")
                self._lead()
            return
        self._guarded(self.coordinator.work)
        if self.coordinator is not None and self.rng.random() < 0.2:
            self._guarded(self.coordinator.tidy)
            self.vault.forget()

    def _tell_silence(self) -> None:
        if self.coordinator is not None and self.world.record is not None:
            silent = self.storm.silent()
            if silent != self.coordinator.machine.silent:
                self.story.append(f"silent: {sorted(silent)}")
            self._guarded(self.coordinator.silence, silent)

    def _time(self) -> None:
        self.clock.time += self.rng.choice((0.3, 0.3, 1.0, 3.0, 11.0))

    def _supervise(self) -> None:
        slots = sorted({*self.storm.workers, *self.storm.all_slots()})
        slot = self.rng.choice(slots)
        if self.storm.supervise(slot):
            self.story.append(f"the supervisor acts on {slot.node}:{slot.port}")

    def _connect(self) -> None:
        if self.network.down:
            self.network.down.discard(self.rng.choice(sorted(self.network.down)))

    def _plan(self) -> None:
        coordinator = self.coordinator
        if coordinator is None or not coordinator.idle or not coordinator.machine.whole:
            return
        rng, record, slots = self.rng, coordinator.machine.record, coordinator.machine.slots
        if not self.shape.tasks.keys() <= slots.keys():
            return
        tables: dict[str, Table] = dict(record.tables)
        for name in rng.sample(sorted(tables), rng.randint(1, 2)):
            members = [task for task, other in self.shape.tasks.items() if other == name]
            if name in self.shape.single:
                tables[name] = even_table([rng.choice(members)])
            else:
                tables[name] = tuple(rng.choice(members) for _ in range(4)) * 32
        placement = dict(slots)
        if rng.random() < 0.3:
            placement[rng.choice(sorted(placement))] = rng.choice(self.storm.all_slots())
        self.story.append("a plan")
        self._guarded(coordinator.submit, Plan(tables=tables, placement=placement, reason="sim"))

    # --- faults

    def _disturb(self) -> None:
        fault = self.rng.choice(_FAULTS)
        self.story.append(fault.__name__.strip("_").replace("_", " "))
        fault(self)

    def _kill_process(self) -> None:
        process = self._some_process()
        if process is not None:
            self.story.append(f"  task {process.task_id}")
            self.storm.kill_process(process)

    def _kill_worker(self) -> None:
        if self.storm.workers:
            slot = self.rng.choice(sorted(self.storm.workers))
            self.story.append(f"  tasks {sorted(self.storm.workers[slot].tasks)}")
            self.storm.kill_worker(slot)

    def _stop_or_continue_process(self) -> None:
        everything = [process for processes in self.processes.values() for process in processes]
        if everything:
            process = self.rng.choice(everything)
            process.stopped = not process.stopped
            self.story.append(f"  task {process.task_id} {'stopped' if process.stopped else 'goes on'}")

    def _stop_or_continue_worker(self) -> None:
        if self.storm.workers:
            worker = self.storm.workers[self.rng.choice(sorted(self.storm.workers))]
            worker.stopped = not worker.stopped
            self.story.append(f"  tasks {sorted(worker.tasks)} {'stopped' if worker.stopped else 'go on'}")

    def _kill_coordinator(self) -> None:
        self.fuse = self.rng.randint(0, 8)

    def _usurp(self) -> None:
        if self.coordinator is not None:
            self.zombies.append(self.coordinator)
            self.fuse = None
            self._lead()

    def _zombie_coordinator_works(self) -> None:
        if self.zombies and self.coordinator is not None:
            before = self.world.record, self.world.journal, self.world.placement
            self.fuse = None
            try:
                self.zombies[-1].work()
            except (LostLeadershipError, ClusterRefusedError):
                self.zombies.pop()
            assert (self.world.record, self.world.journal, self.world.placement) == before, "a zombie has written"

    def _redis_refuses_or_is_back(self) -> None:
        self.world.refuse ^= {"redis"}

    def _redis_is_full_or_not(self) -> None:
        self.vault.full = not self.vault.full

    def _nimbus_refuses_or_is_back(self) -> None:
        self.world.refuse ^= {"nimbus"}

    def _storm_drops_a_batch(self) -> None:
        if self.network.busy:
            channel = self.rng.choice(sorted(self.network.busy))
            size = len(self.network.queues[channel])
            first = self.rng.randint(0, size - 1)
            self.network.drop(channel, first, min(size, first + self.rng.randint(1, 4)))

    def _a_channel_is_cut(self) -> None:
        self.network.down.add(self.rng.choice(sorted(self.network.queues)))

    def _a_node_goes_or_comes_back(self) -> None:
        node = self.rng.choice(sorted(NODES))
        if node in self.storm.down:
            self.storm.down.discard(node)
        elif len(self.storm.down) < 1:
            self.storm.down.add(node)
            for slot in [slot for slot in self.storm.workers if slot.node == node]:
                self.storm.kill_worker(slot)
            self.vault.lost_swap |= {(node, cut) for cut in self.vault.parts}
        self.storm.plugin_passes()

    # --- what must hold

    def _check(self) -> None:
        record = self.world.record
        if record is None:
            return
        self.check_cuts()
        self.rules.processes(process for there in self.processes.values() for process in there)
        owned: dict[str, set[int]] = {}
        for processes in self.processes.values():
            for process in processes:
                if process.mode is Mode.RUNNING and process.protocol.base == record.base and process.kind == "stateful":
                    mine = set(process.state.groups)
                    other = owned.setdefault(process.component_name, set())
                    assert not mine & other, f"{process.component_name}: groups {mine & other} have two owners"
                    other |= mine

    # --- rest

    def _rest(self) -> None:
        """Faults stop. Everything must come to rest, in bounded steps, with all results there."""
        self.story.append("faults stop")
        self.fuse, self.vault.full = None, False
        self.world.refuse.clear()
        self.storm.down.clear()
        for worker in self.storm.workers.values():
            worker.stopped = False
        for processes in self.processes.values():
            for process in processes:
                process.stopped = False
        for turn in range(ROUNDS):
            if self._round(turn):
                self._check()
                results = [str(fields["result"]) for fields in self.sink.of("reconfiguration_ended")]
                self.rules.end(self.world.record, self.world.journal, results)
                return
            self._check()
        raise AssertionError(f"it does not come to rest: {self._state()}")

    def _round(self, turn: int) -> bool:
        if self.coordinator is None:
            self._lead()
        coordinator = self.coordinator
        if coordinator is not None and coordinator.machine.state is State.HELD:
            cuts = coordinator.machine.record.committed
            self._guarded(coordinator.choose, self.rng.choice(cuts))
        self._tell_silence()
        if self.coordinator is not None:
            self._guarded(self.coordinator.work)
        if self.coordinator is not None:
            self._guarded(self.coordinator.tidy)
            self.vault.forget()
        self.storm.plugin_passes()
        self.supervise_all()
        self.network.down = {channel for channel in sorted(self.network.down) if self.rng.random() < 0.5}
        for task in self.processes:
            for process in list(self.processes[task]):
                self._exhaust(process)
        for channel in sorted(self.network.queues):
            while self.network.queues[channel] and self.deliver_from(channel):
                pass
        self.clock.time += 0.5
        return self._at_rest()

    def _exhaust(self, process: Process) -> None:
        self.exhaust(process)
        if process.kind == "source":
            for _ in range(4):
                process.next_tuple()

    def _at_rest(self) -> bool:
        coordinator, record = self.coordinator, self.world.record
        if coordinator is None or record is None or record.phase is not Phase.RUN or record.absent:
            return False
        if coordinator.machine.state is not State.IDLE or coordinator.machine.journal.open:
            return False
        newest = [processes[-1] for processes in self.processes.values() if processes]
        running = len(newest) == len(self.processes) and all(
            process.mode is Mode.RUNNING and process.protocol.base == record.base for process in newest
        )
        still = not any(process.protocol.buffered for process in newest) and self.application.finished()
        return running and still and all(p.protocol.tables == record.tables for p in newest)

    def _state(self) -> str:
        modes = {
            task: [(str(p.mode), p.protocol.base, p.protocol.handover, p.protocol.buffered) for p in processes]
            for task, processes in self.processes.items()
        }
        machine = self.coordinator.machine if self.coordinator else None
        about = (machine.state, machine.story[-4:], machine.missing, machine.silent) if machine else None
        data = {c: [i for i in q if not isinstance(i, Marker)] for c, q in self.network.queues.items() if q}
        return f"{about} {modes} channels {data} written {len(self.outside.written)}"


_DEEDS = (
    (0.40, Pair._deliver),
    (0.10, Pair._emit),
    (0.22, Pair._work),
    (0.08, Pair._carry),
    (0.07, Pair._coordinate),
    (0.03, Pair._tell_silence),
    (0.03, Pair._time),
    (0.02, Pair._supervise),
    (0.02, Pair._connect),
    (0.015, Pair._plan),
    (0.015, Pair._disturb),
)
_FAULTS = (
    Pair._kill_process, Pair._kill_process, Pair._kill_worker, Pair._stop_or_continue_process,
    Pair._stop_or_continue_process, Pair._stop_or_continue_worker, Pair._stop_or_continue_worker,
    Pair._kill_coordinator, Pair._kill_coordinator, Pair._usurp, Pair._zombie_coordinator_works,
    Pair._redis_refuses_or_is_back, Pair._redis_is_full_or_not, Pair._nimbus_refuses_or_is_back,
    Pair._storm_drops_a_batch, Pair._storm_drops_a_batch, Pair._a_channel_is_cut, Pair._a_node_goes_or_comes_back,
)  # fmt: skip
