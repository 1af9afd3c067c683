"""`runtime.handover.Courier` in memory: pieces of key groups from process to process, one job at a time.

Pieces are small here, so that a group comes in several; the pair decides which of them come twice or damaged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgpack

from leeward.core.errors import LeewardError
from leeward.runtime.handover.pieces import Assembly, Cutter, Rest, pack
from leeward.sim.parts import AProcess

Work = Callable[[], None]
Job = Callable[[], bool]  # False: there was nothing to do yet


class Carrier:
    """One process's courier. A cancelled handover calls nothing back."""

    def __init__(self, process: AProcess) -> None:
        self.process = process
        self._jobs: deque[Job] = deque()
        self._generation = 0

    def work(self) -> bool:
        """One job; False if none has anything to do."""
        return any(self._jobs.popleft()() for _ in range(len(self._jobs)))

    def later(self, job: Job) -> None:
        """Queue a job; `cancel` drops it."""
        self._jobs.append(job)

    def call(self, work: Work) -> None:
        """Let the task's own thread do this, unless all is cancelled before."""
        generation = self._generation
        self.process.post(lambda: work() if generation == self._generation else None)

    # --- runtime.handover.Courier

    def send(self, epoch: int, sent: Work, failed: Callable[[str], None]) -> Outgoing:
        return Outgoing(self, epoch, sent)

    def receive(
        self,
        epoch: int,
        groups: Iterable[int],
        arrived: Callable[[dict[int, Any], int], None],
        failed: Callable[[str], None],
    ) -> None:
        wanted, assembly = set(groups), Assembly(epoch)
        mail = self.process.pair.mail.setdefault((epoch, self.process.task_id), [])
        position = 0

        def job() -> bool:
            nonlocal position
            before = position
            while position < len(mail):
                piece, position = mail[position], position + 1
                try:
                    whole = assembly.take(piece)
                except LeewardError as error:
                    self.call(partial(failed, f"{type(error).__name__}: {error}"))
                    return True
                if whole:
                    wanted.difference_update(whole)
                    self.call(partial(arrived, whole, len(piece)))
                    break
            if wanted:
                self.later(job)
            return position > before

        self.later(job)

    def cancel(self) -> None:
        self._generation += 1
        self._jobs.clear()


class Outgoing:
    """`runtime.handover.Outgoing` in memory."""

    has_room = True

    def __init__(self, carrier: Carrier, epoch: int, sent: Work) -> None:
        self.epoch, self._carrier, self._sent, self._process = epoch, carrier, sent, carrier.process
        self._cutters: dict[int, Cutter] = {}

    def reach(self, targets: Iterable[int]) -> None:
        for target in targets:
            for process in self._process.pair.processes[target]:
                process.looks = True

    def put(self, parts: Mapping[int, bytes]) -> None:
        def job() -> bool:
            for target, data in parts.items():
                self._add(target, data)
            return True

        self._carrier.later(job)

    def when_nearly_taken(self, call: Work) -> None:
        def job() -> bool:
            call()
            return True

        self._carrier.later(job)

    def finish(self, parcels: Mapping[int, Mapping[int, Rest]]) -> None:
        def job() -> bool:
            for target, groups in parcels.items():
                packer = msgpack.Packer(strict_types=True, autoreset=False)
                for group, (items, gone) in groups.items():
                    pack(packer, group, items, gone, last=True, owner="")
                self._add(target, packer.bytes(), end=True)
            self._carrier.call(self._sent)
            return True

        self._carrier.later(job)

    def _add(self, target: int, data: bytes, *, end: bool = False) -> None:
        pair = self._process.pair
        if self.epoch < pair.world.fences.get(pair.topology_id, 0):
            return
        cutter = self._cutters.setdefault(
            target, Cutter(epoch=self.epoch, sender=self._process.task_id, size=pair.piece_bytes)
        )
        mail = pair.mail.setdefault((self.epoch, target), [])
        for piece in cutter.add(data, end=end):
            mail.extend(pair.on_the_way(piece))
