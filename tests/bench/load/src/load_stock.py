"""The same load on streamparse as it is: fields grouping, no markers."""

from load_parts import Load, Meter
from streamparse import Bolt, Spout


class Source(Spout):
    outputs = ["key", "n", "sent", "payload"]

    def initialize(self, conf, context):
        self.load = Load(conf)
        self.n = 0

    def next_tuple(self):
        for values in self.load.next(self.n):
            self.n = values[1]
            self.emit(values)


class Pass(Bolt):
    outputs = ["key", "n", "sent", "payload"]

    def process(self, tup):
        self.emit(list(tup.values))


class Sink(Bolt):
    outputs = []

    def initialize(self, conf, context):
        self.meter = Meter(conf)

    def process(self, tup):
        _, n, sent, _ = tup.values
        self.meter.take(n, sent)
