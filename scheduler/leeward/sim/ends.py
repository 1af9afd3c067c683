"""Both ends of the protocol in memory: the real coordinator, real tasks, and the rules that hold after each step.

`pair.py` lets them run by a seed; `faults.py` has the faults, `rest.py` their end.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from leeward.control.coordinator import Coordinator
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ClusterRefusedError
from leeward.core.instructions import Mode
from leeward.core.orders import Limits
from leeward.core.outcome import Ending
from leeward.core.plan import Plan, Slot
from leeward.core.table import Table, even_table
from leeward.runtime.handover.pieces import PIECE_BYTES
from leeward.sim.application import ONE, TWO
from leeward.sim.memory import ListSink
from leeward.sim.process import Process
from leeward.sim.rig import Rig
from leeward.sim.rules import Rules

NODES = {"n1": (1, 2), "n2": (1, 2), "n3": (1, 2)}
#: Numbers that each source emits.
LIMIT = 36
#: Lines of the story that a failure prints.
STORY = 60


class Broken(AssertionError):
    """Something that must hold does not; the text has seed, story and how to replay it."""


class Killed(Exception):
    """The coordinator's process ended here."""


class Tale(ListSink):
    """EventSink that adds to the story as well."""

    def __init__(self, story: deque[str]) -> None:
        super().__init__()
        self._story = story

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        super().emit(action, fields)
        if action not in ("phase", "checkpoint_committed"):
            about = " ".join(f"{name}={fields[name]}" for name in ("why", "result", "tasks", "kind") if name in fields)
            self._story.append(f"event: {action} {about}")


