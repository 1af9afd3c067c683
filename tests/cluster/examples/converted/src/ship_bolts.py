"""Ships that pass a lighthouse, tallied in memory. Of the shape of streamparse's word count."""

from ends import Feed

from leeward.runtime import StatefulBolt, StatefulSpout

SHIPS = ("yawl", "ketch", "sloop", "cutter", "ferry", "tug", "barge")


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
    """A ferry passes there and back."""

    outputs = ["ship", "passages"]
    transient = ("all",)

    def initialize(self, conf, ctx):
        self.all = 0

    def add(self, ship, more):
        self.state[ship] = self.state.get(ship, 0) + more
        self.all += more

    def process(self, tup):
        ship = tup.values[0]
        self.add(ship, 2 if ship == "ferry" else 1)
        if self.all % 500 == 0:
            self.logger.info("%d passages so far", self.all)
        self.emit([ship, self.state[ship]])
