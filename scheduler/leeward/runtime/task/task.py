"""Carries out what the protocol of a task decides: exports, loads, handovers, reports. Knows no Storm.

A `Shell` stands between this and the user's code: the component in a Storm worker (`task/elastic.py`), or a process of
the simulator (`leeward.sim`). The link and the courier do what may block; what they bring back is posted to the
shell's own thread.
"""

from __future__ import annotations

import copy
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from leeward.core.control import ControlRecord, Report, cut_barrier, ready_barrier
from leeward.core.instructions import (
    BeforeCheckpoint,
    CopyAhead,
    Deliver,
    DeliverPulse,
    Export,
    HandedOver,
    HandOver,
    Instruction,
    Load,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
)
from leeward.core.protocol import TaskProtocol
from leeward.core.table import Table, owned
from leeward.runtime.handover.handovers import Courier, Handovers
from leeward.runtime.state import snapshot
from leeward.runtime.state.durable import Durable
from leeward.runtime.state.fencing import FencingToken
from leeward.runtime.state.keyed import KeyedState

log = logging.getLogger(__name__)

Work = Callable[[], None]


class Shell(Protocol):
    """What a task needs of the component around it. Everything is called in the shell's own thread."""

    kind: str  #: "source", "stateful", "stateless"
    task_id: int
    component_name: str
    state: KeyedState

    def post(self, work: Work) -> None:
        """Queue work for the shell's own thread; callable from any thread."""

    def send(self, instruction: Send) -> None:
        """Send a marker to every downstream task."""

    def deliver(self, instruction: Deliver) -> None:
        """Process a tuple."""

    def deliver_pulse(self, instruction: DeliverPulse) -> None:
        """Process a pulse, and send it on."""

    def pace(self, seconds: float | None) -> None:
        """Look for work again after so long without input; None: as usual."""

    def started(self) -> None:
        """The task processes tuples from here on."""

    def resumed(self) -> None:
        """The state was replaced."""

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None:
        """Key groups were added to the state, or taken from it."""

    def before_checkpoint(self, cut: int) -> None:
        """The state of this moment is about to become part of a cut."""

    def changing(self) -> None:
        """Instructions are about to be carried out: what was learned from the protocol before holds no more."""

    def changed(self) -> None:
        """They were carried out."""

    def durable(self, cut: int, state: dict | None) -> None:
        """No restore goes back behind this cut any more. `state`: a source's own as of that cut."""


