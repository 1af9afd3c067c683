"""A node whose clock is off by a minute: response times stay right, and the node is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.clocks import clocks_off, response_s, told
from leeward.control.ports import StreamFacts
from leeward.control.report.fold import at, first, fold
from leeward.core.clocks import READINGS, SELDOM_S, Ahead
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot


def task(**more) -> TaskMetrics:
    return TaskMetrics(component="x", pid=1, t=1.0, **more)


def test_response_time_of_recent_results():
    streams = StreamFacts(results=((99.0, 99.5), (90.0, 91.5), (10.0, 50.0)))
    assert response_s(streams, 100.0, {}, ()) == pytest.approx(1.0)
    assert response_s(streams, 1000.0, {}, ()) is None


@pytest.mark.parametrize("source_s", [-60.0, 0.0, 60.0])
@pytest.mark.parametrize("sink_s", [-60.0, 0.0, 60.0])
@pytest.mark.parametrize("service_s", [-60.0, 0.0, 60.0])
def test_clocks_that_are_off_by_a_minute_change_no_response_time(source_s, sink_s, service_s):
    """It was a minute too long, a minute below 0, or not there at all."""
    results = tuple((t + source_s, t + 0.25 + sink_s) for t in (95.0, 96.0, 97.0))
    samples = {1: task(reads="in", ahead_s=source_s), 5: task(writes="out", ahead_s=sink_s)}
    streams = StreamFacts(results=results, now=98.0)
    assert response_s(streams, 98.0 + service_s, samples, (1, 5)) == pytest.approx(0.25)
    assert response_s(StreamFacts(results=results, now=500.0), 98.0, samples, (1, 5)) is None, "they are old"


def test_results_from_before_a_clock_was_set_are_left_out():
    """The sink's clock was a minute ahead: for a minute more its results were of the time to come, and too long."""
    results = ((95.0, 155.25), (96.0, 156.25), (97.0, 97.25))
    samples = {1: task(reads="in", ahead_s=0.0), 5: task(writes="out", ahead_s=0.0)}
    assert response_s(StreamFacts(results=results, now=98.0), 98.0, samples, (1, 5)) == pytest.approx(0.25)


def test_of_several_sinks_those_that_work_count_and_where_their_clocks_differ_nobody_knows():
    streams = StreamFacts(results=((10.0, 10.5),), now=11.0)
    samples = {1: task(reads="in"), 5: task(writes="out", ahead_s=0.1), 6: task(writes="out", ahead_s=60.0)}
    assert response_s(streams, 11.0, samples, (1, 5)) == pytest.approx(0.4)
    assert response_s(streams, 11.0, samples, (1, 5, 6)) is None


def test_nodes_whose_clocks_are_off_are_told_in_the_report_until_they_are_set():
    samples = {1: task(ahead_s=0.9), 2: task(ahead_s=60.04), 3: task(ahead_s=60.05), 4: task(ahead_s=-59.96), 5: task()}
    slots = {1: Slot("n1", 1), 2: Slot("n2", 1), 3: Slot("n2", 2), 4: Slot("n3", 1), 5: Slot("n4", 1)}
    off = clocks_off(samples, slots)
    assert off == {"n2": 60.0, "n3": -60.0} and clocks_off(samples, {}) == {}
    why = "clocks are off the datastore's: n2 by 60 s (ahead), n3 by 60 s (behind)"
    assert told(off) == why and told({}) == ""
    known = fold(first("app", 0.0), "clocks_off", {"nodes": off, "why": why, "remedy": "Set it."}, 7.0)
    (lack,) = at(known, 9.0).missing
    assert (lack.what, lack.since, lack.why) == ("clocks", 7.0, f"{why} Set it.")
    assert at(fold(known, "clocks_off", {"nodes": {}}, 8.0), 9.0).missing == ()


def test_the_quickest_round_trip_tells_how_far_a_clock_is_ahead():
    ahead = Ahead()
    assert ahead.seconds is None
    ahead.add(asked=160.0, answered=160.4, theirs=100.0, steady=0.0)
    assert ahead.seconds == pytest.approx(60.2)
    ahead.add(asked=161.0, answered=161.002, theirs=101.001, steady=0.0)
    ahead.add(asked=162.0, answered=162.6, theirs=102.1, steady=0.0)
    assert ahead.seconds == pytest.approx(60.0)


