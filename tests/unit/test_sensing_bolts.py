"""The bolts that take readings for domains, without Storm and Redis; and the entries of their streams."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from bolts.sensing.sense import Sense, reading
from leeward.cli._dssp_domain import _order
from leeward.core.asks import Ask, answer_fields, answer_of, ask_of
from leeward.core.errors import ConfigError
from leeward.policies.dssp.agents.queues import Subtask
from topologies.sensing import MOST_REPLICAS, Sensing

ASK = Ask(id="a-1", query=7, arrived=1795670000.25, due=1795670001.5, unloaded=0.125)


def encoded(fields) -> dict[bytes, bytes]:
    """As Redis gives them back."""
    return {str(name).encode(): str(value).encode() for name, value in fields.items()}


def test_an_ask_survives_its_entry():
    assert ask_of(encoded(ASK.to_fields())) == ASK
    assert ask_of(encoded(ASK._replace(due=1795670001.1234567).to_fields())).due == 1795670001.123457


def test_an_order_has_its_times_on_the_wall_clock():
    subtask = Subtask(
        task=("city", "city-3f-8"), node=0, arrived=100.0, rank=0, due=101.5, unloaded=0.25, execution=0.1, stages=1
    )
    order = _order(subtask, 1795670000.0)
    assert order == {"query": 7, "arrived": 1795670100.0, "due": 1795670101.5, "unloaded": 0.25}
    assert Ask(id="a-1", **order).query == 7


@pytest.mark.parametrize("wrong", [{"due": "soon"}, {"due": "nan"}, {"query": "1.5"}, {"arrived": "inf"}, {"id": None}])
def test_an_entry_that_is_no_ask_is_none(wrong):
    fields = {name: value for name, value in (ASK.to_fields() | wrong).items() if value is not None}
    assert ask_of(encoded(fields)) is None


@pytest.mark.parametrize("text, value", [("19.25", 19.25), ("", None), ("nan", None), ("warm", None)])
def test_an_answer_has_a_finite_reading_or_none(text, value):
    assert answer_of(encoded(answer_fields("a-1", text))) == ("a-1", value)


def sensed(kind: type[Sense], query: int) -> tuple[list, dict]:
    """Its emitted tuples, and its counters."""
    bolt, emitted = kind(), []
    bolt.emit = emitted.append
    bolt.process(SimpleNamespace(values=[ASK.id, query, *ASK[2:]]))
    return emitted, dict(bolt.counters)


class Broken(Sense):
    def read(self, query: int) -> float | None:
        if query < 0:
            raise OSError("no sensor")
        return None if query == 0 else float("inf")


def test_a_reading_travels_as_text_and_the_lack_of_one_as_none():
    assert sensed(Sense, 7) == ([["a-1", repr(reading(7))]], {})
    assert all(15 <= reading(query) < 25 for query in range(-300, 300))
    assert sensed(Broken, 0) == sensed(Broken, 1) == ([["a-1", ""]], {})
    assert sensed(Broken, -1) == ([["a-1", ""]], {"failed: OSError": 1})


def test_the_topology_orders_what_waits_for_sense_by_its_deadlines():
    sense = next(spec for spec in Sensing.specs if spec.name == "sense")
    queue = json.loads(sense.common.json_conf)["leeward.queue"]
    assert sense.par == MOST_REPLICAS and queue["discipline"].endswith(":QueueingDeadline")
    assert set(queue["facts"]) == {"arrived", "due", "unloaded"}


def test_a_stream_without_a_name_is_refused():
    from bolts.sensing.streams import Streams

    with pytest.raises(ConfigError, match=r"sensing\.stream is ''"):
        Streams({"sensing.stream": "", "leeward.redis.url": "redis://127.0.0.1:1/0"})
