"""Key groups on their way out of a task: packed, cut into pieces and sent, in a thread of their own."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import msgpack

from leeward.runtime.handover.pieces import PIECE_BYTES, Cutter, Rest, pack, taken
from leeward.runtime.handover.ways import Ways

#: Packed chunks that wait for a sender's thread; a task that copies ahead stops there.
ROOM = 16
#: When the switch is asked for a receiver may have a few pieces still to take, if it has begun, or this share of all,
#: but not more than so many: it does so while that is written down.
FEW, NEAR_SHARE, NEAR = 8, 0.2, 16
#: Entries packed at once; pieces sent at once: 4 MB, as each turn waits for a processor first.
_CHUNK, _BATCH = 32, 32
#: Between two looks whether there is something to do; at what a receiver has not taken, as somebody waits for that. In
#: seconds.
_BLOCK_S, _LITTLE_S = 0.25, 0.001


class Sending:
    """Groups on their way out in one handover, in a thread of its own."""

    def __init__(self, ways: Ways, task: int, owner: str) -> None:
        self.epoch = ways.epoch
        self._ways, self._task, self._owner = ways, task, owner
        self._jobs: queue.SimpleQueue[Callable[[threading.Event], bool]] = queue.SimpleQueue()
        self._cutters: dict[int, Cutter] = {}

    @property
    def has_room(self) -> bool:
        """Most of the parts put here are sent."""
        return self._jobs.qsize() < ROOM

    def reach(self, targets: Iterable[int]) -> None:
        """Connect early; the connection prompts the receiver to read the record."""

        def job(stop: threading.Event) -> bool:
            for target in targets:
                self._ways.push(target, [], stop)
            return False

        self._jobs.put(job)

    def put(self, parts: Mapping[int, bytes]) -> None:
        """Chunks, packed: receiving task -> bytes."""

        def job(stop: threading.Event) -> bool:
            for target, data in parts.items():
                self._add(target, data, stop)
            return False

        self._jobs.put(job)

    def when_nearly_taken(self, call: Callable[[], None]) -> None:
        """Call this, in this thread, once the receivers have taken nearly all that was given to it until now."""

        def job(stop: threading.Event) -> bool:
            for target in self._cutters:
                self._add(target, b"", stop, end=True)  # also what fills no piece
            while any(self._ways.untaken(target, stop) > self._near(target) for target in self._cutters):
                if stop.wait(_LITTLE_S):
                    break
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
            self._ways.settle(stop)
            return True

        self._jobs.put(job)

    def run(self, stop: threading.Event) -> None:
        """The thread: until everything is out, or `stop`."""
        done = False
        with contextlib.closing(self._ways):
            while not done and not stop.is_set():
                with contextlib.suppress(queue.Empty):
                    done = self._jobs.get(timeout=_BLOCK_S)(stop)

    def _near(self, target: int) -> int:
        pieces = self._cutters[target].pieces
        return min(NEAR, max(int(NEAR_SHARE * pieces), min(FEW, pieces - 1)))

    def _add(self, target: int, data: bytes, stop: threading.Event, *, end: bool = False) -> None:
        if target not in self._cutters:
            self._cutters[target] = Cutter(epoch=self.epoch, sender=self._task)
        pieces = list(self._cutters[target].add(data, end=end))
        for start in range(0, len(pieces), _BATCH):
            self._ways.push(target, pieces[start : start + _BATCH], stop)
