"""A load that ends: ten tuples from the source through one of the replicas to the sink, and nothing more."""

import os
import time

from leeward.runtime import StatefulBolt, StatefulSpout

TUPLES, EVERY_S = 10, 0.2


class Source(StatefulSpout):
    outputs = ["key"]
    due = 0.0
    transient = ("due",)

    def next_tuple(self):
        n = self.state.get("n", 0)
        if n < TUPLES and time.monotonic() >= self.due:
            self.due = time.monotonic() + EVERY_S
            self.state["n"] = n + 1
            self.emit([n])


class Work(StatefulBolt):
    outputs = ["key"]
    transient = ()  # keeps nothing that would be lost

    def process(self, tup):
        self.emit(list(tup.values))


class Sink(StatefulBolt):
    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.file = os.open(conf["load.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        os.write(self.file, f"{time.time():.4f}\n".encode())
