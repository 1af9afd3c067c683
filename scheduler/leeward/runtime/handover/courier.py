"""Carries key groups from task to task while both go on working: threads that live as long as a handover.

Pieces (`handover/pieces.py`) go straight from task to task (`handover/direct.py`); where that cannot be, and
for the rest when a connection breaks, through Redis. Its keys, prefix `leeward:<topology id>:`
  handover:<epoch>:<task>   stream: pieces for a receiving task, in the order of sending
  at                        hash: task -> where it listens, for `Way`

A stream and not a list: reading takes nothing away, so a connection that breaks loses no piece. The receiver deletes
what it has taken; an expiry deletes what nobody takes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files

import msgpack
import redis

from leeward.core.errors import FencedError, LeewardError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime.handover.direct import Incoming, Listener, Way
from leeward.runtime.handover.pieces import Assembly, Cutter, pack
from leeward.runtime.handover.sending import Sending

log = logging.getLogger(__name__)

_HAND_OVER = files("leeward.runtime").joinpath("lua/hand_over.lua").read_text()
#: After this time nothing of a handover is left in Redis, in seconds.
EXPIRY_S = 900
#: Pieces that wait in Redis for one receiver; a sender that knows of so many waits. Several may add a batch each.
AHEAD = 128
#: Pieces read at once: 4 MB, as each turn waits for a processor first.
_BATCH = 32
#: Longest time that Redis keeps a reader waiting; between two tries; between two looks at what a receiver has not
#: taken, if it is as much as may be; how long a connection may wait for its handover to begin here. In seconds.
_BLOCK_S, _RETRY_S, _FULL_S, _EARLY_S = 0.25, 0.1, 0.01, 60.0
#: Pieces that are taken from a sender before this task knows of the handover: 8 MB, which may be for nothing.
_UNTOLD = 64
_TIMEOUT_S = 5.0

Post = Callable[[Callable[[], None]], None]
Failed = Callable[[str], None]
#: group -> entries, bytes
Arrived = Callable[[dict[int, dict], int], None]


class Receiving:
    """What has come of one handover, by whatever way; any thread may bring pieces.

    The first may be here before the task knows of the handover, whose record it has yet to read.
    """

    def __init__(self, epoch: int, task: int) -> None:
        self.epoch, self.stop = epoch, threading.Event()
        self._task = task
        self._wanted: set[int] | None = None
        self._assembly, self._lock = Assembly(epoch), threading.Lock()
        self._whole: dict[int, dict] = {}  # groups that were not told of
        self._size = 0  # of what has come since groups became whole

    def expect(self, groups: Iterable[int], arrived: Arrived, failed: Failed) -> None:
        """The task is told. `arrived` and `failed` are called in whatever thread brings pieces, or this one."""
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
            if self.told:
                self._tell()

    def _tell(self) -> None:
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


class Ways:
    """How the pieces of one handover go: straight to who can be reached, else through Redis. One thread's."""

    def __init__(self, courier: Courier, epoch: int) -> None:
        self.epoch = epoch
        self._courier = courier
        self._ways: dict[int, Way | None] = {}  # None: through Redis
        self._waiting: Counter[int] = Counter()  # in Redis, for each receiver, as far as is known

    def push(self, target: int, pieces: list[bytes], stop: threading.Event) -> None:
        """Take these to a task, behind those before. Raises FencedError."""
        if target not in self._ways:
            self._ways[target] = self._courier.way(self.epoch, target, stop)
        if way := self._ways[target]:
            with self._else_through_redis(target, way, stop):
                way.push(pieces, stop)
        else:
            self._courier.put(self.epoch, target, pieces, self._waiting, stop)

    def untaken(self, target: int, stop: threading.Event) -> int:
        """Pieces that this task has not taken yet."""
        if way := self._ways.get(target):
            with self._else_through_redis(target, way, stop):
                way.hear()
                return len(way.untaken)
        return self._courier.waiting(self.epoch, target, stop)

    def settle(self, stop: threading.Event) -> None:
        """Until nothing is on its way that would be lost with this process; Redis keeps what it has."""
        for target in self._ways:
            while (way := self._ways[target]) and way.untaken and not stop.is_set():
                with self._else_through_redis(target, way, stop):
                    way.hear(_BLOCK_S)

    def close(self) -> None:
        """Nothing more is sent."""
        for way in filter(None, self._ways.values()):
            way.close()

    @contextlib.contextmanager
    def _else_through_redis(self, target: int, way: Way, stop: threading.Event) -> Iterator[None]:
        """If the connection breaks, what it has not brought goes through Redis, and so does all that follows."""
        try:
            yield
        except OSError as failure:
            log.info("handover %d, to task %d: %s; through Redis", self.epoch, target, failure)
            way.close()
            self._ways[target] = None
            self._courier.put(self.epoch, target, list(way.untaken), self._waiting, stop)


