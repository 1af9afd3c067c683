"""Both ends of every example are the test's: the pace of the source and its end, and a file behind the last bolt."""

import json
import os
import time
from pathlib import Path

from leeward.runtime import StatefulBolt


class Feed:
    """Lets a source send until the test creates the file `examples.end`."""

    def __init__(self, conf):
        self.end = Path(conf["examples.end"])

    def open(self, sent):
        """Whether one more may be sent. If not, the file's neighbour says how many were."""
        time.sleep(0.01)
        if not self.end.exists():
            return True
        written = self.end.with_suffix(".writing")
        written.write_text(str(sent))
        written.replace(self.end.with_suffix(".sent"))  # the test never reads half of it
        return False


class Record(StatefulBolt):
    """Appends each tuple to the file `examples.out`, as a line of JSON."""

    outputs = []
    transient = ()

    def initialize(self, conf, ctx):
        self.file = os.open(conf["examples.out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process(self, tup):
        os.write(self.file, (json.dumps(list(tup.values)) + "\n").encode())
