"""Ships tallied in a sorted set of Redis, by the task of the berth. Of the shape of streamparse's Redis example."""

from ends import Feed
from redis import Redis

from leeward.runtime import StatefulBolt, StatefulSpout

BERTHS = ("north quay", "south quay", "mole", "dry dock", "roads")


class Arrivals(StatefulSpout):
    outputs = ["berth"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)

    def next_tuple(self):
        sent = self.state.get("sent", 0)
        if not self.feed.open(sent):
            return
        self.emit([BERTHS[sent % len(BERTHS)]])
        self.state["sent"] = sent + 1


class Harbour(StatefulBolt):
    outputs = ["berth", "ships"]
    transient = ("all",)

    def initialize(self, conf, ctx):
        self.redis = Redis.from_url(conf["examples.redis"], decode_responses=True)
        self.key = conf["examples.key"]
        self.all = 0

    def process(self, tup):
        (berth,) = tup.values
        self.all += 1
        ships = self.state[berth] = self.state.get(berth, 0) + 1
        self.redis.zadd(self.key, {berth: ships})
        self.emit([berth, int(ships)])
