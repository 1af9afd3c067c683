"""Clicks in JSON, counted by page in batches between ticks. Of the shape of streamparse's pixel count on Kafka."""

import json
from collections import Counter

from ends import Feed
from streamparse import BatchingBolt, Bolt, Spout

PAGES = tuple(f"/page/{number}" for number in range(11))


class Clicks(Spout):
    """In the place of a Java spout on Kafka."""

    outputs = ["click"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.sent = 0

    def next_tuple(self):
        if not self.feed.open(self.sent):
            return
        click = {"page": PAGES[self.sent * self.sent % len(PAGES)], "visitor": f"v{self.sent % 97}", "at": self.sent}
        self.emit([json.dumps(click)])
        self.sent += 1


class Decode(Bolt):
    outputs = ["visitor", "at", "page"]

    def process(self, tup):
        click = json.loads(tup.values[0])
        self.emit([click.get("visitor"), click.get("at"), click.get("page")])


class PageCount(BatchingBolt):
    outputs = ["page", "clicks"]

    def initialize(self, conf, ctx):
        self.clicks = Counter()

    def group_key(self, tup):
        return tup.values[2]

    def process_batch(self, page, tups):
        self.clicks[page] += len(tups)
        self.emit([page, self.clicks[page]])
