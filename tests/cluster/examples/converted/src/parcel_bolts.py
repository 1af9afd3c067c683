"""Packages and what they depend on, in a table of SQL. Of the shape of a graph of CRAN's packages in Postgres."""

import re
import sqlite3

from ends import Feed

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout

PACKAGES = ("oakum", "pitch", "tar", "hemp", "canvas", "rivet")


class Descriptions(StatefulSpout):
    """In the place of a consumer of Kafka: each package's releases, one after the other."""

    outputs = ["package", "description"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)

    def next_tuple(self):
        sent = self.state.get("sent", 0)
        if not self.feed.open(sent):
            return
        release, which = divmod(sent, len(PACKAGES))
        needed = ", ".join(f"base{(which + more) % 4} (>= {release}.{more})" for more in range(1 + release % 3))
        self.emit([PACKAGES[which], f"Package: {PACKAGES[which]}\nDepends: {needed}\n"])
        self.state["sent"] = sent + 1


class Needs(ElasticBolt):
    outputs = ["package", "dependency"]

    def process(self, tup):
        package, description = tup.values
        for needed in re.findall(r"^Depends: (.*)$", description, re.MULTILINE)[0].split(", "):
            self.emit([package, needed])


class Rows(StatefulBolt):
    """A row for each package: its newest dependency, and how many it has had."""

    outputs = []

    def initialize(self, conf, ctx):
        self.base = sqlite3.connect(conf["examples.base"], timeout=30, isolation_level=None)
        self.base.execute("PRAGMA synchronous = OFF")
        self.base.execute("CREATE TABLE IF NOT EXISTS parcels (package TEXT PRIMARY KEY, newest TEXT, number INTEGER)")

    def process(self, tup):
        package, newest = tup.values
        number = self.state[package] = self.state.get(package, 0) + 1
        self.base.execute("INSERT OR REPLACE INTO parcels VALUES (?, ?, ?)", (package, newest, number))
