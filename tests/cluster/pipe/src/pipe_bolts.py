"""Every value through four workers: Leeward's components by frames, a stock bolt by JSON."""

import os

from pipe_values import ALL, JSON, UNFIT, told
from streamparse import Bolt, Stream

from leeward.runtime import StatefulBolt, StatefulSpout


class Diary:
    """Lines of one component, appended to a file."""

    def __init__(self, conf, name):
        self.file = os.open(f"{conf['pipe.out']}.{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, *words):
        os.write(self.file, (" ".join(map(str, words)) + "\n").encode())


class Source(StatefulSpout):
    outputs = ["i", "value"]

    def next_tuple(self):
        i = self.state.get("i", 0)
        if i < len(ALL):
            self.state["i"] = i + 1
            self.emit([i, ALL[i]])


class Echo(StatefulBolt):
    outputs = [
        Stream(fields=["i", "value"]),
        Stream(fields=["i", "value"], name="plain"),
        Stream(fields=["i"], name="direct", direct=True),
    ]
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.diary = Diary(conf, "echo")
        self.stock = next(int(task) for task, name in context["task->component"].items() if name == "stock")

    def process(self, tup):
        i, value = tup.values
        print("printed by the user")
        os.write(1, b"written by a library\n")
        self.diary.write(i, told(value))
        if i == 0:
            for unfit in UNFIT:
                self.emit([i, unfit])
        tasks = self.emit([i, value], need_task_ids=True)
        self.diary.write("ids", i, tasks)
        if i < len(JSON):
            self.emit([i, value], stream="plain")
            self.emit([i], stream="direct", direct_task=self.stock)


class Last(StatefulBolt):
    outputs = []
    transient = ()  # keeps nothing that would be lost

    def initialize(self, conf, context):
        self.diary = Diary(conf, "last")

    def process(self, tup):
        self.diary.write(tup.values.i, told(tup.values.value))


class Stock(Bolt):
    """As streamparse ships it; it knows nothing of Leeward."""

    outputs = ["i"]

    def initialize(self, conf, context):
        self.diary = Diary(conf, "stock")

    def process(self, tup):
        self.diary.write(tup.stream, *([told(value) for value in tup.values]))
        self.emit([tup.values.i])