class ControlLink(Protocol):
    """What a task asks of ZooKeeper and Redis (`runtime/task/link.py`); nothing of it blocks."""

    def export(
        self, cut: int, epoch: int, encode: Callable[[], tuple[Mapping[int, bytes], Mapping[int, bytes]]],
        owned: Iterable[int], barrier: str, report: Callable[[str, float], Report], after_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Encode and write this task's part of a cut, then report at the barrier."""

    def load(
        self, cut: int, groups: Iterable[int], done: Callable[[dict[int, dict], int, float], None],
        failed: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Read groups of a cut; `done(entries, bytes, seconds)` or `failed(why)` is posted."""

    def report(self, barrier: str, report: Report, after_s: float = 0.0) -> None:
        """Arrive at a barrier."""

    def recover(self, epoch: int, reason: str, fresh: bool) -> None:
        """Ask the coordinator for a reset."""

    def look(self) -> None:
        """Read the control record now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Clock, timer and garbage collector of a process; a simulator has its own."""

    clock: Callable[[], float] = time.perf_counter
    later: Callable[[float, Work], None] = lambda seconds, work: _in_a_thread(seconds, work)
    collector: Any = gc


def _in_a_thread(seconds: float, work: Work) -> None:
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()


class Task:
    """One task of a topology; see the module. `link` is set by its owner before anything is carried out."""

    link: ControlLink

    def __init__(
        self, shell: Shell, protocol: TaskProtocol, courier: Courier, *, around: Surroundings | None = None
    ) -> None:
        self.shell, self.protocol = shell, protocol
        self.around = around or Surroundings()
        self.handovers = Handovers(self, courier, self.around)
        self.state_bytes = 0  #: as of the last export
        self._durable = Durable()
        self._imported = self._report()  # with the newest RESTORE

    # --- what it is

    @property
    def name(self) -> str:
        """For messages."""
        return f"task {self.shell.task_id} of {self.shell.component_name}"

    @property
    def leisure_s(self) -> float:
        """Delay of work that nothing waits for, such as a part of a checkpoint: the markers of a handover or of a
        checkpoint should have passed, and the tasks of a node should not all work at the same moment.
        """
        return 0.04 + self.turn_s

    @property
    def turn_s(self) -> float:
        """Spreads tasks over time."""
        return 0.01 * (self.shell.task_id % 5)

    @property
    def hurries(self) -> bool:
        """It reads a new record at once: as a source, or while it is stopped. Markers bring it to all others."""
        return self.shell.kind == "source" or self.protocol.mode is not Mode.RUNNING

    @property
    def fencing_token(self) -> FencingToken:
        """For a sink: what it writes under."""
        return FencingToken(self.protocol.base, self.protocol.handover)

    def groups(self, tables: Mapping[str, Table]) -> tuple[int, ...]:
        """The groups whose state this task owns by the tables."""
        if self.shell.kind == "stateless":
            return ()
        return owned(tables[self.shell.component_name], self.shell.task_id)

    # --- facts

    def on_record(self, record: ControlRecord, first: bool) -> None:
        """The control record as just read."""
        self.carry_out(self.protocol.on_record(record, first=first))
        self._now_durable(record)

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """In order."""
        self.shell.changing()
        for instruction in instructions:
            self._actions[type(instruction)](self, instruction)
        self.shell.changed()

    # --- deeds

    def _report(self, error: str = "", **counts: Any) -> Report:
        return Report(task=self.shell.task_id, component=self.shell.component_name, error=error, **counts)

    def _offsets(self) -> dict | None:
        """A copy of the state of a source that works."""
        state = self.shell.state
        return copy.deepcopy(dict(state)) if self.shell.kind == "source" and state.groups else None

    def _now_durable(self, record: ControlRecord) -> None:
        for cut, state in self._durable.committed(record.committed):
            self.shell.durable(cut, state)

    def _export(self, instruction: Export) -> None:
        """The state of this very moment is encoded, written and reported in the background."""
        cut, record, shell = instruction.cut, instruction.record, self.shell
        table = record.tables.get(shell.component_name, ()) if shell.task_id in record.stays else ()
        state, frozen = shell.state, shell.state.freeze()
        owned_now, counts = state.groups, {"bytes": 0, "keys": 0}
        owner = f"{shell.component_name} (task {shell.task_id})"
        self._durable.exported(cut, self._offsets())
        self._now_durable(record)

        def encode() -> tuple[dict[int, bytes], dict[int, bytes]]:
            blobs: dict[int, bytes] = {}
            swap: dict[int, bytes] = {}
            for group in owned_now:
                entries = frozen.group(group)
                if entries:
                    stays = bool(table) and table[group] == shell.task_id
                    blob = (swap if stays else blobs)[group] = snapshot.encode(entries, cut=cut, owner=owner)
                    counts["bytes"] += len(blob)
                    counts["keys"] += len(entries)
                frozen.forget(group)
            return blobs, swap

        def report(why: str, seconds: float) -> Report:
            self.state_bytes = counts["bytes"]
            shell.post(lambda: state.thaw(frozen))
            return self._report(why, seconds=seconds, **counts)

        later = self.leisure_s  # all tasks do it at about the same time, and those downstream still wait for the marker
        if self.protocol.mode is not Mode.RUNNING:
            later = 0.0
            self.link.look()  # or it would learn late of what ends the pause
        self.link.export(cut, record.epoch, encode, owned_now, cut_barrier(cut), report, later)

    def _load(self, instruction: Load) -> None:
        record, shell = instruction.record, self.shell
        self.handovers.cancel()
        groups = self.groups(record.tables)
        kept = [group for group in groups if group in set(shell.state.groups)] if instruction.keep else []

        def done(entries: dict[int, dict], size: int, seconds: float) -> None:
            if self.protocol.record is None or record.epoch != self.protocol.record.epoch:
                return  # outdated by a newer RESTORE, which loads again
            before, shell.state = shell.state.release(kept), KeyedState(self.name, ())
            shell.state.replace(before | entries)
            self.around.collector.freeze()  # plain values without cycles: not to be gone over again and again
            keys = sum(map(len, entries.values()))
            self._imported = self._report(bytes=size, keys=keys, seconds=seconds)
            self._durable.restored(record.cut, self._offsets())
            shell.resumed()
            self.carry_out(self.protocol.loaded(record))

        def failed(why: str, bad_cut: bool) -> None:
            self.link.report(ready_barrier(record.epoch), self._report(why, bad_cut=bad_cut))

        self.link.load(record.cut, [group for group in groups if group not in kept], done, failed)

    def _start(self, instruction: Resumed) -> None:
        self.shell.started()
        if instruction.new:
            self.handovers.cancel()
            self.shell.state = KeyedState(self.name, self.groups(instruction.tables))
            self.shell.resumed()

    def _recover(self, instruction: Recover) -> None:
        self.handovers.cancel()
        log.warning("asking for a reset: %s", instruction.reason)
        self.link.recover(instruction.epoch, instruction.reason, instruction.fresh)

    _actions: Mapping[type, Callable[[Any, Any], None]] = {
        Deliver: lambda self, i: self.shell.deliver(i),
        DeliverPulse: lambda self, i: self.shell.deliver_pulse(i),
        Send: lambda self, i: self.shell.send(i),
        BeforeCheckpoint: lambda self, i: self.shell.before_checkpoint(i.cut),
        Export: _export,
        Load: _load,
        Ready: lambda self, i: self.link.report(ready_barrier(i.epoch), self._imported),
        CopyAhead: lambda self, i: self.handovers.copy_ahead(i),
        HandOver: lambda self, i: self.handovers.hand_over(i),
        HandedOver: lambda self, i: self.handovers.handed_over(i),
        Recover: _recover,
        Resumed: _start,
    }
