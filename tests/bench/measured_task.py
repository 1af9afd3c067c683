"""The task of tests/bench/measuring.py: a real component whose measuring can be taken out, and put back, as it runs.

    python tests/bench/measured_task.py (counting|passing) DESCRIPTOR

Storm's worker is at its standard input and output. A tick names the parts of measuring that are done from then on; the
answer, a line of JSON on the descriptor, has the processor time that the process had used before and after the switch.

A part is taken out of the source text of the methods that do it. So the rest of them is what runs in a worker, in each
mode, and a line that is not there any more ends the bench with an error.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from leeward.core.errors import ConfigError
from leeward.runtime import ElasticBolt, StatefulBolt
from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.loop import Loop
from leeward.runtime.pipe.output import Output
from leeward.runtime.pipe.pipe import PipeSerializer
from leeward.runtime.task.link import Link

#: Part of measuring -> method -> its code that is that part -> the code without it.
PARTS: Mapping[str, Mapping[Callable[..., Any], Mapping[str, str]]] = {
    "publication": {},  # see Publisher
    "sampling": {
        Loop.run: {
            "self._left -= 1": "pass",
            "if self._left < 2:": "if False:",
            "if self._load is not None:": "if False:",
            "if self._left == 0:": "if False:",
        },
    },
    "counts": {
        Loop._loop: {
            "counted = meter.within(taken - others, counted, busy + now - began)": "pass",
            "meter.within(taken - others, counted, busy + clock() - began)": "pass",
        },
        Output._emit_plainly: {"if slot.counted:": "if False:"},
        PipeSerializer.put_other: {"with self._counting:": "if True:", "self._others += 1": "pass"},
        PipeSerializer.flush: {"with self._counting:": "if True:", "self._written += count": "pass"},
        PipeSerializer.emitted: {" + len(self.out)": ""},  # what waits will not be counted as written
    },
}


def without(method: Callable[..., Any], parts: Iterable[str]) -> FunctionType:
    """The method without these parts of measuring. Raises ConfigError if its source has other code than PARTS."""
    text = textwrap.dedent(inspect.getsource(method))
    for part in parts:
        for code, other in PARTS[part].get(method, {}).items():
            if text.count(code) != 1:
                raise ConfigError(
                    f"{method.__qualname__} has {code!r} {text.count(code)} times, where {part!r} takes it out.",
                    remedy="Write into PARTS what measures there now.",
                )
            text = text.replace(code, other)
    made: dict[str, Any] = {}
    exec(compile(text, inspect.getfile(method), "exec"), dict(method.__globals__), made)
    function: FunctionType = made[method.__name__]
    return function


def class_without(cls: type, parts: Iterable[str]) -> Any:
    """The class without these parts of measuring, to take the place of `cls`."""
    methods = dict.fromkeys(method for part in PARTS.values() for method in part)
    own = (method for method in methods if vars(cls).get(method.__name__) is method)
    return type(cls.__name__, (cls,), {method.__name__: without(method, parts) for method in own})


class Publisher(Link):
    """A link whose publications can be put off, and are timed."""

    def __init__(self, *, metrics: Callable[[], str], **options: Any) -> None:
        super().__init__(metrics=lambda: self._timed_line(metrics), **options)
        self._turn, self._guard = 0, threading.Lock()
        self._told = {"published": 0, "line_s": 0.0, "all_s": 0.0}  # processor time of this thread

    def publish(self, on: bool) -> dict[str, float]:
        """Publish from now on each second, at first in half a second, or not at all; what it took until now."""
        with self._guard:
            self._turn += 1
            if on:
                self.soon(self._publish_metrics, self._pacing.metrics_s / 2)
            return dict(self._told)

    def soon(self, job: Callable[[], object], after_s: float = 0.0) -> None:
        """As a link's; a publication that is put off meanwhile is none."""
        super().soon(partial(self._publish_in, self._turn) if job == self._publish_metrics else job, after_s)

    def _publish_in(self, turn: int) -> None:
        with self._guard:
            if turn == self._turn:
                began = time.thread_time()
                self._publish_metrics()
                self._told["all_s"] += time.thread_time() - began
                self._told["published"] += 1

    def _timed_line(self, metrics: Callable[[], str]) -> str:
        began = time.thread_time()
        line = metrics()
        self._told["line_s"] += time.thread_time() - began
        return line


class Switched:
    """Mixed in before a bolt's class: a tick switches parts of measuring off and on."""

    _make_link = Publisher
    _pacing = Pacing(practice=0)  # there is no JVM to practise with
    told: int

    def process_tick(self, tup: Any) -> None:
        """`tup.values`: the parts that are done from now on."""
        self.serializer.flush_all()  # what was counted until now is written as counted
        until_s, parts = time.process_time(), tup.values[0]
        out = [part for part in PARTS if part not in parts]
        self._loop.__class__ = class_without(Loop, out)
        self.serializer.__class__ = class_without(PipeSerializer, out)
        type(self)._emit_plainly = class_without(Output, out)._emit_plainly
        told = self._link.publish("publication" in parts) | {"until_s": until_s, "from_s": time.process_time()}
        os.write(self.told, json.dumps(told).encode() + b"\n")


class Counting(Switched, StatefulBolt):
    """Counts its keys."""

    outputs = ("key", "count")

    def process(self, tup: Any) -> None:
        key = tup.values[0]
        count = self.state[key] = self.state.get(key, 0) + 1
        self.emit([key, count])


class Passing(Switched, ElasticBolt):
    """Sends on what comes."""

    outputs = ("key", "text")

    def process(self, tup: Any) -> None:
        self.emit(list(tup.values))


TASKS = {"counting": Counting, "passing": Passing}


def main() -> None:
    name, descriptor = sys.argv[1:]
    task = TASKS[name]
    task.told = int(descriptor)
    task().run()


if __name__ == "__main__":
    main()
