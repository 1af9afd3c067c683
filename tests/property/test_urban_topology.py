"""Urban sensing as it is declared, run in one process: any replicas, interleaving and moves; equal to the reference."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bolts.query1.result_sink as result_sink
import bolts.urban.sensors as sensors
from bolts.urban.places import Figures, PlaceWindow, Smoothing
from bolts.urban.reference import made_lines, reference_rows
from tests.helpers.network_twin import FakeSink, Network
from topologies.urban import MAX_REPLICAS, Urban


def run_topology(conf: dict, *, seed: int, burst: int, move: float) -> tuple[Network, FakeSink]:
    """The network and its sink after the last report."""
    sink = FakeSink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_sink, "open_sink", lambda settings, conf: sink)
        network = Network(random.Random(seed), conf, Urban, MAX_REPLICAS)

        def ended() -> bool:
            return any(network.states[task].get("ended") for task in network.tasks_of["sensors"])

        network.run("sensors", ended, burst=burst, move=move)
    return network, sink


@pytest.mark.long
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32), count=st.integers(1, 280), own=st.sampled_from([1, 2, 5]),
    pulse_s=st.sampled_from([1, 10, 60]), panes=st.integers(1, 3),
)  # fmt: skip
def test_any_replicas_interleaving_and_moves_give_the_reference(seed, count, own, pulse_s, panes):
    conf = {
        "latency.rate": 1e6, "latency.seconds": count / 1e6, "latency.seed": seed, "urban.sensors": 7 * own,
        "urban.pulse_s": pulse_s, "urban.window_s": pulse_s * panes,
    }  # fmt: skip
    network, sink = run_topology(conf, seed=seed, burst=30, move=0.2)
    drops: Counter[str] = Counter()
    lines = made_lines(seed, 7 * own, count)
    assert sink.results == reference_rows(lines, pulse_s=pulse_s, window_s=pulse_s * panes, drops=drops)
    assert network.counters["parser"] == drops


def test_reports_that_are_none_are_counted_and_the_rest_counts(monkeypatch, tmp_path):
    """Garbled lines at the source, and no Redis: the rows of the sink's file."""

    def garbled(seed: int, number: int, each: int) -> tuple[str, str]:
        sensor, line = made(seed, number, each)
        return sensor, line if number % 3 else line.replace(",", ";", 1)

    made = sensors.made_report
    monkeypatch.setattr(sensors, "made_report", garbled)
    notes = tmp_path / "notes"
    conf = {"latency.rate": 1e6, "latency.seconds": 210 / 1e6, "urban.sensors": 14, "latency.out": str(notes)}
    network = Network(random.Random(1), conf, Urban, MAX_REPLICAS)
    network.run(
        "sensors",
        lambda: any(network.states[task].get("ended") for task in network.tasks_of["sensors"]),
        burst=50,
        move=0.2,
    )
    lines = [json.loads(line) for line in notes.read_text().splitlines()]
    drops: Counter[str] = Counter()
    texts = [garbled(1, number, 2)[1] for number in range(1, 211)]
    wanted = reference_rows(texts, drops=drops)
    assert drops["columns"] == 70 and network.counters["parser"] == drops
    assert len(wanted) > 100 and [(line["seq"], line["row"]) for line in lines] == wanted
    assert all(line["sent"] <= line["received"] for line in lines)


@given(
    values=st.lists(st.tuples(st.integers(0, 59), st.integers(-500, 500)), max_size=40), panes=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)  # fmt: skip
def test_a_window_is_that_of_its_values_in_any_order(values, panes, seed):
    """Values of an interval come in any order; those of later ones come later."""
    state: dict = {}
    shuffled = random.Random(seed).sample(values, len(values))
    for interval in range(8):
        window = PlaceWindow(state, pulse_s=10, window_s=10 * panes)  # a moved task makes a new one
        for t, value in shuffled:
            if t // 10 == interval:
                window.add("x.dust", t, value)
        inside = [value for t, value in values if (interval + 1 - panes) * 10 <= t < (interval + 1) * 10]
        if inside:
            mean = floor(Fraction(sum(inside), len(inside)) + Fraction(1, 2))
            figures = Figures(len(inside), mean, min(inside), max(inside))
            assert window.figures(interval) == [("x.dust", figures)]
        else:
            assert window.figures(interval) == []
    if panes == 1:
        assert state == {}


@given(values=st.lists(st.integers(-10_000, 20_000_000), min_size=1, max_size=60))
def test_smoothing_moves_by_a_quarter_of_the_distance(values):
    state: dict = {}
    exact = Fraction(values[0])
    for value in values:
        exact += (value - exact) / 4
        found = Smoothing(state).add("x-1", "dust", value)
        assert abs(found - exact) <= Fraction(1, 2) + Fraction(4, 256)
    assert Smoothing(state).add("x-2", "dust", 5) == Smoothing(state).add("x-1", "light", 5) == 5
