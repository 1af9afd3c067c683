"""The loop of a bolt: from the pipe to the user's `process`, with as little in between as can be.

It does what pystorm's loop and TaskProtocol.on_tuple do for a tuple, in one function, while nothing is going on;
all other input (markers, heartbeats, ticks, tuples that must wait) goes the general way.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from pystorm.component import Tuple

from leeward.core.alignment import Channel
from leeward.core.instructions import Instruction
from leeward.core.protocol import TaskProtocol
from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.pipe.forms import DEFINE_CHANNEL
from leeward.runtime.pipe.pipe import PipeSerializer
from leeward.runtime.pipe.sojourns import Sojourns
from leeward.runtime.pipe.waiting import Waiting
from leeward.runtime.state.keyed import NO_GROUP, KeyedState
from leeward.runtime.state.sampling import GroupLoad

#: Of so many reads the tuples of one are timed, on average. The distance is drawn anew each time: a pulse gives as many
#: reads each second, and each eighth could be the first one of a burst for minutes.
SAMPLED = 8


class Source:
    """One upstream task's stream, or one key group of it, as the pipe numbers it."""

    __slots__ = ("component", "control", "group", "here", "stream", "task", "values")

    def __init__(
        self, component: str | None, stream: str, task: int, group: int | None = None, values: type | None = None
    ) -> None:
        self.component, self.stream, self.task = component, stream, task
        self.group = group  #: of the tuples' keys; None: the stream is not keyed, or the worker does not tell
        self.here = NO_GROUP if group is None else group  #: the same for `KeyedState.here`
        self.values = tuple if values is None else values  #: class of a tuple's values
        self.control = task < 0 or stream == MARKER_STREAM  #: markers, heartbeats, ticks


@dataclass(slots=True)
class Meter:
    """Counters of a task since its process began."""

    tuples: int = 0  #: processed or, by a source, emitted
    busy_s: float = 0.0
    sojourns: Sojourns = field(default_factory=Sojourns)

    def within(self, done: int, counted: int, busy_s: float) -> int:
        """Of one read `done` tuples are processed by now, of which `counted` are counted; gives `done` back.

        `busy_s`: in all. A read without a tuple, as of markers alone, makes nobody busy.
        """
        if done:
            self.tuples += done - counted
            self.busy_s = busy_s
        return done

    @property
    def mean_s(self) -> float:
        """Time for one tuple; a guess until one was processed."""
        return max(self.busy_s / self.tuples, 1e-6) if self.tuples else 0.001


class Bolt(Protocol):
    """The methods of a bolt that the loop calls."""

    @property
    def process(self) -> Any:
        """The user's method."""

    def process_and_ack(self, tup: Tuple) -> None:
        """The user's method, where tuples have ids."""

    def control(self, tup: Tuple) -> None:
        """A tuple that is no data."""

    def pass_on(self, tup: Tuple, group: int | None, waiting: Waiting | None = None) -> None:
        """A data tuple that may have to wait; `waiting`: the same with its facts, if the bolt has a queue."""

    def attend(self) -> None:
        """Work posted by other threads or due by the clock."""

    def fields(self, component: str | None, stream: str) -> type | None:
        """The class of the values that come on this stream."""


class Copier(Protocol):
    """Copies key groups ahead (`runtime/handover/handovers.py`)."""

    @property
    def copying(self) -> bool:
        """`attend` is to be called between two tuples."""


