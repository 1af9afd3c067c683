"""Carries key groups from task to task while both go on working: threads that live as long as a handover.

Pieces (`handover/pieces.py`) go straight from task to task (`handover/direct.py`); where that cannot be, and for the
rest when a connection breaks, through Redis (`handover/relay.py`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

import msgpack
import redis

from leeward.core.errors import LeewardError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime.handover.direct import Incoming, Listener, Way
from leeward.runtime.handover.pieces import Assembly, Cutter, pack
from leeward.runtime.handover.relay import Relay
from leeward.runtime.handover.sending import Sending
from leeward.runtime.handover.ways import Ways
from leeward.runtime.pacing import Pacing
from leeward.runtime.state.keyed import Entries

log = logging.getLogger(__name__)

Post = Callable[[Callable[[], None]], None]
Failed = Callable[[str], None]
#: Do this after so many seconds, where waiting for Redis keeps no tuple waiting.
Soon = Callable[[Callable[[], None], float], None]
#: group -> entries, bytes
Arrived = Callable[[dict[int, Entries], int], None]


class Receiving:
    """Pieces received of one handover, on any way; any thread may bring them.

    The first may be here before the task knows of the handover, whose record it has yet to read.
    """

    def __init__(self, epoch: int, task: int) -> None:
        self.epoch, self.stop = epoch, threading.Event()
        self._task = task
        self._wanted: set[int] | None = None
        self._arrived: Arrived
        self.failed: Failed
        self._assembly, self._lock = Assembly(epoch), threading.Lock()
        self._whole: dict[int, Entries] = {}  # groups that no record has named yet
        self._size = 0  # of what has come since groups became whole

    def expect(self, groups: Iterable[int], arrived: Arrived, failed: Failed) -> None:
        """The record was read. `arrived` and `failed` are called in the thread that brings pieces, or this one."""
        with self._lock:
            self._wanted, self._arrived, self.failed = set(groups), arrived, failed
            self._tell()

    @property
    def told(self) -> bool:
        """The task knows what is to come."""
        return self._wanted is not None

    @property
    def whole(self) -> bool:
        """The task knows what is to come, and all of it is here."""
        return self.told and not self._wanted

    def take(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Raises LeewardError for what is damaged, missing, or not to come here."""
        with self._lock:
            for piece in pieces:
                self._whole |= self._assembly.take(piece)
                self._size += len(piece)
            self._tell()

    def _tell(self) -> None:
        """Pass on what is whole, if the task knows what is to come."""
        if self._wanted is None:
            return
        if foreign := self._whole.keys() - self._wanted:
            raise LeewardError(
                f"handover {self.epoch} brought group {min(foreign)}, which task {self._task} does not gain.",
                remedy="This is a fault of Leeward: please report it.",
            )
        if self._whole:
            groups, self._whole = self._whole, {}
            size, self._size = self._size, 0
            self._wanted -= groups.keys()
            self._arrived(groups, size)


