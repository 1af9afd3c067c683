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
from leeward.runtime.pacing import Pacing


class Sending:
    """Groups on their way out in one handover, in a thread of its own."""

    def __init__(self, ways: Ways, task: int, owner: str, pacing: Pacing = Pacing()) -> None:
        self.epoch = ways.epoch
        self._ways, self._task, self._owner, self._pacing = ways, task, owner, pacing
        self._jobs: queue.SimpleQueue[Callable[[threading.Event], bool]] = queue.SimpleQueue()
        self._cutters: dict[int, Cutter] = {}

    @property
    def has_room(self) -> bool:
        """Most of the work in the queue is sent."""
        return self._jobs.qsize() < self._pacing.room

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
                if stop.wait(self._pacing.little_s):
                    break
            if not stop.is_set():
                call()
            return False

        self._jobs.put(job)

    def finish(self, parcels: Mapping[int, Mapping[int, Rest]]) -> None:
        """The last of each group: receiving task -> group -> what nobody changes any more."""

        def job(stop: threading.Event) -> bool:
            packer, chunk = msgpack.Packer(strict_types=True, autoreset=False), self._pacing.chunk
            for target, groups in parcels.items():
                for group, (items, gone) in groups.items():
                    entries = iter(items)
                    for left in range(len(items), 0, -chunk):
                        some = list(islice(entries, chunk))
                        if left > chunk:
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
                    done = self._jobs.get(timeout=self._pacing.block_s)(stop)

    def _near(self, target: int) -> int:
        pieces, pacing = self._cutters[target].pieces, self._pacing
        return min(pacing.near_pieces, max(int(pacing.near_share * pieces), min(pacing.few_pieces, pieces - 1)))

    def _add(self, target: int, data: bytes, stop: threading.Event, *, end: bool = False) -> None:
        if target not in self._cutters:
            self._cutters[target] = Cutter(epoch=self.epoch, sender=self._task)
        pieces = list(self._cutters[target].add(data, end=end))
        batch = self._pacing.batch_pieces
        for start in range(0, len(pieces), batch):
            self._ways.push(target, pieces[start : start + batch], stop)