class Loop:
    """See the module."""

    def __init__(
        self, pipe: PipeSerializer, protocol: TaskProtocol, bolt: Bolt, meter: Meter,
        *, inbox: Collection[Any], copier: Copier, state: KeyedState | None, load: GroupLoad | None, plain: bool,
    ) -> None:  # fmt: skip
        """`inbox`: not empty when `attend` is to be called. `state`, `load`: of a stateful bolt. `plain`: a tuple that
        need not wait goes straight to the user's code.
        """
        self._pipe, self._protocol, self._bolt, self._meter = pipe, protocol, bolt, meter
        self._inbox, self._copier, self._state, self._load, self._plain = inbox, copier, state, load, plain
        self._sources: dict[int, Source] = {}
        self._components: dict[int, str] = {}  # by upstream task
        self._numbers = itertools.count(1)  # ids of tuples that Storm has given none
        self._rest: Iterator[Any] | None = None  # of the input read last
        self._left, self._random = SAMPLED, Random(0)  # reads until one is timed
        self._clear: dict[int, Channel] = {}  # by upstream task; until the protocol has something to carry out
        self.at: Tuple | None = None  #: the tuple whose processing raised an exception

    def run(self) -> None:
        """Handle one batch of input. After an exception of the user's code the next call goes on behind its tuple."""
        if not self._sources:
            gc.freeze()  # modules and settings: no need to look at them again and again
        if self._rest is None:
            pipe, blocks = self._pipe, self._pipe.blocks
            batch = pipe.batch()
            self._left -= 1
            if self._left < 2:  # a read is timed from the one before it
                self._meter.sojourns.read(pipe.flushed_at, there=pipe.blocks == blocks)  # it flushes before it reads
            self._rest = iter(batch)
            self._bolt.attend()
            if self._load is not None:
                self._load.sample(batch, self._sources)
        if self._left == 0:
            self._timed(self._rest)
        else:
            self._loop(self._rest)
        self._rest = None

    def _timed(self, batch: Iterator[Any]) -> None:
        """As `_loop`; the sojourn times of these tuples count."""
        self._left = self._random.randint(2, 2 * SAMPLED - 2)
        meter = self._meter
        tuples, busy_s = meter.tuples, meter.busy_s
        self._loop(batch)
        if meter.tuples > tuples:
            meter.sojourns.processed(meter.tuples - tuples, meter.busy_s - busy_s)

    def changing(self) -> None:
        """The protocol has decided something: which channels were clear is not known any more."""
        self._clear.clear()

    @property
    def waiting(self) -> int:
        """Tuples that were read and wait for their turn."""
        return 0

    def in_turn(self, instructions: Iterable[Instruction]) -> Iterable[Instruction]:
        """Instructions of the protocol as they are to be carried out."""
        return instructions

    def received(self) -> Counter[str]:
        """Data tuples that came, by upstream component; any thread may ask."""
        received: Counter[str] = Counter()
        for task, came in self._protocol.came.items():
            if came:
                received[self._components[task]] += came
        return received

    def _loop(self, batch: Iterator[Any]) -> None:
        pipe, sources, inbox, state = self._pipe, self._sources, self._inbox, self._state
        bolt, channels, meter, plain = self._bolt, self._clear, self._meter, self._plain
        late_s, long_s = pipe.pacing.late_s, pipe.pacing.long_s
        clear, process, ids = self._protocol.clear, bolt.process, pipe.form.ids
        copier, number, clock, new = self._copier, self._numbers, time.perf_counter, tuple.__new__
        # inputs: all; those that `pipe` was told of; those that are not processed here (control, passed on, failed)
        taken, told, others, counted, busy, began = 0, 0, 0, 0, meter.busy_s, clock()
        last, tup = began, None
        try:
            for code, values in zip(batch, batch):  # noqa: B905 (the same iterator twice: pairs)
                source = sources.get(code)
                if source is None:
                    self._define(code, values)
                    continue
                if inbox or copier.copying:
                    tup = None  # none is at fault for what was posted
                    self._attend(code, values, batch)
                taken += 1
                tup_id = values.pop() if ids else next(number)
                if state is not None:
                    state.here = source.here
                tup = new(Tuple, (tup_id, source.component, source.stream, source.task, new(source.values, values)))
                if source.control:
                    bolt.control(tup)
                    others += 1
                else:
                    channel = channels.get(source.task)
                    if channel is None and plain and (channel := clear(source.task)) is not None:
                        channels[source.task] = channel
                    if channel is None:
                        bolt.pass_on(tup, source.group)
                        others += 1
                    else:
                        channel.count += 1
                        if ids:
                            bolt.process_and_ack(tup)
                        else:
                            process(tup)
                now = clock()
                if now - pipe.flushed_at > late_s:
                    if now - last > long_s:
                        pipe.late(taken - told)
                    pipe.taken += taken - told
                    told = taken
                    # a read of a full pipe may last for a minute, and measurements are of a second
                    counted = meter.within(taken - others, counted, busy + now - began)
                    pipe.flush_all()
                    now = clock()
                last = now
        except BaseException:
            self.at = tup
            others += tup is not None
            raise
        finally:
            pipe.taken += taken - told
            meter.within(taken - others, counted, busy + clock() - began)

    def _attend(self, code: int, values: Any, rest: Iterator[Any]) -> None:
        """Before an input that is read already: after an exception of what was posted it comes first."""
        try:
            self._bolt.attend()
        except BaseException:
            self._rest = itertools.chain((code, values), rest)
            raise

    def _define(self, code: int, values: Any) -> None:
        if code == DEFINE_CHANNEL:
            number, component, stream, task, group = values
            self._components[task] = component
            self._sources[number] = Source(component, stream, task, group, self._bolt.fields(component, stream))
        # else: task ids that nobody waits for any more
