"""The ports of a task to the world around it. A Storm worker has one set, the simulator (`leeward.sim`) another."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from leeward.core.control import Report
from leeward.core.instructions import Deliver, DeliverPulse, Send
from leeward.runtime.handover.pieces import Rest
from leeward.runtime.state.keyed import Entries, KeyedState

Work = Callable[[], None]


class Shell(Protocol):
    """The component around a task. Everything but `post` is called in the shell's own thread."""

    kind: str  #: "source", "stateful", "stateless"
    task_id: int
    component_name: str
    state: KeyedState  #: the same object from the start of the process to its end

    def post(self, work: Work) -> None:
        """Queue work for the shell's own thread; callable from any thread."""

    def send(self, instruction: Send) -> None:
        """Send a marker to every downstream task."""

    def pace(self, seconds: float | None) -> None:
        """Look for work again after so long without input; None: as usual."""

    def changing(self) -> None:
        """Instructions are about to be carried out: drop everything learned from the protocol before."""

    def changed(self) -> None:
        """They were carried out."""


class UserCode(Protocol):
    """The user's side of a component. Everything is called in the shell's own thread."""

    def deliver(self, instruction: Deliver) -> None:
        """Process a tuple."""

    def deliver_pulse(self, instruction: DeliverPulse) -> None:
        """Process a pulse, and send it on."""

    def started(self) -> None:
        """The task processes tuples from here on."""

    def resumed(self) -> None:
        """The state was replaced."""

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None:
        """Key groups were added to the state, or taken from it."""

    def before_checkpoint(self, cut: int) -> None:
        """The state of this moment is about to become part of a cut."""

    def durable(self, cut: int, state: Entries | None) -> None:
        """No restore goes back behind this cut any more. `state`: a source's own as of that cut."""


class ControlLink(Protocol):
    """A task's requests to ZooKeeper and Redis (`runtime/task/link.py`); no call blocks."""

    def export(
        self, cut: int, epoch: int, encode: Callable[[], tuple[Mapping[int, bytes], Mapping[int, bytes]]],
        owned: Iterable[int], barrier: str, report: Callable[[str, float, float], Report], after_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Encode and write this task's part of a cut, then report at the barrier."""

    def load(
        self, cut: int, groups: Iterable[int], done: Callable[[dict[int, Entries], int, float], None],
        failed: Callable[[str, bool], None],
    ) -> None:  # fmt: skip
        """Read groups of a cut; `done(entries, bytes, seconds)` or `failed(why, bad_cut)` is posted."""

    def report(self, barrier: str, report: Report, after_s: float = 0.0) -> None:
        """Arrive at a barrier."""

    def recover(self, epoch: int, reason: str, fresh: bool) -> None:
        """Ask the coordinator for a reset."""

    def look(self) -> None:
        """Read the control record now."""


class Outgoing(Protocol):
    """Key groups on their way out in one handover (`runtime/handover/sending.py`)."""

    epoch: int

    @property
    def has_room(self) -> bool:
        """Most of what was given to it has been sent."""

    def reach(self, targets: Iterable[int]) -> None:
        """Connect to the receivers."""

    def put(self, parts: Mapping[int, bytes]) -> None:
        """Send chunks: receiving task -> bytes."""

    def when_nearly_taken(self, call: Callable[[], None]) -> None:
        """Call this, in any thread, once the receivers have taken nearly all that was sent until now."""

    def finish(self, parcels: Mapping[int, Mapping[int, Rest]]) -> None:
        """Send the last of each group: receiving task -> group -> what nobody changes any more."""


class StateTransfer(Protocol):
    """Carries key groups from task to task (`runtime/handover/courier.py`); calls back in the task's own thread."""

    def send(self, epoch: int, sent: Callable[[], None], failed: Callable[[str], None]) -> Outgoing:
        """Begin to send groups."""

    def receive(
        self,
        epoch: int,
        groups: Iterable[int],
        arrived: Callable[[dict[int, Entries], int], None],
        failed: Callable[[str], None],
    ) -> None:
        """Receive these groups; `arrived(group -> entries, bytes)` as they become whole."""

    def cancel(self) -> None:
        """Stop copying, sending and receiving; no callback follows."""


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
