"""The options `latency.*`: made inputs at a rate, rows that follow from their number, and what the sink notes."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolts.latency.made import BACKLOG_S, Made
from bolts.latency.notes import open_notes
from bolts.latency.settings import Latency, read_latency
from bolts.latency.taxi import ROWS_PER_MINUTE, START_S, taxi_lines, taxi_row
from bolts.query1.data_source import DataSource
from bolts.query1.global_rank import GlobalRankSink
from bolts.query1.trips import Reject, parse_trip
from leeward.core.errors import ConfigError
from leeward.runtime import Pulse


class Clock:
    """Time that passes only where somebody sleeps, or the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def made(rate: float, seconds: float = 0.0) -> tuple[Made, Clock]:
    clock = Clock()
    return Made(Latency(rate=rate, seconds=seconds), clock=clock, sleep=clock.sleep), clock


@given(rate=st.floats(0.5, 5000), waits=st.floats(0.001, 0.05))
def test_inputs_come_at_the_rate_that_was_asked_for(rate, waits):
    source, clock = made(rate)
    at, last = [], 0
    while last < 20:
        number = source.due(last, wait_s=waits)
        if number is not None:
            assert number == last + 1
            last = number
            at.append(clock.now - 100.0)
    assert at == pytest.approx([n / rate for n in range(20)], abs=1e-6)


def test_after_a_pause_no_more_than_a_little_backlog_comes_at_once():
    source, clock = made(100.0)
    clock.now += 60.0
    began, burst = clock.now, 0
    while source.due(burst, wait_s=0.001) is not None and clock.now == began:
        burst += 1
    assert burst == pytest.approx(100 * BACKLOG_S, abs=2)


def test_there_are_as_many_inputs_as_rate_times_seconds():
    source, _ = made(30.0, seconds=2.0)
    assert [source.is_over(number) for number in (60, 61)] == [False, True]
    endless, _ = made(30.0)
    assert not endless.is_over(10**9)


@given(seed=st.integers(0, 2**32), number=st.integers(1, 10**7))
def test_a_row_follows_from_seed_and_number(seed, number):
    row = taxi_row(seed, number)
    assert row == taxi_row(seed, number)
    assert row.dropoff_s == START_S + (number - 1) * 60 // ROWS_PER_MINUTE
    trip = parse_trip(row.line)
    assert trip is Reject.COLUMNS or trip.dropoff_s == row.dropoff_s


def test_another_seed_gives_other_rows_and_most_are_valid():
    rows = list(taxi_lines(1, 2000))
    assert rows != list(taxi_lines(2, 2000))
    kinds = Counter(str(trip) if isinstance(trip := parse_trip(line), Reject) else "valid" for line in rows)
    assert set(kinds) == {"valid", "columns"} and kinds["valid"] > 1900


@pytest.mark.parametrize(
    "conf",
    [
        {"latency.rate": 0},
        {"latency.rate": "fast"},
        {"latency.rate": float("nan")},
        {"latency.rate": 5, "latency.seconds": -1},
        {"latency.seconds": 5},
        {"latency.out": 3},
        {"latency.seed": 1.5},
    ],
)
def test_a_wrong_option_is_named(conf):
    with pytest.raises(ConfigError, match=r"latency\.") as error:
        read_latency(conf)
    assert error.value.remedy


def component(kind, conf: dict):
    """Its own code without Storm; `out` has tuples, and pulses as (number, data)."""

    class Local(kind):
        def __init__(self) -> None:
            self.state, self.out, self.counters = {}, [], Counter()
            self.initialize(conf, {})
            self.resumed()

        def emit(self, values, stream=None) -> None:
            self.out.append(values)

        def emit_pulse(self, number, data) -> None:
            self.out.append((number, data))

    return Local()


def sent(conf: dict) -> list:
    """All that the source of query 1 sends."""
    source = component(DataSource, {"latency.rate": 1e6, "latency.seconds": 0.0005, "query1.pulse_s": 60, **conf})
    while not source.state.get("ended"):
        source.next_tuple()
    return source.out


def test_the_wall_clock_is_in_the_pulses_alone():
    found = sent({})
    rows = [item for item in found if isinstance(item, list)]
    assert rows == [[line, seq] for seq, line in enumerate(taxi_lines(1, 500), 1)]
    pulses = [item for item in found if isinstance(item, tuple)]
    assert [number for number, _ in pulses] == [START_S // 60 + minute for minute in range(3)]
    assert all(float(data["w0"]) > 1e9 for _, data in pulses)


def test_the_sink_notes_each_result_with_both_times(tmp_path):
    file = tmp_path / "notes"
    sink = component(GlobalRankSink, {"latency.rate": 100, "latency.out": str(file)})
    data = {"t": 60, "w0": "5.250000", "pickup": "p", "dropoff": "d", "advanced": True}
    sink.process(SimpleNamespace(values=["1.1>2.2", 3, 9]))
    sink.pulse(Pulse(7, data))
    sink.process(SimpleNamespace(values=["1.1>2.2", 4, 11]))
    sink.pulse(Pulse(8, data))  # the ten are the same
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["seq"], line["sent"], line["row"]) == (7, 5.25, "p,d,1.1,2.2" + ",NULL" * 9)
    assert line["received"] > 1e9


def test_no_file_is_made_without_a_path():
    assert open_notes("") is None
