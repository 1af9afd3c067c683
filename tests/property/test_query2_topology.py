"""Query 2 as it is declared, run in one process: any replicas, interleaving and moves; equal to the reference."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bolts.query1.data_source as data_source
import bolts.query1.result_sink as result_sink
from bolts.latency.taxi import taxi_lines
from bolts.query1.stores import Row
from bolts.query1.trips import Reject, parse_trip
from bolts.query2.areas import AREAS
from bolts.query2.reference import read_drives, rows_per_pulse
from bolts.reference import Line
from tests.helpers.network_twin import FakeSink, FakeStream, Network
from tests.helpers.shared_folder import RIDES, needs
from topologies import query1 as q1
from topologies import query2 as q2


def run_topology(lines, *, seed, pulse_s, profit_s=900, taxi_s=1800, burst=20, move=0.2):
    """The network and its sink after the end of the stream."""
    rows, t = [], 0
    for line in lines:
        trip = parse_trip(line)
        t = t if isinstance(trip, Reject) else trip.dropoff_s
        rows.append(Row(len(rows) + 1, line, t))
    stream, sink = FakeStream([*rows, Row(len(rows) + 1, None, 0)]), FakeSink()
    conf = {"query2.pulse_s": pulse_s, "query2.profit_s": profit_s, "query2.taxi_s": taxi_s}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_source, "open_redis", lambda conf, patient: None)
        patch.setattr(data_source, "TaxiStream", lambda client, settings: stream)
        patch.setattr(result_sink, "open_sink", lambda settings, conf: sink)
        network = Network(random.Random(seed), conf, q2.Query2, q2.MAX_REPLICAS)
        network.run("data_source", lambda: stream.ended, burst=burst, move=move)
    return network, sink


def expected(lines, *, pulse_s, profit_s=900, taxi_s=1800):
    rejects: Counter[str] = Counter()
    drives = read_drives((Line("-", 0, line) for line in lines), rejects=rejects)
    return list(rows_per_pulse(drives, pulse_s=pulse_s, profit_s=profit_s, taxi_s=taxi_s)), rejects


def csv_line(t: int, start: tuple[int, int], end: tuple[int, int], taxi: str, fare: str) -> str:
    when = f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"
    degrees = [
        f"{degree:.6f}"
        for east, south in (start, end)
        for degree in (AREAS.lon + (east - 1) * AREAS.cell_lon, AREAS.lat - (south - 1) * AREAS.cell_lat)
    ]
    return ",".join([taxi, "h", when, when, "0", "0", *degrees, "CSH", fare, "0", "0", "0.5", "0", "0"])


#: Few areas, so that they meet often, or enough for an eleventh; (0, 1) lies outside.
FEW = st.sampled_from([(1, 1), (600, 600), (0, 1)])
MANY = st.sampled_from([(1, n) for n in range(1, 14)] + [(0, 1)])
GAPS = st.sampled_from([0, 0, 0, 1, 7, 59, 60, 61, 119, 299, 300, 301, 599, 600, 601, 2000])
BAD = st.sampled_from(["", "a,b", csv_line(0, (1, 1), (1, 1), "", "1"), csv_line(0, (1, 1), (1, 1), "m", "-1")])


@st.composite
def inputs(draw):
    t, lines, cells = 1_356_998_400, [], draw(st.sampled_from([FEW, MANY]))
    gaps = draw(st.sampled_from([GAPS, st.sampled_from([0, 0, 1, 20])]))
    for _ in range(draw(st.integers(0, 60))):
        t += draw(gaps)
        taxi, fare = f"m{draw(st.integers(0, 7))}", draw(st.sampled_from(["0", "3", "3.5", "4.25", "12"]))
        bad = draw(st.integers(0, 9)) == 0
        lines.append(draw(BAD) if bad else csv_line(t, draw(cells), draw(cells), taxi, fare))
    return lines


@pytest.mark.long
@settings(max_examples=100)
@given(lines=inputs(), seed=st.integers(0, 2**32), pulse_s=st.sampled_from([1, 60, 61, 600]))
def test_any_replicas_interleaving_and_moves_give_the_reference(lines, seed, pulse_s):
    network, sink = run_topology(lines, seed=seed, pulse_s=pulse_s, profit_s=300, taxi_s=600)
    results, rejects = expected(lines, pulse_s=pulse_s, profit_s=300, taxi_s=600)
    assert sink.results == results
    assert network.counters["parser"] + network.counters["locate"] == rejects


@settings(max_examples=10)
@given(lines=inputs(), seed=st.integers(0, 2**32))
def test_state_is_forgotten_with_its_windows(lines, seed):
    """Long after the last row, one row more: nothing of the others is left."""
    later = csv_line(1_400_000_000, (5, 5), (5, 5), "late", "3")
    network, _ = run_topology([*lines, later], seed=seed, pulse_s=60, profit_s=300, taxi_s=600)
    for name, keys in (("profit_by_area", {"5.5"}), ("empty_taxis", {"late"}), ("rank_areas", {"5.5"})):
        assert {key for task in network.tasks_of[name] for key in network.states[task]} == keys


def test_made_rows_give_the_reference():
    lines = list(taxi_lines(3, 3000))
    network, sink = run_topology(lines, seed=5, pulse_s=30, burst=300, move=0.3)
    results, rejects = expected(lines, pulse_s=30)
    assert len(results) > 20 and sink.results == results
    assert network.counters["parser"] + network.counters["locate"] == rejects


@needs(RIDES)
def test_the_real_rows_give_the_reference():
    with gzip.open(RIDES, "rt") as file:
        lines = [line.rstrip("\n") for line in file]
    network, sink = run_topology(lines, seed=7, pulse_s=60, burst=400, move=0.3)
    results, rejects = expected(lines, pulse_s=60)
    assert len(results) == 41 and "NULL" not in results[-1].row
    assert sink.results == results
    assert network.counters["parser"] + network.counters["locate"] == rejects


@pytest.mark.parametrize(("name", "module", "topology"), [("query1", q1, q1.Query1), ("query2", q2, q2.Query2)])
def test_made_rows_go_through_the_whole_and_their_times_beside(name, module, topology, tmp_path):
    """As the comparison of latencies runs it: nothing patched, no Redis; times grow, and rows are the reference's."""
    notes = tmp_path / "notes"
    conf = {"latency.rate": 1e6, "latency.seconds": 0.0015, "latency.seed": 4, "latency.out": str(notes)}
    network = Network(random.Random(1), conf | {f"{name}.pulse_s": 60}, topology, module.MAX_REPLICAS)

    def ended() -> bool:
        return any(network.states[task].get("ended") for task in network.tasks_of["data_source"])

    network.run("data_source", ended, burst=300, move=0.3)
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{line}\n" for line in taxi_lines(4, 1500)))
    reference = __import__(f"bolts.{name}.reference", fromlist=["reference_rows"])
    wanted = list(reference.reference_rows([file], per="pulse", pulse_s=60))
    assert len(wanted) == 7 and [(line["seq"], line["row"]) for line in lines] == wanted
    assert all(line["sent"] <= line["received"] for line in lines)
    assert [line["sent"] for line in lines] == sorted(line["sent"] for line in lines)
