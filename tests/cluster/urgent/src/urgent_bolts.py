"""Bursts of tuples for a slow bolt with a queue; the last of each burst are urgent.

The state of the bolt holds, for each key, how many tuples came and which one was last, so a loss, a repeat and a wrong
order within a key all show in what it emits. Urgent tuples have keys of their own: no tuple overtakes one of its key.
"""

import os
import time

from leeward.runtime import StatefulBolt, StatefulSpout, ordered_by

BURST, URGENT = 40, 8


class Bursts(StatefulSpout):
    outputs = ["key", "n", "due"]

    def initialize(self, conf, context):
        self.next_s = 0.0

    def resumed(self):
        self.next_s = 0.0

    def next_tuple(self):
        if time.monotonic() < self.next_s:
            time.sleep(0.005)
            return
        self.next_s = time.monotonic() + 1.0
        first, now = self.state.get("n", 0), time.time()
        for n in range(first + 1, first + BURST + 1):
            urgent = (n - 1) % BURST >= BURST - URGENT
            key = f"urgent{n % 4}" if urgent else f"k{n % 16}"
            self.emit([key, n, now + (0.2 if urgent else 30.0)])
        self.state["n"] = first + BURST


class Evaluate(StatefulBolt):
    """State: key -> [count, last number]."""

    outputs = ["key", "n", "count", "last", "task"]
    queue = ordered_by("dssp-edfq", due="due", unloaded=0.02)

    def process(self, tup):
        key, n, _ = tup.values
        count, last = self.state.get(key, [0, 0])
        self.state[key] = [count + 1, n]
        self.emit([key, n, count + 1, last, self.task_id])


class Sink(StatefulBolt):
    """Appends a line for each result."""

    outputs = []
    transient = ()

    def initialize(self, conf, context):
        self.file = os.open(conf["urgent.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        os.write(self.file, (" ".join(map(str, tup.values)) + "\n").encode())
