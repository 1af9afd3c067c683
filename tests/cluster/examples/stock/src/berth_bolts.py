"""Ships tallied in a sorted set of Redis, by whichever task is free. Of the shape of streamparse's Redis example."""

from itertools import cycle

from ends import Feed
from redis import Redis
from streamparse import Bolt, Spout

BERTHS = ("north quay", "south quay", "mole", "dry dock", "roads")


class Arrivals(Spout):
    outputs = ["berth"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.berths = cycle(BERTHS)
        self.sent = 0

    def next_tuple(self):
        if not self.feed.open(self.sent):
            return
        self.emit([next(self.berths)])
        self.sent += 1


class Harbour(Bolt):
    outputs = ["berth", "ships"]

    def initialize(self, conf, ctx):
        self.redis = Redis.from_url(conf["examples.redis"], decode_responses=True)
        self.key = conf["examples.key"]
        self.all = 0

    def process(self, tup):
        (berth,) = tup.values
        self.all += 1
        ships = self.redis.zincrby(self.key, 1, berth)
        self.emit([berth, int(ships)])
