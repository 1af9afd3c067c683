"""A topology whose every result can be computed beforehand: numbers, counted by key.

The source sends 1, 2, 3, ... at a rate; the key of n is n mod `keys`. The count's state holds, for each key, how many
numbers came and which one was last, so a loss, a repeat and a wrong order all show in what it emits.
`tests/cluster/tally.py` knows what must come out.
"""

import os
import time

from leeward.core.keys import key_group
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout


class Numbers(StatefulSpout):
    outputs = ["key", "n", "sent_ms"]

    def initialize(self, conf, context):
        self.rate = float(conf.get("counting.rate", 200))
        self.keys = int(conf.get("counting.keys", 50))
        self.limit = int(conf.get("counting.limit", 0))
        self.told = conf.get("counting.committed")
        self.due = None

    def resumed(self):
        self.due = None

    def committed(self, state):
        """Appends the last number of that state to the file `counting.committed`, if there is one."""
        if self.told:
            with open(self.told, "a") as file:
                file.write(f"{state.get('n', 0)}\n")

    def next_tuple(self):
        now = time.monotonic()
        if self.due is None:
            self.due = now
        n = self.state.get("n", 0)
        if now < self.due or (self.limit and n >= self.limit):
            time.sleep(0.001)
            return
        # after a pause: at most a tenth of a second of backlog
        self.due = max(self.due + 1 / self.rate, now - 0.1)
        n += 1
        self.state["n"] = n
        self.emit([n % self.keys, n, int(time.time() * 1000)])


class Pass(ElasticBolt):
    outputs = ["key", "n", "sent_ms"]

    def process(self, tup):
        if tup.values[1] % 100 == 0:
            print("a user's print must not reach the protocol")
        self.emit(list(tup.values))


class Count(StatefulBolt):
    """State: key -> [count, last number], and with `counting.fill` a text of so many characters.

    `counting.slow_s`: it sleeps for so long with each tuple, as code does that waits for a server.
    """

    outputs = ["key", "n", "count", "last", "task", "sent_ms"]

    def initialize(self, conf, context):
        self.fill, self.slow_s = int(conf.get("counting.fill", 0)), float(conf.get("counting.slow_s", 0))
        self.keys = int(conf.get("counting.keys", 50)) if self.fill else 0

    def resumed(self):
        mine = set(self.state.groups)
        for key in range(self.keys):
            if key_group(key) in mine and key not in self.state:
                self.state[key] = [0, 0, f"{key:010d}" * (self.fill // 10)]
        self.keys = 0  # once

    def process(self, tup):
        key, n, sent_ms = tup.values
        if self.slow_s:
            time.sleep(self.slow_s)
        count, last, *fill = self.state.get(key, [0, 0])
        self.state[key] = [count + 1, n, *fill]
        self.emit([key, n, count + 1, last, self.task_id, sent_ms])


class Sink(StatefulBolt):
    """Appends every result to a file, in the order in which it comes.

    A file, because tests take Redis away; one write for each line, so that a killed process leaves none half done.
    """

    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.file = os.open(conf["counting.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        os.write(self.file, (" ".join(map(str, (*tup.values, int(time.time() * 1000)))) + "\n").encode())
