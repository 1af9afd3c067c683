"""The process of one task in the simulator: the real protocol and `runtime.Task`, around them memory instead of pipes.

Nothing happens by itself. A driver takes one step at a time, in any order: `attend` is the task's own thread,
`work` the link's, `carry` the courier's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from leeward.core.control import ControlRecord, Loss, Report
from leeward.core.errors import NotOwnedError, SnapshotError
from leeward.core.instructions import Deliver, DeliverPulse, Kind, Marker, Mode, Send
from leeward.core.keys import key_group
from leeward.core.protocol import TaskProtocol
from leeward.runtime.ports import Surroundings
from leeward.runtime.state.keyed import KeyedState
from leeward.runtime.task.task import Task
from leeward.sim.carrier import Carrier
from leeward.sim.parts import ARig, AWorker

Work = Callable[[], None]


class NoCollector:
    """Stands in for `gc`: there is one for all processes."""

    def freeze(self) -> None: ...

    def enable(self) -> None: ...

    def disable(self) -> None: ...


class Process:
    """`Shell`, `UserCode` and `ControlLink` of `runtime.ports` in one, for one task."""

    def __init__(self, pair: ARig, task: int, worker: AWorker) -> None:
        self.pair, self.task_id, self.worker = pair, task, worker
        self.node, self.outbox = worker.slot.node, worker.outboxes[task]
        self.component_name = pair.shape.tasks[task]
        self.kind = pair.shape.kinds[self.component_name]
        self.alive, self.stopped = True, False
        self.hangs = False  # ZooKeeper and Redis do not answer this process for a while
        self.state = KeyedState("a process that has not started", ())
        self.inbox: deque[Work] = deque()
        self.jobs: deque[Work] = deque([self._join])
        self.looks = False  # the control record has changed
        self.read = 0  # newest version of it that was read
        group_of = (lambda item: self._group(item)) if self.kind == "stateful" else None
        protocol = TaskProtocol(task, pair.network.upstream(task), component=self.component_name, group_of=group_of)
        protocol.practice(pair.practice)
        around = Surroundings(clock=lambda: pair.clock.time, later=lambda _s, work: work(), collector=NoCollector())
        self.carrier = Carrier(self)
        self.task = Task(self, self, protocol, self.carrier, around=around)
        self.task.link = self
        self.protocol = protocol

    def _group(self, item: tuple[Any, ...]) -> int | None:
        key = self.pair.application.key(self.component_name, item)
        return None if key is None else key_group(key)

    # --- steps of a driver

    @property
    def runs(self) -> bool:
        """It is there, and neither it nor its worker is stopped."""
        return self.alive and not self.stopped and not self.worker.stopped

    def receive(self, source: int, item: object) -> None:
        """From a channel."""
        try:
            self._receive(source, item)
        except NotOwnedError as error:
            self.task.misrouted(str(error))

    def _receive(self, source: int, item: object) -> None:
        protocol = self.protocol
        if isinstance(item, Marker):
            self.task.carry_out(protocol.on_marker(source, item))
            return
        channel = protocol.clear(source)
        if channel is not None:
            channel.count += 1
            self.deliver(Deliver(item))
        else:
            self.task.carry_out(protocol.on_tuple(source, item))
            self.task.handovers.look()

    def attend(self) -> None:
        """Work posted by other threads, the timer, and a little copying ahead."""
        while self.inbox:
            self.inbox.popleft()()
        self.task.carry_out(self.protocol.on_timer())
        if self.task.handovers.copying:
            self.task.handovers.step()

    def next_tuple(self) -> bool:
        """A source is asked for a tuple."""
        if not self.protocol.open or not self.protocol.works:
            return False
        return bool(self.pair.application.next_tuple(self))

    def work(self) -> bool:
        """One job of the link; False if there is none, or the stores do not answer."""
        if self.hangs:
            return False
        if self.jobs:
            self.jobs.popleft()()
        elif self.looks:
            self.looks = False
            self._look()
        else:
            return False
        return True

    def carry(self) -> bool:
        """One job of the courier."""
        return self.carrier.work()

    def emit(self, component: str, item: object, key: object = None) -> None:
        """Output of the user's code."""
        self.pair.network.emit(self.outbox, component, item, key)

    # --- runtime.ports: Shell, UserCode

    def post(self, work: Work) -> None:
        self.inbox.append(work)

    def send(self, instruction: Send) -> None:
        self.pair.network.send(self.outbox, instruction)

    def deliver(self, instruction: Deliver) -> None:
        self.pair.application.process(self, instruction.item)

    def deliver_pulse(self, instruction: DeliverPulse) -> None:
        self.pair.application.pulse(self, instruction)
        self.send(Send(Marker(kind=Kind.PULSE, number=instruction.number, body=instruction.bodies[0])))

    def pace(self, seconds: float | None) -> None: ...

    def started(self) -> None: ...

    def resumed(self) -> None: ...

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None: ...

    def before_checkpoint(self, cut: int) -> None: ...

    def changing(self) -> None: ...

    def changed(self) -> None: ...

    def durable(self, cut: int, state: dict[Any, Any] | None) -> None:
        self.pair.application.durable(self, state)

    # --- runtime.ports: ControlLink

    def _join(self) -> None:
        self._first = self.task_id not in self.pair.joined
        self.pair.joined.add(self.task_id)
        self.looks = True

    def look(self) -> None:
        self.jobs.append(self._look)

    def _look(self) -> None:
        record, newest = self.pair.record_for(self)
        self.looks = self.looks or not newest  # the watch fires again
        found = record or ControlRecord(tables=self.pair.first_tables)
        self.post(lambda: self.task.on_record(found, self._first))

    def export(
        self,
        cut: int,
        epoch: int,
        encode: Callable[..., Any],
        owned: Iterable[int],
        barrier: str,
        report: Callable[..., Report],
        after_s: float = 0.0,
    ) -> None:
        def job() -> None:
            error, began = "", self.pair.clock.time
            try:
                blobs, swap = encode()
                self.pair.vault.export(
                    cut=cut, epoch=epoch, component=self.component_name, task=self.task_id, node=self.node,
                    owned=owned, blobs=blobs, swap=swap,
                )  # fmt: skip
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
            self._reach(barrier, report(error, self.pair.clock.time - began, 0.0))

        self.jobs.append(job)

    def load(
        self, cut: int, groups: Iterable[int], done: Callable[..., None], failed: Callable[[str, bool], None]
    ) -> None:
        def job() -> None:
            try:
                entries, size = self.pair.vault.load(
                    cut=cut, component=self.component_name, task=self.task_id, node=self.node, groups=groups
                )
            except Exception as failure:
                why, bad_cut = f"{type(failure).__name__}: {failure}", isinstance(failure, SnapshotError)
                self.post(lambda: failed(why, bad_cut))
                return
            self.post(lambda: done(entries, size, 0.0))

        self.jobs.append(job)

    def report(self, barrier: str, report: Report, after_s: float = 0.0) -> None:
        self.jobs.append(lambda: self._reach(barrier, report))

    def _reach(self, barrier: str, report: Report) -> None:
        self.pair.world.barriers.setdefault(barrier, {})[self.task_id] = report
        self.pair.world.changed()

    def recover(self, epoch: int, reason: str, fresh: bool) -> None:
        self.pair.losses.append(reason)

        def job() -> None:
            self.pair.world.recoveries[epoch] = Loss(task=self.task_id, why=reason, fresh=fresh)
            self.pair.world.changed()
            self.looks = True

        self.jobs.append(job)

    @property
    def mode(self) -> Mode:
        """Of the protocol."""
        return self.protocol.mode
