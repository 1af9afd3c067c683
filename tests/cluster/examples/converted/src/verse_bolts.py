"""The most frequent words of a file: five steps, each by its words. Of the shape of a course's top word finder."""

import time
from pathlib import Path

from ends import Feed

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout


class Reader(StatefulSpout):
    """Reads the file `examples.text` over and over."""

    outputs = ["line"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.lines = Path(conf["examples.text"]).read_text().splitlines()

    def next_tuple(self):
        sent = self.state.get("sent", 0)
        if not self.feed.open(sent):
            return
        self.emit([self.lines[sent % len(self.lines)]])
        self.state["sent"] = sent + 1


class Split(ElasticBolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


class Fold(ElasticBolt):
    """To lower case, and without words that say nothing."""

    outputs = ["word"]

    def initialize(self, conf, ctx):
        self.dull = {"the", "and", "of", "to"}

    def process(self, tup):
        word = tup.values[0].lower()
        if word not in self.dull:
            self.emit([word])


class Count(StatefulBolt):
    outputs = ["word", "count"]

    def process(self, tup):
        word = tup.values[0]
        self.state[word] = self.state.get(word, 0) + 1
        self.emit([word, self.state[word]])


class Top(StatefulBolt):
    """Reports the ten most frequent words: at a tuple, if the last report is older than 0.2 s, and at each tick."""

    outputs = ["top"]
    transient = ("reported",)

    def initialize(self, conf, ctx):
        self.reported = time.time()

    def process(self, tup):
        word, count = tup.values
        self.state[word] = count
        if time.time() - self.reported >= 0.2:
            self.report()

    def process_tick(self, tup):
        self.report()

    def report(self):
        self.reported = time.time()
        top = sorted(self.state.items(), key=lambda entry: (-entry[1], entry[0]))
        self.emit([top[:10]])
