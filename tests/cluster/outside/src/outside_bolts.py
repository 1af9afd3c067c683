"""A streamparse project of which only base classes were changed, and a top of the words on each tick."""

import os
import time
from collections import Counter

from leeward.runtime import StatefulBolt, StatefulSpout

WORDS = ("dog", "cat", "zebra", "elephant")


class Words(StatefulSpout):
    outputs = ("word",)

    def next_tuple(self):
        n = self.state["n"] = self.state.get("n", 0) + 1
        self.emit([WORDS[n % len(WORDS)]])
        time.sleep(0.005)


class WordCount(StatefulBolt):
    """Keeps its counts beside the state, as a streamparse bolt does whose base class alone was changed."""

    outputs = ("word", "count")

    def initialize(self, conf, ctx):
        self.counter = Counter()
        self.total = 0

    def process(self, tup):
        (word,) = tup.values
        self.counter.update([word])
        self.total = self.counter.total()
        self.emit([word, self.counter[word]])


class Top(StatefulBolt):
    """Sends its words by their counts on each tick, and its task."""

    outputs = ("task", "top")

    def process(self, tup):
        word, count = tup.values
        self.state[word] = count

    def process_tick(self, tup):
        self.emit([self.task_id, sorted(self.state)])


class Sink(StatefulBolt):
    """Appends a line for each top: the task, and how many words it had."""

    outputs = ()
    transient = ()

    def initialize(self, conf, ctx):
        self.file = os.open(conf["outside.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        task, top = tup.values
        os.write(self.file, f"{task} {len(top)}\n".encode())
