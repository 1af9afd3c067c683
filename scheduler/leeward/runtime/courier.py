"""Carries key groups from task to task while both go on working: threads that live as long as a handover.

Redis keys, prefix `leeward:<topology id>:`
  handover:<epoch>:<task>   stream: pieces (`leeward.runtime.pieces`) for a receiving task, in the order of sending

A stream and not a list: reading takes nothing away, so a connection that breaks loses no piece. The receiver deletes
what it has taken; an expiry deletes what nobody takes.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import islice

import msgpack
import redis

from leeward.core.errors import FencedError, LeewardError
from leeward.runtime.pieces import PIECE_BYTES, Assembly, Cutter, Rest, pack, taken

log = logging.getLogger(__name__)

_HAND_OVER = files("leeward.runtime").joinpath("lua/hand_over.lua").read_text()
#: After this time nothing of a handover is left in Redis, in seconds.
EXPIRY_S = 900
#: Pieces that wait for one receiver; a sender that knows of so many waits. Several senders may add a batch each.
AHEAD = 128
#: Packed chunks that wait for a sender's thread; a task that copies ahead stops there.
ROOM = 16
#: Entries packed at once; pieces sent and read at once: 4 MB, as each turn waits for a processor first.
_CHUNK, _BATCH = 32, 32
#: Longest time that Redis keeps a reader waiting; between two tries; between two looks at what a receiver has not
#: taken, if it is little (somebody waits for that), and if it is as much as may be. In seconds.
_BLOCK_S, _RETRY_S, _LITTLE_S, _FULL_S = 0.25, 0.1, 0.002, 0.01
_TIMEOUT_S = 5.0

Post = Callable[[Callable[[], None]], None]
Failed = Callable[[str], None]
#: Receiving task, pieces; gives up when the event is set.
Push = Callable[[int, list[bytes], threading.Event], None]


class Sending:
    """Groups on their way out in one handover, in a thread of its own."""

    def __init__(self, epoch: int, push: Push, untaken: Callable[[int], int], task: int, owner: str) -> None:
        """`untaken`: pieces that a receiving task has not taken yet."""
        self.epoch = epoch
        self._push, self._untaken, self._task, self._owner = push, untaken, task, owner
        self._jobs: queue.SimpleQueue[Callable[[threading.Event], bool]] = queue.SimpleQueue()
        self._cutters: dict[int, Cutter] = {}

    @property
    def has_room(self) -> bool:
        """What was given to it is mostly gone."""
        return self._jobs.qsize() < ROOM

    def put(self, parts: Mapping[int, bytes]) -> None:
        """Chunks, packed: receiving task -> bytes."""

        def job(stop: threading.Event) -> bool:
            for target, data in parts.items():
                self._add(target, data, stop)
            return False

        self._jobs.put(job)

    def when_taken(self, call: Callable[[], None]) -> None:
        """Call this, in this thread, once the receivers have taken all that was given to it until now."""

        def job(stop: threading.Event) -> bool:
            for target in self._cutters:
                self._add(target, b"", stop, end=True)  # also what fills no piece
            while any(map(self._untaken, self._cutters)) and not stop.wait(_LITTLE_S):
                pass
            if not stop.is_set():
                call()
            return False

        self._jobs.put(job)

    def finish(self, parcels: Mapping[int, Mapping[int, Rest]]) -> None:
        """The last of each group: receiving task -> group -> what nobody changes any more."""

        def job(stop: threading.Event) -> bool:
            packer = msgpack.Packer(strict_types=True, autoreset=False)
            for target, groups in parcels.items():
                for group, (items, gone) in groups.items():
                    entries = iter(items)
                    for left in range(len(items), 0, -_CHUNK):
                        some = list(islice(entries, _CHUNK))
                        if left > _CHUNK:
                            pack(packer, group, some, (), last=False, owner=self._owner)
                        else:
                            pack(packer, group, some, gone, last=True, owner=self._owner)
                        if len(packer.getbuffer()) >= PIECE_BYTES:
                            self._add(target, taken(packer), stop)
                    if not items:
                        pack(packer, group, (), gone, last=True, owner=self._owner)
                self._add(target, taken(packer), stop, end=True)
            return True

        self._jobs.put(job)

    def run(self, stop: threading.Event) -> None:
        """The thread: until everything is out, or `stop`."""
        done = False
        while not done and not stop.is_set():
            with contextlib.suppress(queue.Empty):
                done = self._jobs.get(timeout=_BLOCK_S)(stop)

    def _add(self, target: int, data: bytes, stop: threading.Event, *, end: bool = False) -> None:
        if target not in self._cutters:
            self._cutters[target] = Cutter(epoch=self.epoch, sender=self._task)
        pieces = list(self._cutters[target].add(data, end=end))
        for start in range(0, len(pieces), _BATCH):
            self._push(target, pieces[start : start + _BATCH], stop)


class Courier:
    """One task's part in handovers; what it calls back is posted to the task's own thread."""

    def __init__(self, url: str, topology_id: str, task: int, owner: str, post: Post) -> None:
        self._url, self._prefix = url, f"leeward:{topology_id}:"
        self._task, self._owner, self._post = task, owner, post
        self._client: redis.Redis | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def warm(self) -> None:
        """Do beforehand what is slow the first time: connect twice (one sends, one reads), send and read a piece."""
        key, packer = self._key(0, self._task), msgpack.Packer(strict_types=True, autoreset=False)
        pack(packer, 0, (), (), last=True, owner=self._owner)
        pieces = Cutter(epoch=0, sender=self._task).add(packer.bytes(), end=True)
        with contextlib.suppress(redis.RedisError):
            client = self._connected()
            pool = client.connection_pool
            for connection in [pool.get_connection(), pool.get_connection()]:
                pool.release(connection)
            self._put(0, key, list(pieces))
            assembly = Assembly(0)
            for _, fields in self._read(key, "0", ()):
                assembly.take(fields[b"p"])
            client.delete(key)

    def _connected(self) -> redis.Redis:
        with self._lock:
            if self._client is None:
                self._client = redis.Redis.from_url(
                    self._url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
                )
            return self._client

    def send(self, epoch: int, sent: Callable[[], None], failed: Failed) -> Sending:
        """Begin to send groups; `sent` when all that was given to it by `finish` is where the receivers find it."""
        stop, waiting = self._stop, Counter()
        sending = Sending(
            epoch,
            lambda target, pieces, stop: self._push(epoch, target, pieces, waiting, stop),
            lambda target: self._patiently(lambda: self._client.xlen(self._key(epoch, target)), stop) or 0,
            self._task,
            self._owner,
        )
        self._start("send", sending.run, sent, failed)
        return sending

    def receive(
        self, epoch: int, groups: Iterable[int], arrived: Callable[[dict[int, dict], int], None], failed: Failed
    ) -> None:
        """Receive these groups; `arrived(group -> entries, bytes)` as they become whole."""
        wanted = set(groups)
        self._start("receive", lambda stop: self._receive(epoch, wanted, arrived, stop), lambda: None, failed)

    def cancel(self) -> None:
        """Stop whatever is under way; nothing more is called back."""
        self._stop.set()
        self._stop = threading.Event()

    # --- threads

    def _start(self, name: str, work: Callable, done: Callable[[], None], failed: Failed) -> None:
        self._connected()
        stop = self._stop

        def post(what: Callable[[], None]) -> None:
            self._post(lambda: None if stop.is_set() else what())

        def run() -> None:
            try:
                work(stop)
            except Exception as failure:
                log.warning("handover, %s: %s", name, failure)
                why = f"{type(failure).__name__}: {failure}"
                post(lambda: failed(why))
            else:
                post(done)

        threading.Thread(target=run, name=f"leeward-{name}", daemon=True).start()

    def _push(
        self, epoch: int, target: int, pieces: list[bytes], waiting: Counter[int], stop: threading.Event
    ) -> None:
        """`waiting`: pieces for each receiving task, as far as is known."""
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

    def _put(self, epoch: int, key: str, pieces: list[bytes]) -> int:
        """Adds all of these pieces, or, fenced off, none; see the script."""
        with self._client.pipeline() as pipe:
            pipe.eval(_HAND_OVER, 2, self._prefix + "fence", key, epoch, EXPIRY_S)
            for piece in pieces:
                pipe.xadd(key, {"p": piece}, nomkstream=True)
            return pipe.execute()[0]

    def _receive(
        self, epoch: int, wanted: set[int], arrived: Callable[[dict[int, dict], int], None], stop: threading.Event
    ) -> None:
        assembly, key = Assembly(epoch), self._key(epoch, self._task)
        names: list[bytes] = []
        last: bytes | str = "0"
        groups: dict[int, dict] = {}
        size = 0
        while wanted and not stop.is_set():
            pieces = self._patiently(lambda after=last, these=names: self._read(key, after, these), stop) or ()
            for _, fields in pieces:
                groups |= assembly.take(fields[b"p"])
                size += len(fields[b"p"])
            names = [name for name, _ in pieces]
            last = names[-1] if names else last
            if foreign := groups.keys() - wanted:
                raise LeewardError(
                    f"handover {epoch} brought group {min(foreign)}, which task {self._task} does not gain.",
                    remedy="This is a fault of Leeward: please report it.",
                )
            if groups:
                wanted -= groups.keys()
                self._deliver(arrived, groups, size, stop)
                groups, size = {}, 0
        self._patiently(lambda: self._client.delete(key), stop)

    def _read(self, key: str, after: bytes | str, taken: Iterable[bytes]) -> list:
        """The next pieces, with their names; those named are deleted."""
        with self._client.pipeline(transaction=False) as pipe:
            if taken:
                pipe.xdel(key, *taken)
            pipe.xread({key: after}, count=_BATCH, block=int(_BLOCK_S * 1000))
            *_, answer = pipe.execute()
        return answer[0][1] if answer else []

    def _deliver(self, arrived: Callable, groups: dict[int, dict], size: int, stop: threading.Event) -> None:
        self._post(lambda: None if stop.is_set() else arrived(groups, size))

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
