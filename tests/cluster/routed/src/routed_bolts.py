"""Numbers for two stateless bolts whose first task is slow; the senders of one have a router."""

import os
import time

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout

RATE = 45  # tuples/s to each of the two
FAST_S, SLOW_S = 0.005, 0.05  # emulated service times


class Numbers(StatefulSpout):
    outputs = ["n", "sent_ms"]

    def resumed(self):
        self.due = time.monotonic()

    def next_tuple(self):
        now = time.monotonic()
        if now < self.due:
            time.sleep(0.001)
            return
        self.due = max(self.due + 1 / RATE, now - 0.1)
        self.state["n"] = self.state.get("n", 0) + 1
        self.emit([self.state["n"], int(time.time() * 1000)])


class Work(ElasticBolt):
    outputs = ["way", "n", "task", "sent_ms"]

    def initialize(self, conf, context):
        mine = [int(task) for task, name in context["task->component"].items() if name == self.component_name]
        self.service_s = SLOW_S if self.task_id == min(mine) else FAST_S

    def process(self, tup):
        time.sleep(self.service_s)
        self.emit([self.component_name, tup.values.n, self.task_id, tup.values.sent_ms])


class Sink(StatefulBolt):
    """Appends a line for each tuple: way, number, task that worked on it, delay in milliseconds."""

    outputs = []
    transient = ()

    def initialize(self, conf, context):
        self.file = os.open(conf["routed.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        way, n, task, sent_ms = tup.values
        os.write(self.file, f"{way} {n} {task} {int(time.time() * 1000) - sent_ms}\n".encode())
