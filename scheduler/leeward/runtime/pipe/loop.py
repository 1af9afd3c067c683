"""The loop of a bolt: from the pipe to the user's `process`, with as little in between as can be.

It does what pystorm's loop and TaskProtocol.on_tuple do for a tuple, in one function, while nothing is going on;
whatever else comes (markers, heartbeats, ticks, tuples that must wait) goes the general way.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pystorm.component import Tuple

from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.pipe.forms import DEFINE_CHANNEL
from leeward.runtime.pipe.pipe import LATE_S

if TYPE_CHECKING:
    from leeward.runtime.task.components import ElasticBolt

#: A tuple that takes longer leaves what it emits for others waiting. # seconds
_LONG_S = 10 * LATE_S


class Source:
    """One upstream task's stream, or one key group of it, as the pipe numbers it."""

    __slots__ = ("component", "control", "count", "group", "stream", "task", "values")

    def __init__(
        self, component: str | None, stream: str, task: int, group: int | None = None, values: type | None = None
    ) -> None:
        self.component, self.stream, self.task = component, stream, task
        self.group = group  #: of the tuples' keys; None: the stream is not keyed, or the worker does not tell
        self.values = tuple if values is None else values  #: class of a tuple's values
        self.control = task < 0 or stream == MARKER_STREAM  #: markers, heartbeats, ticks
        self.count = 0  #: data tuples that came


def run(bolt: ElasticBolt) -> None:
    """Handle one batch of input. After an exception of the user's code the next call goes on behind its tuple."""
    pipe = bolt.serializer
    if not bolt._sources:
        gc.freeze()  # modules and settings: no need to look at them again and again
    if bolt._rest is None:
        batch = pipe.batch()
        bolt._rest = iter(batch)
        bolt._attend()
        if bolt._group_load is not None:
            bolt._group_load.sample(batch, bolt._sources)
    _loop(bolt, bolt._rest)
    bolt._rest = None


def _loop(bolt: ElasticBolt, batch: Iterator) -> None:
    pipe, sources, inbox, handovers = bolt.serializer, bolt._sources, bolt._inbox, bolt._handovers
    clear, channels, process, ids = bolt._protocol.clear, bolt._clear, bolt.process, pipe.form.ids
    number, clock, new = bolt._numbered, time.perf_counter, tuple.__new__
    plain, stateful = not bolt._server.seconds, bolt.kind == "stateful"
    taken, done, busy, began = 0, 0, bolt._busy_s, clock()
    last, tup = began, None
    try:
        for code, values in zip(batch, batch):  # noqa: B905 (the same iterator twice: pairs)
            source = sources.get(code)
            if source is None:
                _define(bolt, code, values)
                continue
            taken += 1
            if inbox or handovers.copying:
                bolt._attend()
            tup_id = values.pop() if ids else next(number)
            if stateful:
                bolt.state.here = source.group
            tup = new(Tuple, (tup_id, source.component, source.stream, source.task, new(source.values, values)))
            if source.control:
                bolt._control(tup)
            else:
                source.count += 1
                channel = channels.get(source.task)
                if channel is None and plain and (channel := clear(source.task)) is not None:
                    channels[source.task] = channel
                if channel is None:
                    bolt._pass_on(tup, source.group)
                else:
                    channel.count += 1
                    if ids:
                        bolt._process(tup)
                    else:
                        process(tup)
                    done += 1
            now = clock()
            if now - pipe.flushed_at > LATE_S:
                if now - last > _LONG_S:
                    pipe.late(taken)
                pipe.taken += taken
                taken = 0
                pipe.flush_all()
                now = clock()
            last = now
    except BaseException:
        bolt._current_tups = bolt._current_tups or [tup]  # what pystorm reports, and fails
        raise
    finally:
        pipe.taken += taken
        bolt._processed += done
        if done:
            bolt._busy_s = busy + clock() - began


def _define(bolt: ElasticBolt, code: int, values: Any) -> None:
    if code == DEFINE_CHANNEL:
        number, component, stream, task, group = values
        fields = bolt._source_tuple_types[component].get(stream)
        bolt._sources[number] = Source(component, stream, task, group, fields)
    # else: task ids that nobody waits for any more
