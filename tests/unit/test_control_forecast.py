"""Forecasts against rates that are known: a line, a day that repeats, gaps."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.forecast import (
    DAY_S,
    GAP_S,
    METHODS,
    MOST,
    Forecast,
    History,
    blended,
    last,
    linear,
    scaled,
    yesterday,
)
from leeward.core.settings import FORECASTS, Settings
from tests.helpers.control_views import view


def history(rate, *, hours, step_s=60.0, ahead_s=600.0):
    kept, now = History(ahead_s), 0.0
    while now <= hours * 3600:
        kept.add(now, rate(now))
        now += step_s
    return kept.points(), now - step_s


def day(time):
    return 100.0 + 80.0 * math.sin(2 * math.pi * time / DAY_S)


def test_every_choice_of_the_setting_has_its_method():
    assert set(METHODS) == set(FORECASTS)


def test_a_line_goes_on():
    points, now = history(lambda t: 50.0 + 0.01 * t, hours=1)
    assert last(points, now, 600.0) == pytest.approx(50.0 + 0.01 * now)
    assert linear(points, now, 600.0) == pytest.approx(50.0 + 0.01 * (now + 600.0))
    falls, now = history(lambda t: max(0.0, 36.0 - 0.01 * t), hours=1)
    assert linear(falls, now, 600.0) == 0.0, "no rate is below 0"


def test_a_day_that_repeats_is_known_from_yesterday_on():
    points, now = history(day, hours=26, ahead_s=1800.0)
    expected = day(now + 1800.0)
    assert yesterday(points, now, 1800.0) == pytest.approx(expected, rel=0.01)
    assert blended(points, now, 1800.0) == pytest.approx(expected, rel=0.05)
    assert abs(last(points, now, 1800.0) - expected) > 2 * abs(blended(points, now, 1800.0) - expected)


def test_twice_yesterdays_rate_stays_twice_as_much():
    points, now = history(lambda t: day(t) * (2.0 if t > DAY_S else 1.0), hours=30)
    expected = 2.0 * day(now + 600.0)
    assert blended(points, now, 600.0) == pytest.approx(expected, rel=0.02)
    assert yesterday(points, now, 600.0) == pytest.approx(expected / 2.0, rel=0.02)


@pytest.mark.parametrize("method", FORECASTS)
def test_nothing_is_known_of_no_rates(method):
    assert METHODS[method]([], 0.0, 60.0) is None


def test_yesterday_is_not_guessed_from_a_gap():
    points, now = history(day, hours=30)
    gap = [point for point in points if not -1 < point[0] - (now + 600.0 - DAY_S) < 3600.0]
    assert yesterday(points, now, 600.0) is not None and yesterday(gap, now, 600.0) is None


def test_rates_are_kept_as_means_of_a_minute_for_a_day():
    points, now = history(lambda t: t, hours=40, step_s=10.0)
    assert len(points) <= (DAY_S + 600.0 + GAP_S) / 60.0 + 2
    assert points[0][0] >= now - DAY_S - 600.0 - GAP_S - 60.0
    assert points[5][1] == pytest.approx(points[5][0])


def test_the_view_has_every_rate_by_the_same_factor():
    before = view(rate=100.0)
    work = replace(before.measured["work"], group_load={7: 3.0})
    before = replace(before, measured={**before.measured, "work": work})
    after = scaled(before, 2.0)
    assert after.measured["source"].arrival_rate == 200.0 and after.stream_rate["work", "sink"] == 20.0
    assert after.measured["work"].group_load == {7: 6.0}
    assert after.measured["work"].service_rate == work.service_rate, "a replica is as fast as before"
    assert after.tables == before.tables and after.assignment == before.assignment


def test_the_loops_forecast():
    forecast = Forecast(Settings(forecast="linear", ahead_forecast_s=120.0))
    rates = [forecast.ahead(view(rate=100.0 + t / 6.0), t).measured["source"].arrival_rate for t in range(0, 600, 60)]
    assert rates[0] == 100.0 and rates[-1] == pytest.approx(100.0 + (540 + 120) / 6.0, rel=1e-6)
    measured = view(rate=100.0)
    assert Forecast(Settings()).ahead(measured, 0.0) is measured, "by default nothing is forecast"
    silent = view(rate=0.0)
    assert forecast.ahead(silent, 600.0) is silent


@given(
    st.lists(st.tuples(st.floats(1.0, 5000.0), st.floats(0.0, 1e6)), min_size=1, max_size=60),
    st.sampled_from(FORECASTS), st.floats(0.0, 7200.0),
)  # fmt: skip
def test_no_history_makes_a_forecast_that_is_wild(steps, method, ahead_s):
    forecast, now = Forecast(Settings(forecast=method, ahead_forecast_s=ahead_s)), 0.0
    for wait_s, rate in steps:
        now += wait_s
        rate_ahead = forecast.ahead(view(rate=rate), now).measured["source"].arrival_rate
        assert math.isfinite(rate_ahead)
        assert rate / MOST * 0.999 <= rate_ahead <= rate * MOST * 1.001


@pytest.mark.parametrize("step_s", [10.0, 60.0, 300.0])
def test_a_day_is_known_however_seldom_the_policy_is_asked(step_s):
    points, now = history(day, hours=26, step_s=step_s)
    assert yesterday(points, now, 600.0) == pytest.approx(day(now + 600.0), rel=0.01)
    for ahead_s in (60.0, 600.0):
        points, now = history(day, hours=26, step_s=step_s, ahead_s=ahead_s)
        assert blended(points, now, ahead_s) == pytest.approx(day(now + ahead_s), rel=0.01)
        assert blended(points, now, ahead_s) != linear(points, now, ahead_s), "yesterday is in it"
    line, now = history(lambda t: 50.0 + 0.01 * t, hours=2, step_s=step_s)
    assert linear(line, now, 60.0) == pytest.approx(50.0 + 0.01 * (now + 60.0), rel=1e-3)
