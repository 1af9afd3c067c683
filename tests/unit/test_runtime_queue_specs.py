"""Disciplines and queues as a topology is submitted with them."""

from __future__ import annotations

import json

import pytest
from streamparse import BatchingBolt

from leeward.core.errors import ConfigError
from leeward.policies.dssp.disciplines import EarliestDeadline, QueueingDeadline
from leeward.runtime import ElasticBolt, keyed, ordered_by
from leeward.runtime.dsl.queues import MOST_WAITING
from tests.helpers.queue_bolts import Source, Urgent, queue_conf


def test_a_name_travels_as_the_class_that_it_stands_for():
    conf = queue_conf(Urgent)["leeward.queue"]
    where = "leeward.policies.dssp.disciplines:EarliestDeadline"
    assert conf == {"discipline": where, "facts": {"due": "due"}, "most": MOST_WAITING, "keyed": False}
    assert queue_conf(Urgent, keyed("key"))["leeward.queue"]["keyed"]
    other = queue_conf(Urgent, queue=ordered_by(QueueingDeadline, due="due", unloaded=0.2))["leeward.queue"]
    assert other["discipline"].endswith(":QueueingDeadline") and other["facts"] == {"due": "due", "unloaded": 0.2}
    assert "leeward.queue" not in json.loads(Source.spec(name="pass").common.json_conf)


class Batches(BatchingBolt, ElasticBolt):
    outputs = ["key"]
    queue = ordered_by("dssp-edf", due="due")


class Misnamed(ElasticBolt):
    outputs = ["key"]
    queue = "dssp-edf"


def local_class():
    class Local(EarliestDeadline):
        pass

    return Local


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: queue_conf(Batches), "Batches has a queue, and derives from BatchingBolt.*Take away the queue"),
        (
            lambda: queue_conf(Misnamed),
            r"Misnamed: queue is 'dssp-edf', which orders nothing. Write queue = ",
        ),
        (
            lambda: queue_conf(Urgent, queue=ordered_by("dssp-edf", due="deadline")),
            r"Urgent orders its queue by 'deadline' \(due\), but pass declares 'key', 'due'. Name one of these, add",
        ),
        (lambda: queue_conf(Urgent, queue=ordered_by("dssp-efd", due="due")), "dssp-edf"),
        (lambda: queue_conf(Urgent, queue=ordered_by("json:dumps")), "json:dumps, which has no method next_item"),
        (lambda: queue_conf(Urgent, queue=ordered_by("nowhere:Edf")), "nowhere:Edf, which cannot be loaded.*into src/"),
        (
            lambda: queue_conf(Urgent, queue=ordered_by(EarliestDeadline())),
            "cannot travel to a worker. Make",
        ),
        (lambda: queue_conf(Urgent, queue=ordered_by(local_class())), "which a worker cannot import. Define the class"),
        (lambda: ordered_by("dssp-edf", execution=0.0), "execution is 0.0. Name a field, or give a number of seconds"),
        (lambda: ordered_by("dssp-edf", stages=1.5), "stages is 1.5. Name a field, or give a whole number"),
        (lambda: ordered_by("dssp-edf", due=float("nan")), "due is nan"),
        (lambda: ordered_by("dssp-edf", rank=True), "rank is True"),
        (lambda: ordered_by("dssp-salvage", weight=0), "weight is 0. Name a field, or give a number above 0"),
        (lambda: ordered_by("dssp-edf", most=0), "most is 0. Give the tuples that may wait, 1 or more"),
    ],
)
def test_queues_that_cannot_be_are_refused_at_submission(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
