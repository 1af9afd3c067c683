"""Clicks in JSON, counted by page in batches between ticks. Of the shape of streamparse's pixel count on Kafka."""

import json

from ends import Feed
from streamparse import BatchingBolt

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout

PAGES = tuple(f"/page/{number}" for number in range(11))


class Clicks(StatefulSpout):
    """In the place of a Java spout on Kafka."""

    outputs = ["click"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)

    def next_tuple(self):
        sent = self.state.get("sent", 0)
        if not self.feed.open(sent):
            return
        click = {"page": PAGES[sent * sent % len(PAGES)], "visitor": f"v{sent % 97}", "at": sent}
        self.emit([json.dumps(click)])
        self.state["sent"] = sent + 1


class Decode(ElasticBolt):
    outputs = ["visitor", "at", "page"]

    def process(self, tup):
        click = json.loads(tup.values[0])
        self.emit([click.get("visitor"), click.get("at"), click.get("page")])


class PageCount(BatchingBolt, StatefulBolt):
    outputs = ["page", "clicks"]

    def group_key(self, tup):
        return tup.values[2]

    def process_batch(self, page, tups):
        self.state[page] = self.state.get(page, 0) + len(tups)
        self.emit([page, self.state[page]])
