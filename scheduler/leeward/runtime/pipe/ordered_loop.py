"""The loop of a bolt with a queue: it reads ahead, and asks a discipline for the next tuple whenever the bolt is free.

Tuples wait in front of the protocol, as they do in the pipe. To the protocol the order in which they are chosen is the
order in which they came, so its rules hold as they are: a marker and a tick are fences, handled when all tuples that
were read before them are processed, and nothing behind them is read until then. Heartbeats and samples of routers cut
nothing: they are answered at once, so that a worker hears of a task that has much to do, and no sample keeps an urgent
tuple back.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pystorm.component import Tuple

from leeward.core.instructions import Instruction
from leeward.runtime.pipe.loop import Loop
from leeward.runtime.pipe.waiting import Queue
from leeward.runtime.routing.routes import SAMPLE
from leeward.runtime.state.keyed import NO_GROUP

_HEARTBEAT, _SAMPLE = "__heartbeat", [SAMPLE]


class OrderedLoop(Loop):
    """See the module."""

    def __init__(self, *parts: Any, queue: Queue, wall: Callable[[], float], **options: Any) -> None:
        """`parts`, `options`: as Loop has them. `wall`: the clock of the times that tuples carry."""
        super().__init__(*parts, **options)
        self._queue, self._wall = queue, wall
        self._received: Counter[str] = Counter()  # data tuples that were read, by upstream component
        self._fence: Tuple | None = None  # handled when nothing waits any more

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def received(self) -> Counter[str]:
        return Counter(self._received)

    def in_turn(self, instructions: Iterable[Instruction]) -> Iterable[Instruction]:
        return self._queue.in_turn(instructions, self._wall)

    def run(self) -> None:
        """Read what has come, and handle the next tuple. After an exception the next call goes on behind it."""
        if not self._sources:
            gc.freeze()  # as in Loop
        self._read_ahead()
        self._bolt.attend()
        began = time.perf_counter()
        if self._queue:
            now, meter = self._wall(), self._meter
            waiting, tuples, busy_s = self._queue.take(now), meter.tuples, meter.busy_s
            self._pipe.taken += 1  # not when it is read: a marker would have as many more in front of it as may wait
            self.at = waiting.tup
            self._bolt.pass_on(self.at, waiting.group, waiting)
            if meter.tuples == tuples + 1:
                meter.sojourns.one(max(0.0, now - waiting.arrived) + meter.busy_s - busy_s)
        elif self._fence is not None:
            self.at, self._fence = self._fence, None
            self._control(self.at)
        self._flush(began)

    def _read_ahead(self) -> None:
        """All that is there, up to a fence, and no more than may wait. With nothing to do it waits for input."""
        while self._fence is None and not self._queue.full:
            if self._rest is None:
                batch = self._pipe.at_hand() if self._queue else self._pipe.batch()
                if not batch:
                    return
                self._rest = iter(batch)
                if self._load is not None:
                    self._load.sample(batch, self._sources)
            for code, values in zip(self._rest, self._rest):  # noqa: B905 (the same iterator twice: pairs)
                self._take_in(code, values)
                if self._fence is not None or self._queue.full:
                    return
            self._rest = None

    def _take_in(self, code: int, values: Any) -> None:
        source = self._sources.get(code)
        if source is None:
            self._define(code, values)
            return
        tup_id = values.pop() if self._pipe.form.ids else next(self._numbers)
        named: Any = tuple.__new__(source.values, values)
        tup = Tuple(tup_id, source.component, source.stream, source.task, named)
        if not source.control:
            self._received[self._components[source.task]] += 1
            self._queue.add(tup, source.group, self._wall())
        elif source.stream == _HEARTBEAT or values[:1] == _SAMPLE:
            self._control(tup)
        else:
            self._fence = tup

    def _control(self, tup: Tuple) -> None:
        self._pipe.taken += 1
        if self._state is not None:
            self._state.here = NO_GROUP
        self._bolt.control(tup)

    def _flush(self, began: float) -> None:
        """As Loop does: output of a bolt that has more to do leaves in time."""
        pipe, now = self._pipe, time.perf_counter()
        if now - pipe.flushed_at > pipe.pacing.late_s:
            if now - began > pipe.pacing.long_s:
                pipe.late(1)
            pipe.flush_all()
