"""A node whose clock is off by a minute: response times stay right, and the node is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.clocks import clocks_off, response_s, told
from leeward.control.ports import StreamFacts
from leeward.control.report.fold import at, first, fold
from leeward.core.clocks import Ahead
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
    ahead.add(asked=160.0, answered=160.4, theirs=100.0)
    assert ahead.seconds == pytest.approx(60.2)
    ahead.add(asked=161.0, answered=161.002, theirs=101.001)
    ahead.add(asked=162.0, answered=162.6, theirs=102.1)
    assert ahead.seconds == pytest.approx(60.0)


def test_a_clock_that_is_set_shows_with_the_next_reading():
    ahead = Ahead()
    ahead.add(asked=160.0, answered=160.001, theirs=100.0)
    ahead.add(asked=102.0, answered=102.1, theirs=102.05)
    assert ahead.seconds == pytest.approx(0.0)
    ahead.add(asked=200.0, answered=140.0, theirs=103.0)
    assert ahead.seconds == pytest.approx(0.0), "it was set while Redis answered"


@given(st.floats(-3600, 3600), st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=40))
def test_it_is_off_by_half_a_round_trip_at_most(really, trips):
    ahead = Ahead()
    for second, (trip, share) in enumerate(trips):
        ahead.add(asked=second + really, answered=second + trip + really, theirs=second + share * trip)
    assert ahead.seconds == pytest.approx(really, abs=trips[-1][0] / 2 + 1e-6)


@pytest.mark.parametrize("ahead_s", [None, 0.25, -60.0])
def test_a_line_carries_it(ahead_s):
    read = TaskMetrics.from_line(task(ahead_s=ahead_s).to_line())
    assert read is not None and read.ahead_s == ahead_s


@pytest.mark.parametrize("value", ["5", True, float("nan"), float("inf")])
def test_a_difference_that_is_none_is_no_line(value):
    assert TaskMetrics.from_line(json.dumps({**json.loads(task().to_line()), "ahead_s": value})) is None