class Courier:
    """One task's part in handovers; its callbacks are posted to the task's own thread."""

    def __init__(
        self, url: str, topology_id: str, task: int, owner: str, post: Post, host: str = "",
        called: Callable[[], None] = lambda: None, secrets: Secrets = NO_SECRETS, pacing: Pacing = Pacing(),
    ) -> None:  # fmt: skip
        """`host`: where other tasks reach this one, if they may; else all comes through Redis. `called()`: a donor
        has connected, and this task has not read the record of its handover.
        """
        self._relay, self._pacing = Relay(url, topology_id, task, secrets, pacing), pacing
        self._task, self._owner, self._post, self._host, self._called = task, owner, post, host, called
        self.answer: Callable[[], bytes] = bytes  #: to tasks that ask for this one's place in the network
        self._stop = threading.Event()
        self._listener: Listener | None = None
        self._told = False  # Redis has its address
        self._unreachable: set[bytes] = set()  # addresses; a firewall would cost every handover the time of a try
        self._receiving: Receiving | None = None
        self._begun = threading.Condition()  # to receive; guards `_receiving`

    def warm(self, soon: Soon) -> None:
        """Say where this task listens; do beforehand what is slow the first time, as sending and reading a piece.

        While Redis does not take the address, `soon` is given this work again: without it all would come through Redis.
        """
        packer, assembly = msgpack.Packer(strict_types=True, autoreset=False), Assembly(0)
        pack(packer, 0, (), (), last=True, owner=self._owner)
        try:
            self._listen()
            for piece in self._relay.warm(list(Cutter(epoch=0, sender=self._task).add(packer.bytes(), end=True))):
                assembly.take(piece)
        except redis.RedisError as failure:
            if self._listener is not None and not self._told:
                log.info("the address of %s is not in Redis (%s); still trying", self._owner, failure)
                soon(lambda: self.warm(soon), self._pacing.tell_s)

    def _listen(self) -> None:
        """Listen, if other tasks may reach this one, and say where. Raises redis.RedisError."""
        if not self._host or self._told:
            return
        if self._listener is None:
            try:
                self._listener = Listener(self._host, self._welcome, self._pacing, lambda: self.answer())
            except OSError as failure:
                log.warning("%s cannot be reached at %r (%s): through Redis", self._owner, self._host, failure)
                return
        self._relay.tell(self._listener.address)
        self._told = True

    def addresses(self) -> dict[int, bytes]:
        """Where tasks listen, as far as they have said. Raises LeewardError while Redis is away."""
        try:
            return self._relay.addresses()
        except redis.RedisError as failure:
            raise LeewardError(f"addresses of tasks cannot be read: {failure}", remedy="Start Redis.") from failure

    def send(self, epoch: int, sent: Callable[[], None], failed: Failed) -> Sending:
        """Begin to send groups; `sent` when all that was given to it by `finish` is safe from this task's end."""
        ways = Ways(epoch, self._way, self._relay, self._pacing)
        sending = Sending(ways, self._task, self._owner, self._pacing)
        self._start("send", sending.run, sent, failed)
        return sending

    def receive(self, epoch: int, groups: Iterable[int], arrived: Arrived, failed: Failed) -> None:
        """Receive these groups; `arrived(group -> entries, bytes)` as they become whole."""
        stop = self._stop

        def deliver(groups: dict[int, Entries], size: int) -> None:
            self._post(lambda: None if stop.is_set() else arrived(groups, size))

        with self._begun:
            receiving = self._of(epoch)
            try:
                receiving.expect(groups, deliver, failed)
            except LeewardError as failure:
                self._fail(failure, failed, stop)
            self._begun.notify_all()
        self._start("receive", lambda _: self._receive(receiving), lambda: None, failed)

    def _of(self, epoch: int) -> Receiving:
        """The pieces of this handover until now; `_begun` is held."""
        before = self._receiving
        if before is not None and before.epoch == epoch:
            return before
        if before is not None:  # it is over, and may have been given up unheard: nothing reads for it any more
            before.stop.set()
        self._receiving = Receiving(epoch, self._task)
        return self._receiving

    def cancel(self) -> None:
        """Stop receiving and sending; no callback follows."""
        self._stop.set()
        self._stop = threading.Event()
        with self._begun:
            if self._receiving is not None and self._receiving.told:
                self._receiving.stop.set()

    def _way(self, epoch: int, target: int, stop: threading.Event) -> Way | None:
        """Straight to this task; None if it cannot be reached."""
        if not self._host:
            return None
        address = self._relay.address(target, stop)
        if not address or address in self._unreachable:
            return None
        try:
            return Way(address, epoch=epoch, task=self._task, pacing=self._pacing)
        except OSError as failure:
            log.info("handover %d, to task %d: %s; through Redis", epoch, target, failure)
            self._unreachable.add(address)
            return None

    # --- threads

    def _start(
        self, name: str, work: Callable[[threading.Event], None], done: Callable[[], None], failed: Failed
    ) -> None:
        stop = self._stop

        def run() -> None:
            try:
                work(stop)
            except Exception as failure:
                self._fail(failure, failed, stop)
            else:
                self._post(lambda: None if stop.is_set() else done())

        threading.Thread(target=run, name=f"leeward-{name}", daemon=True).start()

    def _fail(self, failure: Exception, failed: Failed, stop: threading.Event) -> None:
        log.warning("handover: %s", failure)
        why = f"{type(failure).__name__}: {failure}"
        self._post(lambda: None if stop.is_set() else failed(why))

    def _receive(self, receiving: Receiving) -> None:
        """Receive through Redis, until all is here, on any way."""
        epoch, stop = receiving.epoch, receiving.stop
        pieces = self._relay.read(epoch, stop)
        while not receiving.whole and (some := next(pieces, None)) is not None:
            receiving.take(some)
        self._relay.drop(epoch, stop)

    def _welcome(self, incoming: Incoming) -> None:
        """Receive straight from one sender; a thread of its own."""
        with self._begun:
            if self._receiving is not None and self._receiving.epoch > incoming.epoch:
                return
            receiving = self._of(incoming.epoch)
        if not receiving.told:
            self._called()
        try:
            taken = 0
            while receiving.told or taken < self._pacing.untold_pieces or self._told_in_time(receiving):
                if (piece := incoming.next(receiving.stop)) is None:
                    break
                receiving.take([piece])
                incoming.taken()
                taken += 1
        except LeewardError as failure:
            if self._told_in_time(receiving):
                self._fail(failure, receiving.failed, receiving.stop)

    def _told_in_time(self, receiving: Receiving) -> bool:
        with self._begun:
            return self._begun.wait_for(lambda: receiving.told, self._pacing.early_s)
