"""The operators of tests/cluster/counting as anybody writes them with plain streamparse: state in a dict.

One thing is better than usual: the source takes its numbers from Redis, so that its own restart costs no number.
"""

import json
import os
import time

import redis
from streamparse import Bolt, Spout


class Numbers(Spout):
    outputs = ["key", "n", "sent_ms"]

    def initialize(self, conf, context):
        self.rate = float(conf.get("counting.rate", 200))
        self.keys = int(conf.get("counting.keys", 50))
        with open(conf["leeward.secrets.file"]) as file:
            password = json.load(file)["redis_password"]
        self.redis = redis.Redis.from_url(conf["leeward.redis.url"], password=password)
        self.position = f"counting:{conf['topology.name']}:position"
        self.due = time.monotonic()

    def next_tuple(self):
        now = time.monotonic()
        if now < self.due:
            time.sleep(0.001)
            return
        self.due = max(self.due + 1 / self.rate, now - 0.1)
        n = self.redis.incr(self.position)
        self.emit([n % self.keys, n, int(time.time() * 1000)])


class Pass(Bolt):
    outputs = ["key", "n", "sent_ms"]

    def process(self, tup):
        self.emit(list(tup.values))


class Count(Bolt):
    outputs = ["key", "n", "count", "last", "task", "sent_ms"]

    def initialize(self, conf, context):
        self.state = {}
        self.task = context["taskid"]

    def process(self, tup):
        key, n, sent_ms = tup.values
        count, last = self.state.get(key, [0, 0])
        self.state[key] = [count + 1, n]
        self.emit([key, n, count + 1, last, self.task, sent_ms])


class Sink(Bolt):
    outputs = []

    def initialize(self, conf, context):
        self.file = os.open(conf["counting.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        os.write(self.file, (" ".join(map(str, (*tup.values, int(time.time() * 1000)))) + "\n").encode())
