"""The most frequent words of a file: five steps, each by its words. Of the shape of a course's top word finder."""

import time
from collections import Counter
from itertools import cycle
from pathlib import Path

from ends import Feed
from streamparse import Bolt, Spout


class Reader(Spout):
    """Reads the file `examples.text` over and over."""

    outputs = ["line"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.lines = cycle(Path(conf["examples.text"]).read_text().splitlines())
        self.sent = 0

    def next_tuple(self):
        if not self.feed.open(self.sent):
            return
        self.emit([next(self.lines)])
        self.sent += 1


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


class Fold(Bolt):
    """To lower case, and without words that say nothing."""

    outputs = ["word"]

    def initialize(self, conf, ctx):
        self.dull = {"the", "and", "of", "to"}

    def process(self, tup):
        word = tup.values[0].lower()
        if word not in self.dull:
            self.emit([word])


class Count(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])


class Top(Bolt):
    """Reports the ten most frequent words: at a tuple, if the last report is older than 0.2 s, and at each tick."""

    outputs = ["top"]

    def initialize(self, conf, ctx):
        self.counts = Counter()
        self.reported = time.time()

    def process(self, tup):
        word, count = tup.values
        self.counts[word] = count
        if time.time() - self.reported >= 0.2:
            self.report()

    def process_tick(self, tup):
        self.report()

    def report(self):
        self.reported = time.time()
        top = sorted(self.counts.items(), key=lambda entry: (-entry[1], entry[0]))
        self.emit([top[:10]])
