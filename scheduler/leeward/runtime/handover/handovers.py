"""A task's part in handovers: lost groups leave its state at the marker, gained groups are added when they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from leeward.core.control import Report, ahead_barrier, handover_barrier
from leeward.core.errors import LeewardError
from leeward.core.instructions import CopyAhead, HandedOver, HandOver, Instruction
from leeward.core.protocol import TaskProtocol
from leeward.runtime.handover.ahead import Ahead
from leeward.runtime.handover.pieces import Rest
from leeward.runtime.pacing import Pacing
from leeward.runtime.ports import ControlLink, Outgoing, Shell, StateTransfer, Surroundings, UserCode
from leeward.runtime.state.keyed import Entries


class Owner(Protocol):
    """The task whose groups are handed over."""

    shell: Shell
    user: UserCode
    protocol: TaskProtocol
    link: ControlLink

    @property
    def leisure_s(self) -> float:
        """Delay of work that nothing waits for."""

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """The protocol's decisions."""


class Handovers:
    """Carries out CopyAhead, HandOver and HandedOver."""

    def __init__(self, task: Owner, courier: StateTransfer, around: Surroundings, pacing: Pacing = Pacing()) -> None:
        self._task, self._courier, self._around, self._pacing = task, courier, around, pacing
        self._began = 0.0
        self._since: float | None = None  # when the first tuple began to wait
        self._waited = 0.0  # until the last group was in
        self._bytes = self._keys = 0  # received
        self.epoch = 0  #: of the handover that is in progress here, from its marker on; 0: none
        self._receiving = 0  # handover whose pieces are read
        self._early: dict[int, Entries] = {}  # groups that were whole before this task had passed the marker
        self._released: Iterable[Entries] = ()  # groups that are on their way out
        self._sending: Outgoing | None = None
        self._ahead: Ahead | None = None
        self._due = 0.0  # of the next step
        self._told = False  # that it was copied ahead

    # --- copy ahead

    @property
    def copying(self) -> bool:
        """`step` is to be called between tuples."""
        return self._ahead is not None

    def copy_ahead(self, instruction: CopyAhead) -> None:
        """Begin to copy, or give it up."""
        self.cancel()
        number, shell = instruction.number, self._task.shell
        if not number:
            return
        if instruction.gained:
            self._receive(number, instruction.gained)
        if instruction.lost:
            owner = f"{shell.component_name} (task {shell.task_id})"
            self._ahead = Ahead(shell.state, instruction.lost, owner, self._pacing)
            self._sending = self._courier.send(number, lambda: self._sent(number), self._failed(number))
            self._sending.reach(sorted(set(instruction.lost.values())))
            self._due, self._told = 0.0, False
            shell.pace(self._pacing.rest_s)
        elif not instruction.gained:  # it has no state: it gives tuples only
            self._report(ahead_barrier(number))

    def step(self) -> None:
        """A little copying, if it is time for it."""
        now = self._around.clock()
        ahead, sending = self._ahead, self._sending
        if ahead is None or sending is None or now < self._due or not sending.has_room:
            return
        try:
            parts = ahead.step(self._pacing.step_s, self._around.clock)
        except LeewardError as failure:
            epoch = sending.epoch
            self.cancel()
            self._report(ahead_barrier(epoch), f"{type(failure).__name__}: {failure}")
            return
        if parts:
            sending.put(parts)
        began = max(self._due, now - self._pacing.rest_s)  # a late start counts as rest
        self._due = began + (self._around.clock() - now) / self._pacing.share
        if ahead.small:
            self._due = max(self._due, now + self._pacing.small_every_s)
            self._task.shell.pace(self._pacing.small_every_s)
        if ahead.near and not self._told:
            self._told = True
            sending.when_nearly_taken(lambda: self._task.shell.post(lambda: self._copied(sending, ahead)))

    def _copied(self, sending: Outgoing, ahead: Ahead) -> None:
        """The rest will be packed by the switch, and few sent pieces wait before the receivers."""
        if sending is self._sending:  # it was not given up meanwhile
            self._report(ahead_barrier(sending.epoch), copied=ahead)

    # --- the switch

    def hand_over(self, instruction: HandOver) -> None:
        """The marker is aligned: groups change hands here."""
        epoch, shell = instruction.record.handover, self._task.shell
        if epoch not in (self._receiving, self._sending.epoch if self._sending else 0):
            self.cancel()
        self.epoch, self._began = epoch, self._around.clock()
        if instruction.lost:
            self._finish(epoch, instruction.lost)
            self._task.user.regrouped((), tuple(sorted(instruction.lost)))
        if instruction.gained and self._receiving != epoch:
            self._receive(epoch, instruction.gained)
        if self._early:
            early, self._early = self._early, {}
            shell.post(lambda: self._arrived(epoch, early, 0))

    def look(self) -> None:
        """A tuple came: notes when the first one begins to wait."""
        if self._since is None and self._task.protocol.waiting:
            self._since = self._around.clock()

    def handed_over(self, instruction: HandedOver) -> None:
        """This task's part is over."""
        soon = instruction.few or self.epoch == instruction.epoch  # else all report, and nobody waits for this one
        after_s, report, link = 0.0 if soon else self._task.leisure_s, self._report_of(), self._task.link
        # after the tuples that waited for it: the thread that reports would take Python's lock from this one
        self._task.shell.post(lambda: link.report(handover_barrier(instruction.epoch), report, after_s))
        self._forget()

    def cancel(self) -> None:
        """A reset undoes it, or it was given up."""
        self._courier.cancel()
        self._task.shell.state.untrack()
        self._forget()

    # --- inside

    def _forget(self) -> None:
        if self._receiving:
            self._around.collector.freeze()  # plain values without cycles: nothing for it to find there
            self._around.collector.enable()
        self.epoch = self._receiving = 0
        self._began, self._since, self._waited, self._bytes, self._keys = 0.0, None, 0.0, 0, 0
        self._early, self._released, self._sending, self._ahead = {}, (), None, None
        self._task.shell.pace(None)

    def _finish(self, epoch: int, lost: Mapping[int, int]) -> None:
        """Send the entries that were not copied, or have changed since; the groups are this task's no more."""
        shell = self._task.shell
        if self._ahead is not None:
            rest: Mapping[int, Rest] = self._ahead.rest()
        else:
            rest = {group: (shell.state.group(group).items(), ()) for group in lost}
        if self._sending is None:
            self._sending = self._courier.send(epoch, lambda: self._sent(epoch), self._failed(epoch))
        self._released = shell.state.release(lost).values()
        parcels: dict[int, dict[int, Rest]] = {}
        for group, target in lost.items():
            parcels.setdefault(target, {})[group] = rest[group]
        self._sending.finish(parcels)
        self._ahead = None
        shell.pace(None)

    def _receive(self, epoch: int, gained: Mapping[int, int]) -> None:
        self._receiving = epoch
        self._around.collector.disable()  # it would go over all that has come, again and again
        self._courier.receive(
            epoch, gained, lambda groups, size: self._arrived(epoch, groups, size), self._failed(epoch)
        )

    def _arrived(self, epoch: int, groups: dict[int, Entries], size: int) -> None:
        self._bytes += size
        if self.epoch != epoch:
            self._early |= groups
            return
        self._keys += sum(map(len, groups.values()))
        if groups:
            task, shell = self._task, self._task.shell
            shell.state.add(groups)
            task.user.regrouped(tuple(sorted(groups)), ())
            released = task.protocol.arrived(epoch, sorted(groups))
            if self._since is not None and task.protocol.open:
                self._waited = self._around.clock() - self._since
            task.carry_out(released)

    def _sent(self, epoch: int) -> None:
        released, self._released = self._released, ()
        self._around.later(self._task.leisure_s, lambda: _free(released, self._pacing))
        self._task.carry_out(self._task.protocol.sent(epoch))

    def _failed(self, epoch: int) -> Callable[[str], None]:
        def failed(why: str) -> None:
            self._report((handover_barrier if self.epoch else ahead_barrier)(epoch), why)

        return failed

    def _report(self, barrier: str, error: str = "", copied: Ahead | None = None) -> None:
        self._task.link.report(barrier, self._report_of(error, copied))

    def _report_of(self, error: str = "", copied: Ahead | None = None) -> Report:
        """With what was received, or with what was copied ahead."""
        now, shell = self._around.clock(), self._task.shell
        return Report(
            task=shell.task_id,
            component=shell.component_name,
            error=error,
            bytes=copied.bytes if copied else self._bytes,
            keys=copied.entries if copied else self._keys,
            seconds=round(now - self._began, 6) if self._began else 0.0,
            waited=round(self._waited, 6),
        )


def _free(released: Iterable[Entries], pacing: Pacing) -> None:
    """Python lets no other thread run while it frees one object, and a group may be large: so entry by entry, with
    rests, as nobody waits for it.
    """
    freed = 0
    for entries in released:
        while entries:
            entries.popitem()
            freed += 1
            if freed % pacing.freed == 0:
                time.sleep(pacing.free_rest_s)
