"""The task protocol in memory: a small topology of real TaskProtocols under every interleaving Hypothesis can think of.

The model: spout 1 -> bolts 2, 3 (rotated) -> bolt 4 (stateful, groups split with 5) -> sink 6. Channels are queues; the
test chooses which channel delivers next, when tasks look at the control record, when I/O completes, which process dies,
and when tables change: by restart or by handover.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leeward.core.control import ControlRecord, Phase
from leeward.core.instructions import (
    Deliver,
    DeliverPulse,
    Export,
    HandedOver,
    HandOver,
    Kind,
    Load,
    Marker,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
)
from leeward.core.protocol import TaskProtocol

DOWNSTREAM = {1: (2, 3), 2: (4, 5), 3: (4, 5), 4: (6,), 5: (6,), 6: ()}
UPSTREAM = {task: tuple(s for s, targets in DOWNSTREAM.items() if task in targets) for task in DOWNSTREAM}
KEYS = 4
COUNTS = (4, 5)


def owned(task: int, tables) -> set[int]:
    """Keys that a task owns by the tables."""
    return {key for key in range(KEYS) if tables["count"][key] == task} if task in COUNTS else set()


class Process:
    """One task's process: protocol, state, and the I/O that has been asked for and not done yet."""

    def __init__(self, task: int) -> None:
        grouped = (lambda item: item[0] % KEYS) if task in COUNTS else None
        self.protocol = TaskProtocol(task, UPSTREAM[task], component="count", group_of=grouped)
        self.state: dict = {}
        self.groups: set[int] = set()  # that it owns: keys, here
        self.base = -1
        self.tables: dict[str, tuple[int, ...]] = {}  # that its groupings route by
        self.io: deque = deque()
        self.transfers: list = []  # of a handover: to send, or to receive
        self.turn = 0