class Courier:
    """One task's part in handovers; what it calls back is posted to the task's own thread."""

    def __init__(
        self, url: str, topology_id: str, task: int, owner: str, post: Post, host: str = "",
        called: Callable[[], None] = lambda: None, secrets: Secrets = NO_SECRETS,
    ) -> None:  # fmt: skip
        """`host`: where other tasks reach this one, if they may; else all comes through Redis. `called()`: somebody has
        something for this task that it was not told of.
        """
        self._url, self._login, self._prefix = url, secrets.redis_login(), f"leeward:{topology_id}:"
        self._task, self._owner, self._post, self._host, self._called = task, owner, post, host, called
        self._client: redis.Redis | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._listener: Listener | None = None
        self._unreachable: set[bytes] = set()  # addresses; a firewall would cost every handover the time of a try
        self._receiving: Receiving | None = None
        self._begun = threading.Condition()  # to receive; guards `_receiving`

    def warm(self) -> None:
        """Say where this task listens; do beforehand what is slow the first time: connect twice (one sends, one reads),
        send and read a piece.
        """
        key, packer = self._key(0, self._task), msgpack.Packer(strict_types=True, autoreset=False)
        pack(packer, 0, (), (), last=True, owner=self._owner)
        pieces = Cutter(epoch=0, sender=self._task).add(packer.bytes(), end=True)
        with contextlib.suppress(redis.RedisError):
            client = self._connected()
            pool = client.connection_pool
            for connection in [pool.get_connection(), pool.get_connection()]:
                pool.release(connection)
            self._listen()
            self._put(0, key, list(pieces))
            assembly = Assembly(0)
            for _, fields in self._read(key, "0", ()):
                assembly.take(fields[b"p"])
            client.delete(key)

    def _listen(self) -> None:
        if self._host and self._listener is None:
            try:
                self._listener = Listener(self._host, self._welcome)
            except OSError as failure:
                log.warning("%s cannot be reached at %r (%s): through Redis", self._owner, self._host, failure)
                return
            self._client.hset(self._prefix + "at", str(self._task), self._listener.address)

    def _connected(self) -> redis.Redis:
        with self._lock:
            if self._client is None:
                self._client = redis.Redis.from_url(
                    self._url, **self._login, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
                )
            return self._client

    def send(self, epoch: int, sent: Callable[[], None], failed: Failed) -> Sending:
        """Begin to send groups; `sent` when all that was given to it by `finish` is safe from this task's end."""
        sending = Sending(Ways(self, epoch), self._task, self._owner)
        self._start("send", sending.run, sent, failed)
        return sending

    def receive(self, epoch: int, groups: Iterable[int], arrived: Arrived, failed: Failed) -> None:
        """Receive these groups; `arrived(group -> entries, bytes)` as they become whole."""
        stop = self._stop

        def deliver(groups: dict[int, dict], size: int) -> None:
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
        """What has come of this handover until now; `_begun` is held."""
        if self._receiving is None or self._receiving.epoch != epoch:
            self._receiving = Receiving(epoch, self._task)
        return self._receiving

    def cancel(self) -> None:
        """Stop whatever is under way; nothing more is called back."""
        self._stop.set()
        self._stop = threading.Event()
        with self._begun:
            if self._receiving is not None and self._receiving.told:
                self._receiving.stop.set()

    # --- for `Ways`

    def way(self, epoch: int, target: int, stop: threading.Event) -> Way | None:
        """Straight to this task; None if it cannot be reached."""
        if not self._host:
            return None
        address = self._patiently(lambda: self._client.hget(self._prefix + "at", str(target)), stop)
        if not address or address in self._unreachable:
            return None
        try:
            return Way(address, epoch=epoch, task=self._task)
        except OSError as failure:
            log.info("handover %d, to task %d: %s; through Redis", epoch, target, failure)
            self._unreachable.add(address)
            return None

    def put(
        self, epoch: int, target: int, pieces: list[bytes], waiting: Counter[int], stop: threading.Event
    ) -> None:
        """Through Redis. `waiting`: pieces for each receiving task, as far as is known. Raises FencedError."""
        key = self._key(epoch, target)
        while pieces and not stop.is_set():
            some = pieces[: max(0, AHEAD - waiting[target])]
            before = self._patiently(lambda these=some: self._put(epoch, key, these), stop)
            if before is None:
                return
            if before < 0:
                raise FencedError(
                    f"task {self._task} may not hand over in epoch {epoch}: epoch {-before} is in force.",
                    remedy="Nothing is to be done: a reset has undone this handover.",
                )
            waiting[target], pieces = before + len(some), pieces[len(some) :]
            if pieces and waiting[target] >= AHEAD:
                stop.wait(_FULL_S)

    def waiting(self, epoch: int, target: int, stop: threading.Event) -> int:
        """Pieces for this task in Redis."""
        return self._patiently(lambda: self._client.xlen(self._key(epoch, target)), stop) or 0

    # --- threads

    def _start(self, name: str, work: Callable, done: Callable[[], None], failed: Failed) -> None:
        self._connected()
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

    def _put(self, epoch: int, key: str, pieces: list[bytes]) -> int:
        """Adds all of these pieces, or, fenced off, none; see the script."""
        with self._client.pipeline() as pipe:
            pipe.eval(_HAND_OVER, 2, self._prefix + "fence", key, epoch, EXPIRY_S)
            for piece in pieces:
                pipe.xadd(key, {"p": piece}, nomkstream=True)
            return pipe.execute()[0]

    def _receive(self, receiving: Receiving) -> None:
        """What comes through Redis, until all is here by whatever way."""
        key, stop = self._key(receiving.epoch, self._task), receiving.stop
        names: list[bytes] = []
        last: bytes | str = "0"
        while not receiving.whole and not stop.is_set():
            pieces = self._patiently(lambda after=last, these=names: self._read(key, after, these), stop) or ()
            receiving.take([fields[b"p"] for _, fields in pieces])
            names = [name for name, _ in pieces]
            last = names[-1] if names else last
        self._patiently(lambda: self._client.delete(key), stop)

    def _welcome(self, incoming: Incoming) -> None:
        """What comes straight from one sender; its own thread."""
        with self._begun:
            if self._receiving is not None and self._receiving.epoch > incoming.epoch:
                return
            receiving = self._of(incoming.epoch)
        if not receiving.told:
            self._called()
        try:
            taken = 0
            while receiving.told or taken < _UNTOLD or self._told_in_time(receiving):
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
            return self._begun.wait_for(lambda: receiving.told, _EARLY_S)

    def _read(self, key: str, after: bytes | str, taken: Iterable[bytes]) -> list:
        """The next pieces, with their names; those named are deleted."""
        with self._client.pipeline(transaction=False) as pipe:
            if taken:
                pipe.xdel(key, *taken)
            pipe.xread({key: after}, count=_BATCH, block=int(_BLOCK_S * 1000))
            *_, answer = pipe.execute()
        return answer[0][1] if answer else []

    def _patiently(self, ask: Callable, stop: threading.Event) -> object:
        """What Redis answers; it is asked until it does, or until `stop`: the coordinator's deadline ends that."""
        while not stop.is_set():
            try:
                return ask()
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as failure:
                log.info("handover: Redis does not take part (%s); still trying", failure)
                stop.wait(_RETRY_S)
        return None

    def _key(self, epoch: int, task: int) -> str:
        return f"{self._prefix}handover:{epoch}:{task}"
