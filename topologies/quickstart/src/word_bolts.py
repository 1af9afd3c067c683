"""The components of the word count."""

import time

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout, open_redis

TEXT = """the wind blows to leeward and the sea runs high
the ship that lies to leeward feels no wind
a lee shore is the one to which the wind blows""".splitlines()


class Lines(StatefulSpout):
    """Sends a line of the text twenty times a second, over and over."""

    outputs = ["line"]

    def next_tuple(self):
        number = self.state.get("number", 0)  # how far the input was read belongs to the state
        self.emit([TEXT[number % len(TEXT)]])
        self.state["number"] = number + 1
        time.sleep(0.05)


class Split(ElasticBolt):
    """Stateless: its replicas take turns."""

    outputs = ["word"]

    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


class Count(StatefulBolt):
    """Stateful: `self.state` is a mapping by the key that the input is routed by."""

    outputs = ["word", "count"]

    def process(self, tup):
        word = tup.values[0]
        self.state[word] = self.state.get(word, 0) + 1
        self.emit([word, self.state[word]])


class Table(StatefulBolt):
    """Writes the newest count of each word to Redis. Writing it twice does no harm: so should every sink do it."""

    outputs = []
    transient = ()  # nothing that it keeps outside of self.state would be lost: it keeps nothing

    def initialize(self, conf, context):
        self.redis = open_redis(conf)  # leeward.redis.url, with the password of the secrets file

    def process(self, tup):
        word, count = tup.values
        self.redis.hset("words", word, count)