def test_a_clock_that_is_set_shows_with_the_next_reading():
    ahead = Ahead()
    ahead.add(asked=160.0, answered=160.001, theirs=100.0, steady=0.0)
    ahead.add(asked=102.0, answered=102.1, theirs=102.05, steady=0.0)
    assert ahead.seconds == pytest.approx(0.0)
    ahead.add(asked=200.0, answered=140.0, theirs=103.0, steady=0.0)
    assert ahead.seconds == pytest.approx(0.0), "it was set while Redis answered"


@given(st.floats(-3600, 3600), st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=40))
def test_it_is_off_by_half_a_round_trip_at_most(really, trips):
    ahead = Ahead()
    for second, (trip, share) in enumerate(trips):
        asked, answered = second + really, second + trip + really
        ahead.add(asked=asked, answered=answered, theirs=second + share * trip, steady=float(second))
    assert ahead.seconds == pytest.approx(really, abs=trips[-1][0] / 2 + 1e-6)


@pytest.mark.parametrize("ahead_s", [None, 0.25, -60.0])
def test_a_line_carries_it(ahead_s):
    read = TaskMetrics.from_line(task(ahead_s=ahead_s).to_line())
    assert read is not None and read.ahead_s == ahead_s


@pytest.mark.parametrize("value", ["5", True, float("nan"), float("inf")])
def test_a_difference_that_is_none_is_no_line(value):
    assert TaskMetrics.from_line(json.dumps({**json.loads(task().to_line()), "ahead_s": value})) is None


def read(ahead: Ahead, now: float, steady: float) -> None:
    ahead.add(asked=now, answered=now + 0.001, theirs=now, steady=steady)


def test_the_datastores_clock_is_read_seldom_once_it_is_known():
    ahead = Ahead()
    for second in range(READINGS):
        assert ahead.wanted(now=1000.0 + second, steady=50.0 + second), "its best of several is not there yet"
        read(ahead, 1000.0 + second, 50.0 + second)
    last = READINGS - 1
    wanted = [ahead.wanted(now=1000.0 + last + gone, steady=50.0 + last + gone) for gone in (1.0, SELDOM_S - 0.1)]
    assert wanted == [False, False]
    assert ahead.wanted(now=1000.0 + last + SELDOM_S, steady=50.0 + last + SELDOM_S)


@pytest.mark.parametrize("step", [-60.0, -0.006, 0.006, 60.0])
def test_where_the_nodes_clock_was_set_it_is_read_at_once(step):
    ahead = Ahead()
    for second in range(READINGS):
        read(ahead, 1000.0 + second, 50.0 + second)
    assert ahead.wanted(now=1000.0 + READINGS + step, steady=50.0 + READINGS)


@pytest.mark.parametrize("step", [-60.0, 60.0])
def test_where_it_was_set_while_it_was_read_it_is_read_again(step):
    ahead = Ahead()
    for second in range(READINGS):
        read(ahead, 1000.0 + second, 50.0 + second)
    ahead.add(asked=1020.0, answered=1020.001 + step, theirs=1020.0, steady=70.0)
    assert ahead.wanted(now=1021.0 + step, steady=71.0)


@given(
    st.lists(st.tuples(st.floats(0.5, 2.0), st.sampled_from([0.0, 0.0, 0.0, 60.0, -60.0])), min_size=30, max_size=60)
)
def test_a_clock_that_is_set_at_any_time_is_known_at_the_next_publication(steps):
    ahead, steady, off = Ahead(), 100.0, 0.0
    for seconds, step in steps:
        steady, off = steady + seconds, off + step
        now = 1e9 + steady + off
        if ahead.wanted(now=now, steady=steady):
            ahead.add(asked=now, answered=now + 0.002, theirs=1e9 + steady + 0.001, steady=steady)
        assert ahead.seconds == pytest.approx(off, abs=0.002)
