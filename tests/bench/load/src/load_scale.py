"""Workers between the load's source and sink: what replicas are for."""

from load_parts import compute

from leeward.runtime import ElasticBolt, StatefulBolt


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
