"""A source, replicas of a worker and a sink: what replicas are for."""

from load_parts import Load, Meter, compute

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout


class Source(StatefulSpout):
    outputs = ["key", "n", "sent", "payload"]

    def initialize(self, conf, context):
        self.load = Load(conf)

    def next_tuple(self):
        n = self.state.get("n", 0)
        for values in self.load.next(n):
            n = values[1]
            self.emit(values)
        self.state["n"] = n


class Rotated(ElasticBolt):
    """Stateless: tuples rotate over its replicas."""

    outputs = ["key", "n", "sent", "payload"]

    def initialize(self, conf, context):
        self.rounds = int(conf.get("load.rounds", 0))

    def process(self, tup):
        compute(self.rounds)
        self.emit(list(tup.values))


class Keyed(StatefulBolt):
    """Counts by key."""

    outputs = ["key", "n", "sent", "payload"]

    def initialize(self, conf, context):
        self.rounds = int(conf.get("load.rounds", 0))

    def process(self, tup):
        key = tup.values[0]
        self.state[key] = self.state.get(key, 0) + 1
        compute(self.rounds)
        self.emit(list(tup.values))


class Sink(StatefulBolt):
    outputs = []

    def initialize(self, conf, context):
        self.meter = Meter(conf)

    def process(self, tup):
        self.meter.take(tup.values[1], tup.values[2])
