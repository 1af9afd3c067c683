"""Two sources, a stateless bolt, a keyed count, a keyed join and a sink; faulty_numbers.py tells what must come out."""

from __future__ import annotations

import time
from pathlib import Path

import redis
from faulty_numbers import SOURCES, count_id, count_result, join_id, join_result, key_of, turn_of, value_of

from leeward.core.errors import FencedError
from leeward.runtime import ElasticBolt, FencedRedis, StatefulBolt, StatefulSpout, open_redis

#: Where the sink writes: a hash id -> result, and a stream with every write, whose ids are Redis' own clock.
RESULTS, WRITES = "faulty:results", "faulty:writes"
#: The sink waits this long for Redis before its process ends, in seconds.
PATIENCE_S = 60.0


class Numbers(StatefulSpout):
    """Sends 1, 2, 3, ... by the wall clock, and after a pause what has become due, at a bounded rate.

    The state is the last number and the time from which the schedule counts, so a restored source knows what is due.
    The file `faulty.stop`, once it is there, holds the last number to send.
    """

    outputs = ["source", "key", "n", "value", "due_ms"]
    source = ""
    transient = ("limit", "look_at", "earliest")

    def initialize(self, conf, context):
        self.rate = float(conf.get("faulty.rate", 150))
        self.gap_s = 1 / (self.rate * float(conf.get("faulty.catch_up", 3)))
        self.stop = Path(conf["faulty.stop"])
        self.limit, self.look_at, self.earliest = 0, 0.0, 0.0

    def next_tuple(self):
        now = time.time()
        start_ms = self.state.get("start_ms")
        if start_ms is None:
            start_ms = self.state["start_ms"] = int(now * 1000)
        n = self.state.get("n", 0) + 1
        due_ms = int(start_ms + n * 1000 / self.rate)
        if now < max(self.earliest, due_ms / 1000) or self.over(n, now):
            time.sleep(0.002)
            return
        self.earliest = max(self.earliest, now - 0.05) + self.gap_s
        self.state["n"] = n
        self.emit([self.source, key_of(self.source, n), n, value_of(self.source, n), due_ms])

    def over(self, n, now):
        if not self.limit and now >= self.look_at:
            self.look_at = now + 0.25
            if self.stop.exists():
                self.limit = int(self.stop.read_text())
        return self.limit and n > self.limit


class Left(Numbers):
    source = "left"


class Right(Numbers):
    source = "right"


class Pass(ElasticBolt):
    """Its replicas keep no order among what each of them passes on."""

    outputs = ["source", "key", "n", "value", "due_ms"]

    def process(self, tup):
        self.emit(list(tup.values))


class Count(StatefulBolt):
    """State: key -> source -> [count, sum, early tuples].

    Several replicas of the bolt before keep no order, so a tuple of a later turn waits until its turn comes. A tuple
    that comes twice gets an id that no right result has.
    """

    outputs = ["id", "result", "due_ms"]

    def process(self, tup):
        source, key, n, value, due_ms = tup.values
        entry = self.state.get(key) or {name: [0, 0, []] for name in SOURCES}
        count, total, early = entry[source]
        early = [*early, [turn_of(n), n, value, due_ms]]
        if turn_of(n) <= count:
            self.emit([f"again:{source}:{n}", "counted twice", due_ms])
            return
        early.sort()
        while early and early[0][0] == count + 1:
            _, number, more, due = early.pop(0)
            count, total = count + 1, total + more
            self.emit([count_id(source, number), count_result(count, total), due])
        self.state[key] = {**entry, source: [count, total, early]}


class Join(StatefulBolt):
    """State: key -> [number of pairs, tuples that wait for their counterpart]."""

    outputs = ["id", "result", "due_ms"]

    def process(self, tup):
        source, key, n, value, due_ms = tup.values
        turn = turn_of(n)
        joined, waiting = self.state.get(key) or [0, []]
        other = next((entry for entry in waiting if entry[0] != source and entry[1] == turn), None)
        if other is None:
            self.state[key] = [joined, [*waiting, [source, turn, n, value, due_ms]]]
            return
        rest = [entry for entry in waiting if entry is not other]
        self.state[key] = [joined + 1, rest]
        stale = sum(entry[1] <= turn for entry in rest)
        left_n, right_n = (n, other[2]) if source == "left" else (other[2], n)
        result = join_result(left_n, right_n, value * other[3], joined + 1, stale)
        self.emit([join_id(key, turn), result, max(due_ms, other[4])])


class Sink(StatefulBolt):
    """Writes each result under its id, and logs every write, under its fencing token. Waits while Redis is away."""

    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        client = open_redis(conf, socket_timeout=5, socket_connect_timeout=5)
        self.redis = FencedRedis(client, conf["storm.id"])

    def process(self, tup):
        name, result, due_ms = tup.values
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                token = self.fencing_token
                fields = ("id", name, "result", result, "due", due_ms)
                self.redis.execute(token, "XADD", WRITES, "*", *fields, keys=(WRITES,))
                self.redis.execute(token, "HSET", RESULTS, name, result, keys=(RESULTS,))
                return
            except FencedError:
                return  # this process was replaced: its successor writes the result
            except (redis.ConnectionError, redis.TimeoutError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
