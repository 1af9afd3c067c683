"""Profitable areas and urban sensing over a real Redis: rows in, results out, under the application's own names."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bolts.latency.taxi import taxi_row
from bolts.query2.reference import reference_rows as areas
from bolts.urban import sensors
from bolts.urban.reference import made_lines
from bolts.urban.reference import reference_rows as cities
from tests.helpers.network_twin import Network
from topologies import query2, urban

ROWS, REPORTS = 1500, 280


def published(client, stream: str) -> list[tuple[int, str]]:
    """(number, row) of the entries, whose ids have the number."""
    entries = client.xrange(stream)
    assert all(entry == b"%d-0" % int(fields[b"n"]) for entry, fields in entries)
    assert all(float(fields[b"w0"]) <= float(fields[b"w"]) + 0.001 for _, fields in entries)
    return [(int(fields[b"n"]), fields[b"row"].decode()) for _, fields in entries]


def test_areas_are_ranked_from_the_stream_of_their_name(client, server, tmp_path: Path):
    rows = [taxi_row(9, number) for number in range(1, ROWS + 1)]
    for seq, row in enumerate(rows, 1):
        client.xadd("areas:rows", {"r": row.line, "t": row.dropoff_s}, id=f"{seq}-0")
    client.xadd("areas:rows", {"end": b"1"}, id=f"{ROWS + 1}-0")
    conf = {"leeward.redis.url": server.url, "query2.in": "areas:rows", "query2.pulse_s": 30, "storm.id": "q2-1"}
    network = Network(random.Random(2), conf, query2.Query2, query2.MAX_REPLICAS)
    network.run("data_source", lambda: client.hget("areas:rows:source", "ended") == b"1", burst=300, move=0.3)
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{row.line}\n" for row in rows))
    reference = list(areas([file], per="pulse", pulse_s=30))
    assert len(reference) == 14 and published(client, "query2:out") == reference
    assert int(client.hget("areas:rows:progress", "seq")) == ROWS + 1


def test_results_of_cities_are_in_the_stream_that_was_named(client, server, monkeypatch: pytest.MonkeyPatch):
    """Without `latency.rate`; the source's clock is passed over, so that the reports are due at once."""
    conf = {"leeward.redis.url": server.url, "urban.sensors": 14, "urban.out": "cities", "storm.id": "urban-1"}
    monkeypatch.setattr(sensors.Made, "due", lambda made, after, wait_s: after + 1)
    network = Network(random.Random(3), conf, urban.Urban, urban.MAX_REPLICAS)
    (source,) = network.tasks_of["sensors"]
    network.run("sensors", lambda: network.states[source].get("number", 0) >= REPORTS, burst=40, move=0.3)
    sent = network.states[source]["number"]
    reference = cities(made_lines(1, 14, sent))
    found = published(client, "cities")
    # the last interval has not ended
    assert len(found) > 100 and found == reference[: len(found)] and len(reference) - len(found) <= 7


def test_a_result_that_comes_again_is_not_published_again(client, server):
    conf = {"leeward.redis.url": server.url, "storm.id": "q2-2", "query2.out": "once"}
    network = Network(random.Random(4), conf, query2.Query2, query2.MAX_REPLICAS)
    sink = next(network.instances[task] for task in network.tasks_of["top_areas"] if network.states[task].groups)
    for _ in range(2):
        sink.publish(7, "row", w0="5.000000")
    assert published(client, "once") == [(7, "row")]
    assert sink.counters == {"results": 1, "repeats": 1}
