"""Carries out what the protocol of a task decides: exports, loads, handovers, reports. Knows no Storm.

Around it are ports (`runtime/ports.py`): a component in a Storm worker has one set of them, a process of the simulator
another. The link and the courier make the calls that may block; their results are posted to the shell's own thread.
"""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

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
from leeward.runtime.handover.handovers import Handovers
from leeward.runtime.pacing import Pacing
from leeward.runtime.ports import ControlLink, Shell, StateTransfer, Surroundings, UserCode
from leeward.runtime.state import snapshot
from leeward.runtime.state.durable import Durable
from leeward.runtime.state.fencing import FencingToken
from leeward.runtime.state.keyed import Entries

#: From instructions to the same in the order in which they are carried out.
InTurn = Callable[[Iterable[Instruction]], Iterable[Instruction]]

log = logging.getLogger(__name__)


class Task:
    """One task of a topology; see the module. `link` is set by its owner before anything is carried out."""

    link: ControlLink

    def __init__(
        self, shell: Shell, user: UserCode, protocol: TaskProtocol, courier: StateTransfer,
        *, around: Surroundings | None = None, pacing: Pacing = Pacing(), in_turn: InTurn = iter,
    ) -> None:  # fmt: skip
        """`in_turn`: of a bolt whose waiting tuples have an order of their own; it moves no other instruction."""
        self.shell, self.user, self.protocol = shell, user, protocol
        self.around, self.pacing, self._in_turn = around or Surroundings(), pacing, in_turn
        self.handovers = Handovers(self, courier, self.around, pacing)
        self.state_bytes = 0  #: as of the last export
        self._durable = Durable()
        self._left: deque[Instruction] = deque()  # behind one in which the user's code raised an exception
        self._imported = self._report()  # with the newest RESTORE

    # --- its kind

    @property
    def name(self) -> str:
        """For messages."""
        return f"task {self.shell.task_id} of {self.shell.component_name}"

    @property
    def leisure_s(self) -> float:
        """Delay of work that nothing waits for, such as a part of a checkpoint: the markers of a handover or of a
        checkpoint should have passed, and the tasks of a node should not all work at the same moment.
        """
        return self.pacing.leisure_s + self.turn_s

    @property
    def turn_s(self) -> float:
        """Spreads tasks over time."""
        return self.pacing.turn_s * (self.shell.task_id % self.pacing.turns)

    @property
    def hurries(self) -> bool:
        """It reads a new record at once: as a source, or while it is stopped. Markers bring it to all others."""
        return self.shell.kind == "source" or self.protocol.mode is not Mode.RUNNING

    @property
    def fencing_token(self) -> FencingToken:
        """For a sink: its fencing token."""
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
        """In order. After an exception of the user's code the next call begins behind what raised it."""
        left, self._left = self._left, deque()
        todo, doing = iter(chain(left, self._in_turn(instructions))), None
        try:
            self.shell.changing()
            for doing in todo:
                self._actions[type(doing)](self, doing)
        except Exception as failure:
            self._left.extend(self._behind(doing, todo, failure))
            raise
        self.shell.changed()

    @property
    def interrupted(self) -> bool:
        """An exception has left instructions. They come before any further input: `carry_out(())`."""
        return bool(self._left)

    def misrouted(self, why: str) -> None:
        """A tuple came to a task that does not own its key group. The rest is dropped: no cut may lack the tuple."""
        self._left.clear()
        self.carry_out(self.protocol.misrouted(why))

    # --- deeds

    def _behind(
        self, failed: Instruction | None, rest: Iterable[Instruction], failure: Exception
    ) -> Iterable[Instruction]:
        """The instructions to go on with. A cut that the user's code could not prepare is reported as failed."""
        if not isinstance(failed, BeforeCheckpoint | Export):
            return rest
        cut = failed.cut
        self.link.report(cut_barrier(cut), self._report(f"{type(failure).__name__}: {failure}"))
        return [one for one in rest if not (isinstance(one, Export) and one.cut == cut)]

    def _report(self, error: str = "", **counts: Any) -> Report:
        return Report(task=self.shell.task_id, component=self.shell.component_name, error=error, **counts)

    def _offsets(self) -> Entries | None:
        """A copy of the state of a source that works."""
        state = self.shell.state
        return copy.deepcopy(dict(state)) if self.shell.kind == "source" and state.groups else None

    def _now_durable(self, record: ControlRecord) -> None:
        for cut, state in self._durable.committed(record.committed):
            self.user.durable(cut, state)

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

        def report(why: str, seconds: float, period_s: float) -> Report:
            self.state_bytes = counts["bytes"]
            shell.post(lambda: state.thaw(frozen))
            return self._report(why, seconds=seconds, period_s=period_s, **counts)

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

        def done(entries: dict[int, Entries], size: int, seconds: float) -> None:
            if self.protocol.record is None or record.epoch != self.protocol.record.epoch:
                return  # outdated by a newer RESTORE, which loads again
            shell.state.begin(self.name, shell.state.release(kept) | entries)
            self.around.collector.freeze()  # plain values without cycles: not to be gone over again and again
            keys = sum(map(len, entries.values()))
            self._imported = self._report(bytes=size, keys=keys, seconds=seconds)
            self._durable.restored(record.cut, self._offsets())
            self.user.resumed()
            self.carry_out(self.protocol.loaded(record))

        def failed(why: str, bad_cut: bool) -> None:
            self.link.report(ready_barrier(record.epoch), self._report(why, bad_cut=bad_cut))

        self.link.load(record.cut, [group for group in groups if group not in kept], done, failed)

    def _start(self, instruction: Resumed) -> None:
        self.user.started()
        if instruction.new:
            self.handovers.cancel()
            self.shell.state.begin(self.name, {group: {} for group in self.groups(instruction.tables)})
            self.user.resumed()

    def _recover(self, instruction: Recover) -> None:
        self.handovers.cancel()
        log.warning("asking for a reset: %s", instruction.reason)
        self.link.recover(instruction.epoch, instruction.reason, instruction.fresh)

    _actions: Mapping[type, Callable[[Any, Any], None]] = {
        Deliver: lambda self, i: self.user.deliver(i),
        DeliverPulse: lambda self, i: self.user.deliver_pulse(i),
        Send: lambda self, i: self.shell.send(i),
        BeforeCheckpoint: lambda self, i: self.user.before_checkpoint(i.cut),
        Export: _export,
        Load: _load,
        Ready: lambda self, i: self.link.report(ready_barrier(i.epoch), self._imported),
        CopyAhead: lambda self, i: self.handovers.copy_ahead(i),
        HandOver: lambda self, i: self.handovers.hand_over(i),
        HandedOver: lambda self, i: self.handovers.handed_over(i),
        Recover: _recover,
        Resumed: _start,
    }
