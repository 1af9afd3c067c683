"""Pacing is pure: properties over any ascending times, and the shapes seen in the real rows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.replay.pacing import MINUTE_S, Pace, moments

START = 1_358_308_800  # 2013-01-16 04:00, a whole minute

times_lists = st.lists(st.integers(START, START + 600), max_size=200).map(sorted)


@given(times_lists)
def test_order_is_kept_and_rows_stay_in_their_minute(times: list[int]) -> None:
    due = moments(times)
    assert len(due) == len(times)
    assert due == sorted(due)
    for time_s, due_s in zip(times, due, strict=True):
        assert due_s // MINUTE_S == time_s // MINUTE_S


@given(times_lists)
def test_no_two_rows_leave_together(times: list[int]) -> None:
    due = moments(times)
    assert len(set(due)) == len(due)


@given(st.integers(2, 500))
def test_minute_resolution_is_spread_over_the_minute(count: int) -> None:
    due = moments([START] * count)
    gaps = [b - a for a, b in itertools.pairwise(due)]
    assert gaps == pytest.approx([MINUTE_S / count] * (count - 1), abs=1e-5)


def test_second_resolution_is_spread_over_the_second() -> None:
    times = [START + second for second in range(60) for _ in range(4)]
    due = moments(times)
    assert [int(moment) for moment in due] == times
    assert due[:4] == [START + 0.125, START + 0.375, START + 0.625, START + 0.875]


def test_a_mixture_leaves_evenly_though_half_of_it_says_the_first_second() -> None:
    times = [START] * 60 + [START + second for second in range(60)]
    due = moments(sorted(times))
    gaps = {round(b - a, 6) for a, b in itertools.pairwise(due)}
    assert gaps == {0.5}


@given(
    st.floats(0.1, 10_000),
    st.lists(st.floats(START, START + 3600), min_size=1, max_size=50).map(sorted),
    st.floats(0, 4000),
)
def test_counting_what_is_due_agrees_with_the_due_times(speed: float, due: list[float], waited: float) -> None:
    pace = Pace(clock_s=100.0, data_s=START, speed=speed)
    now = 100.0 + waited
    count = pace.count_due(due, 0, now)
    slack = 1e-6  # seconds; the two formulae round differently
    assert all(pace.due_s(moment) <= now + slack for moment in due[:count])
    assert all(pace.due_s(moment) >= now - slack for moment in due[count:])


def test_sixty_times_real_time_makes_a_minute_a_second() -> None:
    pace = Pace(clock_s=5.0, data_s=START, speed=60)
    assert pace.due_s(START + 180) == 8.0
    assert pace.delayed(2.5).due_s(START + 180) == 10.5


@pytest.mark.parametrize("first", [0, 3])
def test_speed_zero_means_everything_is_due(first: int) -> None:
    assert Pace(clock_s=0.0, data_s=START, speed=0).count_due([START + 1e9] * 5, first, -1.0) == 5 - first
