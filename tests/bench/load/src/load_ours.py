"""The load on Leeward: keyed routing by table, counted markers (a pulse every second)."""

import time

from load_parts import Load, Meter

from leeward.runtime import StatefulBolt, StatefulSpout


class Source(StatefulSpout):
    outputs = ["key", "n", "sent", "payload"]
    transient = ("pulse_due",)

    def initialize(self, conf, context):
        self.load = Load(conf)
        self.pulse_due = time.monotonic()

    def next_tuple(self):
        n = self.state.get("n", 0)
        for values in self.load.next(n):
            n = values[1]
            self.emit(values)
        self.state["n"] = n
        if time.monotonic() > self.pulse_due:
            self.pulse_due += 1
            self.emit_pulse(n)


class Pass(StatefulBolt):
    outputs = ["key", "n", "sent", "payload"]
    transient = ()  # keeps nothing that would be lost

    def process(self, tup):
        self.emit(list(tup.values))


class Sink(StatefulBolt):
    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.meter = Meter(conf)

    def process(self, tup):
        _, n, sent, _ = tup.values
        self.meter.take(n, sent)
