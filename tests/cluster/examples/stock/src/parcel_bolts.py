"""Packages and what they depend on, in a table of SQL. Of the shape of a graph of CRAN's packages in Postgres."""

import re
import sqlite3

from ends import Feed
from streamparse import Bolt, Spout

PACKAGES = ("oakum", "pitch", "tar", "hemp", "canvas", "rivet")


class Descriptions(Spout):
    """In the place of a consumer of Kafka: each package's releases, one after the other."""

    outputs = ["package", "description"]

    def initialize(self, conf, ctx):
        self.feed = Feed(conf)
        self.sent = 0

    def next_tuple(self):
        if not self.feed.open(self.sent):
            return
        release, which = divmod(self.sent, len(PACKAGES))
        needed = ", ".join(f"base{(which + more) % 4} (>= {release}.{more})" for more in range(1 + release % 3))
        self.emit([PACKAGES[which], f"Package: {PACKAGES[which]}\nDepends: {needed}\n"])
        self.sent += 1


class Needs(Bolt):
    outputs = ["package", "dependency"]

    def process(self, tup):
        package, description = tup.values
        for needed in re.findall(r"^Depends: (.*)$", description, re.MULTILINE)[0].split(", "):
            self.emit([package, needed])


class Rows(Bolt):
    """A row for each package: its newest dependency, and how many it has had."""

    outputs = []

    def initialize(self, conf, ctx):
        self.base = sqlite3.connect(conf["examples.base"], timeout=30, isolation_level=None)
        self.base.execute("PRAGMA synchronous = OFF")
        self.base.execute("CREATE TABLE IF NOT EXISTS parcels (package TEXT PRIMARY KEY, newest TEXT, number INTEGER)")

    def process(self, tup):
        package, newest = tup.values
        found = self.base.execute("SELECT number FROM parcels WHERE package = ?", (package,)).fetchone()
        number = found[0] + 1 if found else 1
        if found:
            self.base.execute("UPDATE parcels SET newest = ?, number = ? WHERE package = ?", (newest, number, package))
        else:
            self.base.execute("INSERT INTO parcels VALUES (?, ?, ?)", (package, newest, number))
