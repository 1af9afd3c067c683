"""What query 1's source and sink ask of a real Redis."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from bolts.query1.data_source import DataSource
from bolts.query1.settings import read_settings
from bolts.query1.stores import InputLostError, RedisSink, Result, Row, TaxiStream
from leeward.adapters.redis import RedisSnapshots
from leeward.core.errors import FencedError
from leeward.runtime import FencingToken, open_redis


@pytest.fixture
def client(server):
    client = open_redis({"leeward.redis.url": server.url}, patient=True)
    client.flushall()
    return client


def fill(client, *rows: tuple[int, dict]) -> None:
    for seq, fields in rows:
        client.xadd("taxi:in", fields, id=f"{seq}-0")


def taxi_stream(client, **conf) -> TaxiStream:
    return TaxiStream(client, read_settings({"query1.batch": 2, **conf}))


def test_rows_come_in_batches_and_in_order(client):
    rows = [(n, {"r": b"row %d" % n, "t": 100 + n, "w": 1.5}) for n in (1, 2, 3)]
    fill(client, *rows, (4, {"end": b"1"}))
    stream = taxi_stream(client)
    assert stream.fetch(0, wait_ms=1) == [Row(1, "row 1", 101), Row(2, "row 2", 102)]
    assert stream.fetch(2, wait_ms=1) == [Row(3, "row 3", 103), Row(4, None, 0)]
    assert stream.fetch(4, wait_ms=1) == []


def test_a_fetch_waits_for_the_next_row(client):
    threading.Timer(0.2, fill, [client, (1, {"r": b"late", "t": 7})]).start()
    assert taxi_stream(client).fetch(0, wait_ms=5000) == [Row(1, "late", 7)]


def test_bytes_that_are_no_text_are_a_row_all_the_same(client):
    fill(client, (1, {"r": b"a\xff,b", "t": 7}))
    assert taxi_stream(client).fetch(0, wait_ms=1) == [Row(1, "a\ufffd,b", 7)]


@pytest.mark.parametrize("first", [2, 5])
def test_a_gap_is_an_error_that_names_it(client, first):
    fill(client, (first, {"r": b"x", "t": 7}))
    with pytest.raises(InputLostError, match=f"after row 0 comes row {first}"):
        taxi_stream(client).fetch(0, wait_ms=1)


def test_a_stream_that_begins_later_is_read_from_its_first_row(server, client):
    client.hset("taxi:in:replay", "first", 5)
    assert taxi_stream(client).fetch(0, wait_ms=1) == []
    fill(client, *((n, {"r": b"row %d" % n, "t": 60 * n}) for n in (5, 6, 7)))
    assert [row.seq for row in taxi_stream(client).fetch(0, wait_ms=1)] == [5, 6]
    source = LocalSource(server.url, {})
    for _ in range(2):
        source.next_tuple()
    assert source.out == [("row 5", 5), (5, 360), ("row 6", 6)]
    with pytest.raises(InputLostError, match="after row 3 comes row 5"):
        taxi_stream(client).fetch(3, wait_ms=1)
    client.xtrim("taxi:in", minid=6, approximate=False)
    with pytest.raises(InputLostError, match="after row 4 comes row 6"):
        taxi_stream(client).fetch(0, wait_ms=1)


def test_progress_is_told_and_its_rows_removed(client):
    fill(client, *((n, {"r": b"x" * 100, "t": n}) for n in range(1, 1001)))
    taxi_stream(client).publish_progress(900)
    assert client.hgetall("taxi:in:progress") == {b"seq": b"900"}
    assert client.xlen("taxi:in") < 300  # whole nodes of the stream are removed
    assert taxi_stream(client).fetch(900, wait_ms=1)[0].seq == 901
    taxi_stream(client, **{"query1.trim": False}).publish_progress(1000)
    assert client.xlen("taxi:in") > 100


def test_a_repeated_result_is_seen_and_ignored(client):
    sink = RedisSink(client, "query1:out", "t-1")
    assert sink.publish(Result(7, "first", "2.0", "1.0"))
    assert sink.publish(Result(9, "second", "3.0", "2.5"))
    assert not sink.publish(Result(7, "first", "4.0", "1.0"))
    assert not sink.publish(Result(9, "second", "4.0", "2.5"))
    assert client.xrange("query1:out") == [
        (b"7-0", {b"row": b"first", b"n": b"7", b"w": b"2.0", b"w0": b"1.0"}),
        (b"9-0", {b"row": b"second", b"n": b"9", b"w": b"3.0", b"w0": b"2.5"}),
    ]


def test_another_refusal_is_no_repeat(client):
    import redis

    client.set("query1:out", "not a stream")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        RedisSink(client, "query1:out", "t-1").publish(Result(1, "row", "1", "1"))


def test_source_and_sink_wait_out_an_absence_of_redis(server, client):
    fill(client, (1, {"r": b"x", "t": 7}))
    server.stop()
    threading.Timer(1.0, server.start).start()
    start = time.monotonic()
    assert RedisSink(client, "query1:out", "t-1").publish(Result(1, "row", "1", "1"))
    assert time.monotonic() - start > 0.5
    assert taxi_stream(client).fetch(0, wait_ms=1) == [Row(1, "x", 7)]
    assert client.xlen("query1:out") == 1


class LocalSource(DataSource):
    """The spout's own code without Storm: what it emits is kept in `out`."""

    def __init__(self, url: str, state: dict) -> None:
        self.state, self.out, self.counters = state, [], Counter()
        self.initialize({"leeward.redis.url": url}, {})
        self.resumed()

    def emit(self, values) -> None:
        self.out.append(tuple(values))

    def emit_pulse(self, number, data) -> None:
        self.out.append((number, data["t"]))


