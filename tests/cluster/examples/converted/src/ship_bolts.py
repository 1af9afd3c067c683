"""Ships that pass a lighthouse, tallied in memory. Of the shape of streamparse's word count."""

from ends import Feed

from leeward.runtime import StatefulBolt, StatefulSpout

SHIPS = ("yawl", "ketch", "sloop", "cutter", "ferry", "tug", "barge")
WEIGHTS = {"ferry": 2}


class Lookout(StatefulSpout):
    outputs = ["ship"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)

    def next_tuple(self):
        sent = self.state.get("sent", 0)
        if not self.feed.open(sent):
            return
        self.emit([SHIPS[sent % len(SHIPS)]])
        self.state["sent"] = sent + 1


class Tally(StatefulBolt):
    """Weighs a ferry twice, as it passes there and back."""

    outputs = ["ship", "passages"]
    transient = ("all",)

    def initialize(self, conf, ctx):
        self.all = 0

    def process(self, tup):
        (ship,) = tup.values
        self.state[ship] = self.state.get(ship, 0) + WEIGHTS.get(ship, 1)
        self.all += 1
        self.emit([ship, self.state[ship]])
