"""Two sinks behind the count that write to the topology's Redis; tests/cluster/test_found_sinks.py judges them."""

import os
import time
from pathlib import Path

from leeward.core.errors import FencedError
from leeward.runtime import FencedRedis, StatefulBolt, open_redis


def connect(conf):
    """The topology's Redis, and the prefix of the keys of this submission."""
    return open_redis(conf, socket_timeout=5), f"sinks:{conf['storm.id']}:"


class Fenced(StatefulBolt):
    """Writes each result under its fencing token, and logs every write with the process that made it.

    While the file `counting.hold` is there, a tuple is held in `process`. The process then writes its id into that
    file's neighbour with the suffix `.held`.
    """

    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.redis, prefix = connect(conf)
        self.fenced = FencedRedis(self.redis, conf["storm.id"])
        self.results, self.writes, self.refused = prefix + "results", prefix + "writes", prefix + "refused"
        self.hold = Path(conf["counting.hold"])

    def process(self, tup):
        _, n, count, last, *_ = tup.values
        while self.hold.exists():
            self.hold.with_suffix(".held").write_text(str(os.getpid()))
            time.sleep(0.02)
        token = self.fencing_token
        try:
            fields = ("n", n, "pid", os.getpid())
            self.fenced.execute(token, "XADD", self.writes, "*", *fields, keys=(self.writes,))
            self.fenced.execute(token, "HSET", self.results, n, f"{count} {last}", keys=(self.results,))
        except FencedError:
            self.counters["refused"] += 1
            self.redis.rpush(self.refused, f"{os.getpid()} {n}")


class Buffered(StatefulBolt):
    """Keeps results in memory, outside of its state, and writes them only when a cut is about to be taken."""

    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.redis, prefix = connect(conf)
        self.flushed, self.final = prefix + "flushed", prefix + "final"
        self.buffer = {}

    def resumed(self):
        self.buffer = {}  # what this process had before comes again, or is another task's now

    def process(self, tup):
        _, n, count, last, *_ = tup.values
        self.buffer[n] = f"{count} {last}"

    def before_checkpoint(self, cut):
        if self.buffer:
            self.redis.hset(self.flushed, mapping=self.buffer)
            self.buffer = {}

    def committed(self, cut):
        self.redis.rpush(self.final, f"{os.getpid()} {cut}")