def test_the_source_goes_on_where_its_state_says(server, client):
    fill(client, (1, {"r": b"a", "t": 60}), (2, {"r": b"b", "t": 119}), (3, {"r": b"c", "t": 300}))
    first = LocalSource(server.url, {})
    for _ in range(3):
        first.next_tuple()
    assert first.out == [("a", 1), ("b", 2), (1, 120), ("c", 3)]
    first.next_tuple()  # nothing there
    moved = LocalSource(server.url, {**first.state, "seq": 2, "interval": 1})
    fill(client, (4, {"end": b"1"}))
    for _ in range(3):
        moved.next_tuple()
    assert moved.out == [(1, 120), ("c", 3), (5, 360)]
    assert client.hgetall("taxi:in:source") == {b"ended": b"1"}
    assert moved.state == {"seq": 4, "interval": 5, "ended": 1}


def test_a_source_that_ended_says_so_again_after_a_move(server, client):
    source = LocalSource(server.url, {"seq": 4, "interval": 5, "ended": 1})
    source.next_tuple()
    assert source.out == []
    assert client.hget("taxi:in:source", "ended") == b"1"


def test_committed_state_is_progress(server, client):
    source = LocalSource(server.url, {})
    source.committed({})
    assert not client.exists("taxi:in:progress")
    source.committed({"seq": 12, "interval": 3})
    assert client.hget("taxi:in:progress", "seq") == b"12"


def test_a_sink_that_was_replaced_writes_nothing_more(server, client):
    """Found on a real cluster: a sink that was stopped, replaced and woke up wrote one more result."""
    sink = RedisSink(client, "query1:out", "t-1")
    assert sink.publish(Result(1, "row", "1", "1"), FencingToken(base=0, epoch=4))
    RedisSnapshots(server.url).raise_fence("t-1", 7, 7)
    with pytest.raises(FencedError, match="base 0 may not write"):
        sink.publish(Result(2, "row", "1", "1"), FencingToken(base=0, epoch=4))
    assert client.xlen("query1:out") == 1
    assert sink.publish(Result(2, "row", "1", "1"), FencingToken(base=7, epoch=0))
