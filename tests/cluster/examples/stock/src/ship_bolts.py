"""Ships that pass a lighthouse, tallied in memory. Of the shape of streamparse's word count."""

from collections import Counter
from itertools import cycle

from ends import Feed
from streamparse import Bolt, Spout

SHIPS = ("yawl", "ketch", "sloop", "cutter", "ferry", "tug", "barge")


class Lookout(Spout):
    outputs = ["ship"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.ships = cycle(SHIPS)
        self.sent = 0

    def next_tuple(self):
        if not self.feed.open(self.sent):
            return
        self.emit([next(self.ships)])
        self.sent += 1


class Tally(Bolt):
    """A ferry passes there and back."""

    outputs = ["ship", "passages"]

    def initialize(self, conf, ctx):
        self.passages = Counter()
        self.all = 0

    def add(self, ship, more):
        self.passages[ship] += more
        self.all += more

    def process(self, tup):
        ship = tup.values[0]
        self.add(ship, 2 if ship == "ferry" else 1)
        if self.all % 500 == 0:
            self.logger.info("%d passages so far", self.all)
        self.emit([ship, self.passages[ship]])
