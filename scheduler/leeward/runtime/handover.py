"""A task's part in handovers: what goes leaves its state at the marker, what comes is added as it comes."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from leeward.core.control import Report, ahead_barrier, handover_barrier
from leeward.core.errors import LeewardError
from leeward.core.instructions import CopyAhead, HandedOver, HandOver
from leeward.runtime.ahead import Ahead
from leeward.runtime.courier import Courier, Sending
from leeward.runtime.pieces import Rest

#: Copying ahead takes the task's own thread for so long at a time, and at most this share of its time. With a half,
#: 10 and 100 MB took up to five times what their bytes need, and no tuple was faster.
STEP_S, SHARE = 0.001, 0.75
_REST_S = STEP_S * (1 / SHARE - 1)
#: Once little is left over, what changes is sent after it this often, in seconds.
_SMALL_EVERY_S = 0.02
#: Entries of groups given away that are freed in a row, about half a millisecond's work, and the rest after it.
_FREED_AT_ONCE, _FREE_REST_S = 1000, 0.001


class Handovers:
    """Carries out CopyAhead, HandOver and HandedOver. `shell` is the component (`leeward.runtime.elastic`)."""

    def __init__(self, shell: Any, courier: Courier) -> None:
        self._shell, self._courier = shell, courier
        self._began = 0.0
        self._since: float | None = None  # when the first tuple began to wait
        self._waited = 0.0  # until the last group was in
        self._bytes = self._keys = 0  # received
        self.epoch = 0  #: of the handover that is in progress here, from its marker on; 0: none
        self._receiving = 0  # handover whose pieces are read
        self._early: dict[int, dict] = {}  # groups that were whole before this task had passed the marker
        self._released: Iterable[dict] = ()  # groups that are on their way out
        self._sending: Sending | None = None
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
        number, shell = instruction.number, self._shell
        if not number:
            return
        if instruction.gained:
            self._receive(number, instruction.gained)
        if instruction.lost:
            owner = f"{shell.component_name} (task {shell.task_id})"
            self._ahead = Ahead(shell.state, instruction.lost, owner)
            self._sending = self._courier.send(number, lambda: self._sent(number), self._failed(number))
            self._sending.reach(sorted(set(instruction.lost.values())))
            self._due, self._told = 0.0, False
            shell.serializer.timer_s = _REST_S
        elif not instruction.gained:  # it has no state: it gives tuples only
            self._report(ahead_barrier(number))

    def step(self) -> None:
        """A little copying, if it is time for it."""
        now = time.perf_counter()
        ahead, sending = self._ahead, self._sending
        if ahead is None or sending is None or now < self._due or not sending.has_room:
            return
        try:
            parts = ahead.step(STEP_S, time.perf_counter)
        except LeewardError as failure:
            epoch = sending.epoch
            self.cancel()
            self._report(ahead_barrier(epoch), f"{type(failure).__name__}: {failure}")
            return
        if parts:
            sending.put(parts)
        began = max(self._due, now - _REST_S)  # what it came too late for, it has rested already
        self._due = began + (time.perf_counter() - now) / SHARE
        shell = self._shell
        if ahead.small:
            self._due = max(self._due, now + _SMALL_EVERY_S)
            shell.serializer.timer_s = _SMALL_EVERY_S
        if ahead.near and not self._told:
            self._told = True
            sending.when_nearly_taken(lambda: shell._post(lambda: self._copied(sending, ahead)))

    def _copied(self, sending: Sending, ahead: Ahead) -> None:
        """What is left will be gone by the switch, and little of what was sent is waiting before the receivers."""
        if sending is self._sending:  # it was not given up meanwhile
            self._report(ahead_barrier(sending.epoch), bytes=ahead.bytes, keys=ahead.entries)

    # --- the switch

    def hand_over(self, instruction: HandOver) -> None:
        """The marker is aligned: groups change hands here."""
        epoch, shell = instruction.record.handover, self._shell
        if epoch not in (self._receiving, self._sending.epoch if self._sending else 0):
            self.cancel()
        self.epoch, self._began = epoch, time.perf_counter()
        if instruction.lost:
            self._finish(epoch, instruction.lost)
            shell.regrouped((), tuple(sorted(instruction.lost)))
        if instruction.gained and self._receiving != epoch:
            self._receive(epoch, instruction.gained)
        if self._early:
            early, self._early = self._early, {}
            shell._post(lambda: self._arrived(epoch, early, 0))

    def look(self) -> None:
        """A tuple came: notes when the first one begins to wait."""
        if self._since is None and self._shell._protocol.waiting:
            self._since = time.perf_counter()

    def handed_over(self, instruction: HandedOver) -> None:
        """This task's part is over."""
        soon = instruction.few or self.epoch == instruction.epoch  # else all report, and nobody waits for this one
        after_s, report, link = 0.0 if soon else self._shell.leisure_s, self._report_of(), self._shell._link
        # after the tuples that waited for it: the thread that reports would take Python's lock from this one
        self._shell._post(lambda: link.report(handover_barrier(instruction.epoch), report, after_s))
        self._forget()

    def cancel(self) -> None:
        """A reset undoes it, or it was given up."""
        self._courier.cancel()
        self._shell.state.untrack()
        self._forget()

    # --- inside

    def _forget(self) -> None:
        if self._receiving:
            gc.freeze()  # plain values without cycles: nothing for it to find there
            gc.enable()
        self.epoch = self._receiving = 0
        self._began, self._since, self._waited, self._bytes, self._keys = 0.0, None, 0.0, 0, 0
        self._early, self._released, self._sending, self._ahead = {}, (), None, None
        self._shell.serializer.timer_s = self._shell.serializer.TIMER_S

    def _finish(self, epoch: int, lost: Mapping[int, int]) -> None:
        """What was not copied, or has changed since, follows now; the groups are this task's no more."""
        shell = self._shell
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
        shell.serializer.timer_s = shell.serializer.TIMER_S

    def _receive(self, epoch: int, gained: Mapping[int, int]) -> None:
        self._receiving = epoch
        gc.disable()  # it would go over all that has come, again and again
        self._courier.receive(
            epoch, gained, lambda groups, size: self._arrived(epoch, groups, size), self._failed(epoch)
        )

    def _arrived(self, epoch: int, groups: dict[int, dict], size: int) -> None:
        self._bytes += size
        if self.epoch != epoch:
            self._early |= groups
            return
        self._keys += sum(map(len, groups.values()))
        if groups:
            shell = self._shell
            shell.state.add(groups)
            shell.regrouped(tuple(sorted(groups)), ())
            released = shell._protocol.arrived(epoch, sorted(groups))
            if self._since is not None and shell._protocol.open:
                self._waited = time.perf_counter() - self._since
            shell._carry_out(released)

    def _sent(self, epoch: int) -> None:
        freeing = threading.Timer(self._shell.leisure_s, _free, (self._released,))
        freeing.daemon, self._released = True, ()
        freeing.start()
        self._shell._carry_out(self._shell._protocol.sent(epoch))

    def _failed(self, epoch: int) -> Callable[[str], None]:
        def failed(why: str) -> None:
            self._report((handover_barrier if self.epoch else ahead_barrier)(epoch), why)

        return failed

    def _report(self, barrier: str, error: str = "", **counts: int) -> None:
        self._shell._link.report(barrier, self._report_of(error, **counts))

    def _report_of(self, error: str = "", **counts: int) -> Report:
        now, shell = time.perf_counter(), self._shell
        return Report(
            task=shell.task_id,
            component=shell.component_name,
            error=error,
            **({"bytes": self._bytes, "keys": self._keys} | counts),
            seconds=round(now - self._began, 6) if self._began else 0.0,
            waited=round(self._waited, 6),
        )


def _free(released: Iterable[dict]) -> None:
    """Python lets no other thread run while it frees one object, and a group may be large: so entry by entry, with
    rests, as nobody waits for it.
    """
    freed = 0
    for entries in released:
        while entries:
            entries.popitem()
            freed += 1
            if freed % _FREED_AT_ONCE == 0:
                time.sleep(_FREE_REST_S)
