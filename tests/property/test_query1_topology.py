"""The topology as it is declared, run in one process: any replicas, any interleaving, moves; equal to the
reference (`tests/helpers/network_twin.py`)."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bolts.query1.data_source as data_source
import bolts.query1.result_sink as result_sink
from bolts.query1.grid import Grid
from bolts.query1.reference import read_rides, rows_per_pulse
from bolts.query1.stores import Row
from bolts.query1.trips import Reject, parse_trip
from bolts.reference import Line
from tests.helpers.network_twin import FakeSink, FakeStream, Network
from tests.helpers.shared_folder import RIDES, needs
from topologies.query1 import MAX_REPLICAS, Query1


def run_topology(lines, *, seed, pulse_s, window_s=1800, burst=20, move=0.2, replayed=None) -> tuple[Network, FakeSink]:
    """The network and its sink after the end of the stream. `replayed`: which lines the replay sends (default: all)."""
    rows, t = [], 0
    for line in lines:
        trip = parse_trip(line)
        t = t if isinstance(trip, Reject) else trip.dropoff_s
        if replayed is None or replayed(trip):
            rows.append(Row(len(rows) + 1, line, t))
    rows.append(Row(len(rows) + 1, None, 0))
    stream, sink = FakeStream(rows), FakeSink()
    conf = {"query1.pulse_s": pulse_s, "query1.window_s": window_s}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_source, "open_redis", lambda conf, patient: None)
        patch.setattr(data_source, "TaxiStream", lambda client, settings: stream)
        patch.setattr(result_sink, "open_sink", lambda settings, conf: sink)
        network = Network(random.Random(seed), conf, Query1, MAX_REPLICAS)
        network.run("data_source", lambda: stream.ended, burst=burst, move=move)
    assert stream.progress == len(rows)
    return network, sink


def expected(lines, *, pulse_s, window_s=1800):
    rejects: Counter[str] = Counter()
    rides = read_rides((Line("-", 0, line) for line in lines), grid=Grid(), rejects=rejects)
    return list(rows_per_pulse(rides, pulse_s=pulse_s, window_s=window_s)), rejects


def csv_line(t: int, start: tuple[int, int], end: tuple[int, int]) -> str:
    grid = Grid()
    when = f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"
    degrees = [
        f"{degree:.6f}"
        for east, south in (start, end)
        for degree in (grid.lon + (east - 1) * grid.cell_lon, grid.lat - (south - 1) * grid.cell_lat)
    ]
    return ",".join(["m", "h", when, when, "0", "0", *degrees, "CSH", "0", "0", "0", "0", "0", "0"])


#: Few routes, so that they meet often, or enough for an eleventh; (0, 1) lies outside.
FEW = st.sampled_from([(1, 1), (300, 300), (0, 1)])
MANY = st.sampled_from([(1, 1), (1, 2), (2, 1), (300, 300), (150, 160), (0, 1)])
#: Seconds between rows: sparse, around pulses and window; dense, for many ties.
DENSE = st.sampled_from([0, 0, 0, 1, 20])
SPARSE = st.sampled_from([0, 0, 0, 1, 7, 30, 59, 60, 61, 119, 300, 539, 540, 541, 599, 600, 601, 2000])
BAD = st.sampled_from(["", "a,b", "x," * 16, csv_line(0, (1, 1), (1, 1)).replace("CSH", "CSH,CSH")])


@st.composite
def inputs(draw):
    t, lines, cells = 1_356_998_400, [], draw(st.sampled_from([FEW, MANY]))
    gaps = draw(st.sampled_from([DENSE, SPARSE]))
    for _ in range(draw(st.integers(0, 60))):
        t += draw(gaps)
        lines.append(draw(BAD) if draw(st.integers(0, 9)) == 0 else csv_line(t, draw(cells), draw(cells)))
    return lines


@pytest.mark.long
@settings(max_examples=100)
@given(lines=inputs(), seed=st.integers(0, 2**32), pulse_s=st.sampled_from([1, 60, 61, 600]))
def test_any_replicas_interleaving_and_moves_give_the_reference(lines, seed, pulse_s):
    network, sink = run_topology(lines, seed=seed, pulse_s=pulse_s, window_s=600)
    results, rejects = expected(lines, pulse_s=pulse_s, window_s=600)
    assert sink.results == results
    assert network.counters["parser"] + network.counters["filter_by_coordinates"] == rejects


@settings(max_examples=20)
@given(lines=inputs(), seed=st.integers(0, 2**32))
def test_it_does_not_matter_whether_the_replay_sends_rejected_rows(lines, seed):
    def parses(trip):
        return not isinstance(trip, Reject)

    _, sink = run_topology(lines, seed=seed, pulse_s=60, window_s=600, replayed=parses)
    assert sink.results == expected(lines, pulse_s=60, window_s=600)[0]


@needs(RIDES)
def test_the_real_rows_give_the_reference():
    with gzip.open(RIDES, "rt") as file:
        lines = [line.rstrip("\n") for line in file]
    network, sink = run_topology(lines, seed=7, pulse_s=60, burst=400, move=0.3)
    results, rejects = expected(lines, pulse_s=60)
    assert len(results) == 44
    assert sink.results == results
    assert network.counters["filter_by_coordinates"] == rejects == {"outside": 128}
    print("sent", network.sent)