class Ends(Rig):
    """See the module. `choose` and `weigh` draw the faults of this run, and how often each deed comes."""

    def __init__(
        self,
        seed: int,
        *,
        steps: int,
        choose: Callable[[random.Random], tuple[Callable[[Any], None], ...]],
        weigh: Callable[[random.Random], list[float]],
    ) -> None:
        rng = random.Random(seed)
        self.seed, self.steps = seed, steps
        self.story: deque[str] = deque(maxlen=STORY)
        shape = rng.choice((TWO, TWO, ONE))
        super().__init__(shape, rng=rng, sink=Tale(self.story), limit=LIMIT)
        self.rules = Rules(self.first_tables)
        self.keepers = [task for task, name in self.shape.tasks.items() if self.shape.kinds[name] == "stateful"]
        self.seen: list[tuple[int, int, int]] = []  # owners, and how many groups each had, at the last check
        self.history: list[ControlRecord | None] = [None]
        self.told = [0]  # those of them that every task watches
        self.coordinator: Coordinator | None = None
        self.zombies: list[Coordinator] = []
        self.fuse: int | None = None  # writes until the coordinator is killed
        self.damage = 0  # pieces of handovers that are to come damaged
        self.piece_bytes = self.rng.choice((16, 64, PIECE_BYTES))
        self.practice = self.rng.choice((0, 0, 2, 8))  # calls for practice: with many of them a loss is always noticed
        self.faults = choose(self.rng)
        self.cuts = self.rng.choice((0, 0, 1, 2))  # that are committed before the first step
        self.pauses = (0.3, 0.3, 1.0, 3.0, 11.0) if self.faults else (0.1, 0.3, 0.5)  # seconds
        self.shares = weigh(self.rng)
        self.limits = Limits(
            live=self.rng.random() < 0.6, ahead_bytes=self.rng.choice((-1, 8, 10**9)),
            step_groups=self.rng.choice((20, 64, 128)), checkpoint_every_s=5.0, settle_s=5.0, restore_s=20.0,
            held_s=5.0,
        )  # fmt: skip
        self.place(NODES, self._first_slots())
        self.lead()

    # --- the topology

    def _first_slots(self) -> dict[int, Slot]:
        """Five of six slots; in half of the runs tasks that do no work share two, so that they can be moved alone."""
        slots = [Slot(node, port) for node, ports in NODES.items() for port in ports]
        self.rng.shuffle(slots)
        if self.rng.random() < 0.5:
            return {task: slots[place % 5] for place, task in enumerate(sorted(self.shape.tasks))}
        owners = {owner for table in self.first_tables.values() for owner in table}
        work, warm = slots[:3], slots[3:5]
        return {
            task: work[place % 3] if task in owners else warm[place % 2]
            for place, task in enumerate(sorted(self.shape.tasks))
        }

    def record_for(self, process: Process) -> tuple[ControlRecord | None, bool]:
        """The record that a task reads: the newest, or one a little older, as ZooKeeper's servers lag; whether it is
        the newest. Records read by one process never go back in time.
        """
        versions = range(len(self.history)) if process.task.hurries else self.told
        lag = self.rng.choice((0, 0, 0, 1, 2)) if self.faults else 0
        lagging = versions[max(len(versions) - 1 - lag, 0)]
        seen = versions[bisect(versions, process.read) - 1]
        version = max(lagging, seen)
        process.read = max(process.read, version)
        return self.history[version], version == versions[-1]

    # --- the coordinator

    def _fault(self, step: str) -> None:
        self._versions()
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                self.story.append(f"the coordinator is killed after {step}")
                raise Killed

    def lead(self) -> None:
        """A coordinator takes over."""
        self.coordinator = self.new_coordinator(limits=self.limits, fault=self._fault)
        self.guarded(self.coordinator.start)

    def guarded(self, deed: object, *arguments: object) -> None:
        """Let the coordinator do something; it may end there."""
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
                self._check_record(record)
                self.rules.record(record, self.world.told, self.network.queues)
                if self.history[-2] is None or record.base != self.history[-2].base:
                    self.network.holes.clear()
            if self.world.told is record:
                self.told.append(len(self.history) - 1)
            for processes in self.processes.values():
                for process in processes:
                    process.looks = True
            self.outside.base = max(self.outside.base, self.world.bases.get(self.topology_id, 0))

    # --- steps

    def some_process(self) -> Process | None:
        """Any that runs."""
        running = [process for process in self.everything() if process.runs]
        return self.rng.choice(running) if running else None

    def on_the_way(self, piece: bytes) -> list[bytes]:
        """The pieces that arrive for one piece of a handover: it may come twice, or damaged."""
        if self.damage:
            self.damage -= 1
            return [piece[:-1] + bytes([piece[-1] ^ 1])]
        return [piece, piece] if self.rng.random() < 0.1 else [piece]

    def deliver(self) -> None:
        network = self.network
        for _ in range(self.rng.randint(1, 6)):
            if not network.busy:
                return
            channel = self.rng.choice(list(network.busy))
            receiver = self.receiver(channel[1])
            if receiver is not None and channel not in network.slow:
                receiver.receive(channel[0], network.take(channel))

    def let_emit(self) -> None:
        sources = [p for task, name in self.shape.tasks.items() if self.shape.kinds[name] == "source"
                   for p in self.processes[task] if p.runs]  # fmt: skip
        if sources:
            source = self.rng.choice(sources)
            for _ in range(self.rng.randint(1, 3)):
                source.next_tuple()

    def work(self) -> None:
        process = self.some_process()
        if process is not None:
            for _ in range(self.rng.randint(1, 3)):
                if not process.work():
                    break
            process.attend()

    def carry(self) -> None:
        process = self.some_process()
        if process is not None:
            process.carry()
            process.attend()

    def coordinate(self) -> None:
        if self.coordinator is None:
            if self.rng.random() < 0.3:
                self.fuse = None
                self.story.append("another coordinator takes over")
                self.lead()
            return
        self.guarded(self.coordinator.work)
        if self.coordinator is not None and self.rng.random() < 0.2:
            self.guarded(self.coordinator.tidy)
            self.vault.forget()

    def tell_silence(self) -> None:
        """The monitor gives the coordinator the silent tasks."""
        if self.coordinator is not None and self.world.record is not None:
            silent = self.storm.silent() if self.faults else frozenset()  # a worker that Storm moves is silent, briefly
            if silent != self.coordinator.machine.silent:
                self.story.append(f"silent: {sorted(silent)}")
            self.guarded(self.coordinator.silence, silent)

    def time(self) -> None:
        self.clock.time += self.rng.choice(self.pauses)

    def supervise(self) -> None:
        if self.rng.random() < 0.3:
            self.storm.plugin_passes()  # as it does every ten seconds
        slots = sorted({*self.storm.workers, *self.storm.all_slots()})
        slot = self.rng.choice(slots)
        if self.storm.supervise(slot):
            self.story.append(f"the supervisor acts on {slot.node}:{slot.port}")

    def connect(self) -> None:
        if self.network.down:
            self.network.down.discard(self.rng.choice(sorted(self.network.down)))

    def plan(self) -> None:
        coordinator = self.coordinator
        if coordinator is None or not coordinator.idle or coordinator.machine.away:
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
        warm = sorted(placement.keys() - {owner for table in record.tables.values() for owner in table})
        choice = rng.random()
        if choice < 0.3:
            placement[rng.choice(sorted(placement))] = rng.choice(self.storm.all_slots())
        elif choice < 0.5 and warm:
            placement[rng.choice(warm)] = rng.choice(self.storm.all_slots())
        self.story.append("a plan")
        self.guarded(coordinator.submit, Plan(tables=tables, placement=placement, reason="sim"))

    # --- rules

    def check(self) -> None:
        """The rules that hold after every step."""
        record = self.world.record
        if record is None:
            return
        self.check_cuts()
        self.rules.processes(self.everything())
        writers = [
            process
            for task in self.keepers
            for process in self.processes[task]
            if process.protocol.mode is Mode.RUNNING and process.protocol.base == record.base
        ]
        seen = [(id(process), id(process.state), len(process.state.owned)) for process in writers]
        if seen == self.seen:
            return  # nobody has gained or lost a group since
        self.seen = seen
        owned: set[tuple[str, int]] = set()
        for process in writers:
            mine = {(process.component_name, group) for group in process.state.owned}
            assert owned.isdisjoint(mine), f"{sorted(owned & mine)} have two owners"
            owned |= mine

    def _check_record(self, record: ControlRecord) -> None:
        """Before a record gives work to other processes, the stores refuse those that had it."""
        fence, base = (there.get(self.topology_id, 0) for there in (self.world.fences, self.world.bases))
        if record.phase in (Phase.PAUSE, Phase.RESTORE):
            assert fence >= record.epoch, f"{record.phase} of epoch {record.epoch}, but the fence is {fence}"
        assert base >= record.base, f"base {record.base} is in force, but the store's is {base}"

    def check_end(self) -> None:
        """The state in memory is right, too; and without faults nothing was given up."""
        if not self.faults:
            assert not self.losses, f"there was no fault, but: {self.losses}"
            for action, fields in self.sink.events:
                ended_badly = action == "reconfiguration_ended" and fields["ending"] != Ending.DONE
                given_up = action in _GIVEN_UP or ended_badly
                assert not given_up, f"there was no fault, but: {action} {fields}"
        states: dict[str, list[Mapping[str, object]]] = {}
        for processes in self.processes.values():
            states.setdefault(processes[-1].component_name, []).append(dict(processes[-1].state))
        self.application.check_cut(states)


#: Events of failures.
_GIVEN_UP = ("reset", "alert", "held", "restore_failed", "checkpoint_failed", "fence_failed", "rebalance_failed")