class Topology(RuleBasedStateMachine):
    """Coordinator and cluster around the protocols; its own bookkeeping is deliberately plain."""

    @initialize()
    def start(self) -> None:
        self.record = ControlRecord(tables={"rotate": (2,), "count": (4,) * KEYS})
        self.processes = {task: Process(task) for task in DOWNSTREAM}
        self.channels: dict[tuple[int, int], deque] = {
            (s, t): deque() for s in DOWNSTREAM for t in DOWNSTREAM[s]
        }
        self.sent: dict[tuple[int, int], int] = dict.fromkeys(self.channels, 0)
        self.cuts: dict[int, dict[int, dict]] = {}
        self.ready: set[int] = set()
        self.recover = False
        self.doomed: set[int] = set()
        self.last_cut = 0
        self.mail: dict[tuple[int, int], dict] = {}  # (handover, receiver) -> key -> state, sent and not yet received
        self.handing: set[int] | None = None  # tasks still to report; None: no handover is in progress
        self.sink: dict[int, list] = {}  # pulse number -> counts, as published under that number
        self.first = set(DOWNSTREAM)
        self.pulse_limit = 12
        for task in DOWNSTREAM:
            self.look(task)

    # --- the shell around one protocol ---

    def look(self, task: int) -> None:
        first = task in self.first
        self.first.discard(task)
        self.carry_out(task, self.processes[task].protocol.on_record(self.record, first=first))

    def carry_out(self, task: int, instructions: list) -> None:
        process = self.processes[task]
        for instruction in instructions:
            match instruction:
                case Deliver(item):
                    self.process_tuple(task, item)
                case DeliverPulse(number, bodies):
                    assert len(set(bodies)) == 1
                    self.process_pulse(task, number)
                    self.broadcast(task, Marker(kind=Kind.PULSE, number=number, body=bodies[0]))
                case Send(marker, tables):
                    if tables is not None:  # what installs the tables in the groupings
                        process.tables = tables
                    self.broadcast(task, marker)
                case Export(cut, _):
                    process.io.append(("export", cut, dict(process.state)))
                case Load(record, keep):
                    process.transfers.clear()
                    process.io.append(("load", record, keep))
                case HandOver(record, gained, lost):
                    assert set(lost) <= process.groups and not set(gained) & process.groups
                    process.groups -= set(lost)
                    for target in sorted(set(lost.values())):
                        state = {key: process.state.pop(key, []) for key in lost if lost[key] == target}
                        process.transfers.append(("send", record.epoch, target, state))
                    if gained:
                        process.transfers.append(("receive", record.epoch, task, dict.fromkeys(gained)))
                case HandedOver(epoch):
                    if self.handing is not None and epoch == self.record.handover:
                        assert not process.transfers
                        assert task in self.handing, f"task {task} reports twice"
                        self.handing.discard(task)
                case Ready(epoch):
                    if epoch == self.record.epoch:
                        assert task not in self.doomed, "a process whose worker Storm is about to end says it is ready"
                        self.ready.add(task)
                case Recover(epoch, _):
                    process.transfers.clear()
                    process.base = -1
                    self.recover = self.recover or epoch == self.record.epoch
                case Resumed(record, tables):
                    if record.base == 0 and process.base < 0:
                        process.base = 0
                        process.groups = owned(task, tables)

    def broadcast(self, task: int, marker: Marker) -> None:
        for target in DOWNSTREAM[task]:
            sent = self.sent[task, target]
            self.sent[task, target] = 0
            self.channels[task, target].append(replace(marker, sent=sent))

    def route(self, task: int, target: int, item: object) -> None:
        self.sent[task, target] += 1
        self.channels[task, target].append(item)

    def process_tuple(self, task: int, number: int) -> None:
        process = self.processes[task]
        assert process.protocol.mode in (Mode.RUNNING, Mode.PAUSED)
        if task in (2, 3):
            self.route(task, self.processes[task].tables["count"][number % KEYS], (number, task))
        elif task in COUNTS:
            number, via = number
            key = number % KEYS
            assert self.processes[task].tables["count"][key] == task, "tuple at a task that does not own its group"
            assert key in process.groups, "tuple at a task that does not have its group"
            before = [n for n, v in process.state.get(key, []) if v == via]
            assert before[-1:] < [number], "order within a channel was lost"
            process.state[key] = [*process.state.get(key, []), (number, via)]
        else:
            process.state.setdefault("now", []).append(number)

    def process_pulse(self, task: int, number: int) -> None:
        process = self.processes[task]
        if task in COUNTS:
            for key in sorted(process.state):
                self.route(task, 6, (key, tuple(sorted(n for n, _ in process.state[key]))))
        elif task == 6:
            result = sorted(process.state.pop("now", []))
            assert self.sink.setdefault(number, result) == result, "a repeat differs from what was published"

    # --- what may happen next ---

    @rule(count=st.integers(1, 3))
    def emit(self, count: int) -> None:
        spout = self.processes[1]
        for _ in range(count):
            if not spout.protocol.open or spout.state.get("at", 0) >= self.pulse_limit * 3:
                return
            number = spout.state["at"] = spout.state.get("at", 0) + 1
            targets = self.processes[1].tables["rotate"]
            spout.turn += 1
            self.route(1, targets[spout.turn % len(targets)], number)
            if number % 3 == 0:
                self.broadcast(1, Marker(kind=Kind.PULSE, number=number // 3, body=number))

    @rule(choice=st.randoms(use_true_random=False), steps=st.integers(1, 12))
    def deliver(self, choice, steps: int) -> None:
        for _ in range(steps):
            busy = [channel for channel in sorted(self.channels) if self.channels[channel]]
            if not busy:
                return
            source, target = choice.choice(busy)
            item = self.channels[source, target].popleft()
            protocol = self.processes[target].protocol
            step = protocol.on_marker if isinstance(item, Marker) else protocol.on_tuple
            self.carry_out(target, step(source, item))

    @rule(task=st.sampled_from(sorted(DOWNSTREAM)))
    def look_at_record(self, task: int) -> None:
        self.look(task)

    @rule(task=st.sampled_from(sorted(DOWNSTREAM)))
    def timer(self, task: int) -> None:
        self.carry_out(task, self.processes[task].protocol.on_timer())

    @rule(task=st.sampled_from(sorted(DOWNSTREAM)))
    def do_io(self, task: int) -> None:
        process = self.processes[task]
        if not process.io:
            return
        name, *what = process.io.popleft()
        if name == "export":
            self.cuts.setdefault(what[0], {})[task] = what[1]
            return
        record, keep = what
        if record.epoch != process.protocol.record.epoch:
            return
        snapshot = self.cuts.get(record.cut, {})
        if task in COUNTS:
            process.groups = owned(task, record.tables)
            merged = {
                key: value
                for part in (snapshot.get(4, {}), snapshot.get(5, {}))
                for key, value in part.items()
            }
            mine = [key for key in range(KEYS) if record.tables["count"][key] == task]
            if keep:
                kept = {key: process.state[key] for key in mine if key in process.state}
                assert all(merged.get(key) == value for key, value in kept.items()), (
                    "memory is not what was exported"
                )
            process.state = {key: list(merged[key]) for key in mine if key in merged}
        else:
            process.state = dict(snapshot.get(task, {}))
        process.base = record.base
        self.carry_out(task, process.protocol.loaded(record))

    @rule(task=st.sampled_from(COUNTS), choice=st.randoms(use_true_random=False))
    def transfer(self, task: int, choice) -> None:
        """One piece of a handover is sent, or one group received, if one is there."""
        process = self.processes[task]
        if not process.transfers:
            return
        job = choice.choice(process.transfers)
        what, epoch, target, state = job
        mail = self.mail.setdefault((epoch, target), {})
        if what == "send":
            process.transfers.remove(job)
            if epoch < self.record.base:
                return  # fenced off
            mail.update(state)
            if all(other[0] != "send" for other in process.transfers):
                self.carry_out(task, process.protocol.sent(epoch))
            return
        there = sorted(mail.keys() & state.keys())
        if there:
            key = choice.choice(there)
            del state[key]
            if not state:
                process.transfers.remove(job)
            if mail[key]:
                process.state[key] = mail[key]
            process.groups.add(key)
            self.carry_out(task, process.protocol.arrived(epoch, [key]))

    # --- coordinator ---

    @precondition(lambda self: self.at_rest)
    @rule(
        rotate=st.sampled_from([(2,), (3,), (2, 3)]),
        count=st.lists(st.sampled_from([4, 5]), min_size=KEYS, max_size=KEYS),
    )
    def hand_over(self, rotate, count) -> None:
        epoch = self.record.epoch + 1
        tables = {"rotate": rotate, "count": tuple(count)}
        self.record = replace(self.record, epoch=epoch, handover=epoch, tables=tables)
        self.handing = set(DOWNSTREAM)

    @property
    def at_rest(self) -> bool:
        """The coordinator would begin something."""
        return self.record.phase is Phase.RUN and not self.recover and self.handing is None

    @precondition(lambda self: self.handing is not None and not self.handing)
    @rule()
    def handover_done(self) -> None:
        self.handing = None

    @precondition(lambda self: self.handing is not None)
    @rule()
    def handover_late(self) -> None:
        self.reset()

    @precondition(lambda self: self.at_rest)
    @rule(
        rotate=st.sampled_from([(2,), (3,), (2, 3)]),
        count=st.lists(st.sampled_from([4, 5]), min_size=KEYS, max_size=KEYS),
    )
    def announce(self, rotate, count) -> None:
        self.old = self.record
        self.last_cut += 1
        self.record = replace(
            self.record,
            epoch=self.record.epoch + 1,
            phase=Phase.PAUSE,
            cut=self.last_cut,
            tables={"rotate": rotate, "count": tuple(count)},
        )

    @precondition(lambda self: self.record.phase is Phase.PAUSE)
    @rule()
    def abort(self) -> None:
        self.record = replace(self.old, epoch=self.record.epoch + 1)

    @precondition(
        lambda self: (
            self.record.phase is Phase.PAUSE and len(self.cuts.get(self.record.cut, {})) == len(DOWNSTREAM)
        )
    )
    @rule(restarts=st.sets(st.sampled_from(sorted(DOWNSTREAM))))
    def move(self, restarts) -> None:
        for channel in self.channels.values():
            assert all(isinstance(item, Marker) for item in channel), "a tuple was in flight after barrier 1"
        self.record = replace(
            self.record,
            phase=Phase.RESTORE,
            base=self.record.epoch,
            handover=0,
            committed=(*self.record.committed, self.record.cut)[-2:],
        )
        self.record = replace(self.record, restarts=tuple(sorted(restarts)))
        self.ready.clear()
        self.doomed = set(restarts)

    @rule(task=st.sampled_from(sorted(DOWNSTREAM)))
    def storm_restarts(self, task: int) -> None:
        """Supervisors act on a new assignment when they get to it."""
        if task in self.doomed:
            self.restart(task)

    @precondition(lambda self: self.record.phase is Phase.RESTORE and len(self.ready) == len(DOWNSTREAM))
    @rule()
    def run(self) -> None:
        self.record = self.record.with_phase(Phase.RUN)

    @precondition(lambda self: self.record.phase is Phase.RUN and self.handing is None)
    @rule()
    def checkpoint(self) -> None:
        self.last_cut += 1
        self.record = replace(self.record, checkpoint=self.last_cut)

    @precondition(lambda self: self.record.phase is Phase.RUN)
    @rule()
    def commit(self) -> None:
        cut = self.record.checkpoint
        if cut > max(self.record.committed, default=0) and len(self.cuts.get(cut, {})) == len(DOWNSTREAM):
            self.record = replace(self.record, committed=(*self.record.committed, cut)[-2:])

    @rule(task=st.sampled_from(sorted(DOWNSTREAM)))
    def die(self, task: int) -> None:
        """kill -9: memory, unfinished I/O and what was under way to the process are gone; Storm starts a new one."""
        self.restart(task)
        self.look(task)

    def restart(self, task: int) -> None:
        self.processes[task] = Process(task)
        self.ready.discard(task)
        self.doomed.discard(task)
        for source, target in self.channels:
            if target == task:
                self.channels[source, target].clear()
            if source == task:
                self.sent[source, target] = 0

    @precondition(lambda self: self.recover)
    @rule()
    def reset(self) -> None:
        """What the coordinator does with a request for a reset."""
        record = self.record
        tables, cut = record.tables, record.committed[-1] if record.committed else 0
        if record.phase is Phase.PAUSE:
            tables = self.old.tables
        epoch = record.epoch + 1
        self.record = replace(record, epoch=epoch, base=epoch, phase=Phase.RESTORE, cut=cut, tables=tables)
        self.record = replace(self.record, restarts=(), handover=0)
        self.recover, self.handing = False, None
        self.doomed = set()
        self.ready.clear()

    # --- what must hold ---

    @invariant()
    def results_are_exact(self) -> None:
        for number, result in getattr(self, "sink", {}).items():
            seen = [value for _, values in result for value in values]
            assert sorted(seen) == list(range(1, number * 3 + 1)), f"pulse {number} shows {sorted(seen)}"

    @invariant()
    def no_group_has_two_owners(self) -> None:
        if hasattr(self, "processes"):
            one, other = (self.processes[task] for task in COUNTS)
            assert one.base != other.base or one.base < 0 or not one.groups & other.groups

    def teardown(self) -> None:
        """Left alone, the topology comes to rest with every result published: nothing blocks for ever."""
        if not hasattr(self, "processes"):
            return
        for _ in range(400):
            if self.recover:
                self.reset()
            elif self.handing is not None and not self.handing:
                self.handover_done()
            elif self.record.phase is Phase.PAUSE:
                if len(self.cuts.get(self.record.cut, {})) == len(DOWNSTREAM):
                    self.move(set())
                else:
                    self.abort()
            elif self.record.phase is Phase.RESTORE and len(self.ready) == len(DOWNSTREAM):
                self.run()
            for task in sorted(DOWNSTREAM):
                self.storm_restarts(task)
                self.look(task)
                self.timer(task)
                while self.processes[task].io:
                    self.do_io(task)
                for _ in range(len(self.processes[task].transfers) * KEYS):
                    self.transfer(task, random.Random(0))
            self.emit(3)
            for channel in sorted(self.channels):
                while self.channels[channel]:
                    item = self.channels[channel].popleft()
                    protocol = self.processes[channel[1]].protocol
                    step = protocol.on_marker if isinstance(item, Marker) else protocol.on_tuple
                    self.carry_out(channel[1], step(channel[0], item))
            if len(self.sink) == self.pulse_limit and self.handing is None:
                break
        self.results_are_exact()
        assert self.handing is None
        assert len(self.sink) == self.pulse_limit, (
            f"only pulses {sorted(self.sink)} came out; record {self.record}"
        )


Topology.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestTaskProtocol = Topology.TestCase
