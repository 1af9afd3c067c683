"""Ships that pass a lighthouse, tallied in memory. Of the shape of streamparse's word count."""

from collections import Counter
from itertools import cycle

from ends import Feed
from streamparse import Bolt, Spout

SHIPS = ("yawl", "ketch", "sloop", "cutter", "ferry", "tug", "barge")
WEIGHTS = {"ferry": 2}


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
    """Weighs a ferry twice, as it passes there and back."""

    outputs = ["ship", "passages"]

    def initialize(self, conf, ctx):
        self.passages = Counter()
        self.all = 0

    def process(self, tup):
        (ship,) = tup.values
        self.passages.update([ship] * WEIGHTS.get(ship, 1))
        self.all += 1
        self.emit([ship, self.passages[ship]])
