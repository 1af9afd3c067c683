"""Bolts with a queue, and what a topology has of it in its configuration."""

from __future__ import annotations

import json
import threading

from streamparse import Stream

from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout, balanced, ordered_by

FIELDS = ["key", "due"]


class Source(StatefulSpout):
    outputs = [Stream(FIELDS), Stream(FIELDS, name="more"), Stream(["key"], name="bare")]


class Urgent(ElasticBolt):
    """Sends the keys on in the order in which it gets them; stops at the key `gate` until told."""

    outputs = ["key"]
    queue = ordered_by("dssp-edf", due="due")
    exit_on_exception = False
    gate = threading.Event()

    def process(self, tup):
        if tup.values.key == "gate":
            self.gate.wait(30)
        if tup.values.key == "bad":
            raise ValueError("of the user")
        self.emit([tup.values.key])

    def process_tick(self, tup):
        self.emit(["tick"])

    def pulse(self, pulse):
        self.emit(["pulse"])


class Keyed(StatefulBolt):
    outputs = ["key"]
    queue = ordered_by("dssp-edf", due="due")

    def process(self, tup):
        self.state[tup.values.key] = self.state.get(tup.values.key, 0) + 1
        self.emit([tup.values.key, tup.values.due])


def queue_conf(cls, grouping=None, **options):
    """As the topology's configuration has it."""
    spec = cls.spec(inputs={Source.spec(name="pass"): grouping or balanced()}, **options)
    return {"leeward.queue": json.loads(spec.common.json_conf)["leeward.queue"]}
