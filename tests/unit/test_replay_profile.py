"""The generator's curve and geography: shipped tables, shapes, and dependence on the seed only."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.replay import derive as derive_module
from leeward.replay.errors import ReplayError
from leeward.replay.generate import Settings, check_settings, curve_of, manifest_of
from leeward.replay.profile import Profile, load_week, poisson, week_rate
from leeward.replay.rows import epoch_s, judge
from leeward.replay.trips import TripModel, cell_of, load_trips, minute_rows
from tests.helpers.shared_folder import TAXI, needs

SHIPPED = Path(derive_module.__file__).parent / "data"


@needs(TAXI)
@pytest.mark.parametrize("name", [derive_module.WEEK_NAME, derive_module.TRIPS_NAME])
def test_shipped_tables_are_what_derive_makes(tmp_path: Path, name: str) -> None:
    derive_module.derive(TAXI, tmp_path)
    assert (tmp_path / name).read_bytes() == (SHIPPED / name).read_bytes()


def test_derive_names_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="rate_per_minute_2013H1"):
        derive_module.derive(tmp_path, tmp_path)


def test_week_has_the_real_shape() -> None:
    week = load_week()
    assert len(week) == 168
    thursday_evening, monday_night = week[3 * 24 + 19], week[4]
    assert max(week) == thursday_evening > 550
    assert monday_night < 60
    assert week_rate(week, 30) == week[0]
    assert week_rate(week, 7 * 24 * 60 + 30) == pytest.approx(week[0])


def test_default_curve_climbs_and_falls_between_trough_and_peak() -> None:
    rates = curve_of(Settings()).rates
    assert len(rates) == 180
    assert (min(rates), max(rates)) == (pytest.approx(60), pytest.approx(215))
    assert rates[0] < 65
    assert rates[-1] < 70
    assert max(abs(b - a) for a, b in itertools.pairwise(rates)) < 10  # smooth: 5 % of the peak a second
    assert 26_000 < sum(curve_of(Settings()).counts(1)) < 28_500


def test_other_profiles() -> None:
    real = curve_of(Settings(profile=Profile.REAL, hours=24, start="2013-01-14 00:00:00")).rates
    assert real[30] == pytest.approx(load_week()[0], abs=2)
    assert max(real) == pytest.approx(max(load_week()[:24]), abs=3)
    week = curve_of(Settings(profile=Profile.REAL, hours=168, start="2013-01-14 00:00:00", peak_rate=100)).rates
    assert max(week) == pytest.approx(100, rel=0.01)
    assert set(curve_of(Settings(profile=Profile.FLAT, hours=0.1, peak_rate=7)).rates) == {7}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hours": 0}, "--hours is 0"),
        ({"peak_rate": 0}, "--peak-rate is 0"),
        ({"trough_rate": 300}, "--trough-rate is 300"),
        ({"start": "2013-01-16"}, "--start: date '2013-01-16'"),
        ({"start": "2013-01-16 04:00:30"}, "whole minute"),
        ({"slice_minutes": 0}, "--slice-minutes is 0"),
    ],
)
def test_wrong_settings_are_named(change: dict, words: str) -> None:
    with pytest.raises(ReplayError, match=words):
        check_settings(Settings(**change))


@pytest.mark.parametrize("mean", [0.5, 25.0, 215.0])
def test_poisson_has_mean_and_variance_of_a_poisson(mean: float) -> None:
    rng = random.Random(3)
    draws = [poisson(mean, rng) for _ in range(4000)]
    assert statistics.fmean(draws) == pytest.approx(mean, rel=0.05)
    assert statistics.variance(draws) == pytest.approx(mean, rel=0.12)


@given(seed=st.integers(0, 2**32), index=st.integers(0, 10_000))
def test_a_minute_depends_on_its_arguments_only(seed: int, index: int) -> None:
    start = epoch_s("2013-01-16 04:00:00") + 60 * index
    fresh, used = TripModel(load_trips()), TripModel(load_trips())
    minute_rows(used, seed=seed + 1, index=7, start_s=start, count=3)
    rows = minute_rows(fresh, seed=seed, index=index, start_s=start, count=5)
    assert rows == minute_rows(used, seed=seed, index=index, start_s=start, count=5)
    assert [judge(line.decode()) for _, line in rows] == [time_s for time_s, _ in rows]
    assert [time_s for time_s, _ in rows] == sorted(time_s for time_s, _ in rows)
    assert all(start <= time_s < start + 60 for time_s, _ in rows)


def test_geography_and_bad_rows_follow_the_table() -> None:
    table = load_trips()
    rows = minute_rows(TripModel(table), seed=1, index=0, start_s=epoch_s("2013-01-16 04:00:00"), count=20_000)
    columns = [line.decode().split(",") for _, line in rows]
    zeros = sum(row[6] == "0.000000" for row in columns)
    assert zeros / len(rows) == pytest.approx(table.zero_share, rel=0.2)
    pickups = Counter(
        cell_of(float(row[7]), float(row[6])) for row in columns if row[6] != "0.000000" and float(row[7]) < 90
    )
    total = sum(pickups.values())
    expected_total = sum(cell[2] for cell in table.cells)
    assert set(pickups) <= {cell[:2] for cell in table.cells}
    for east, south, count, _ in table.cells[:5]:
        assert pickups[east, south] / total == pytest.approx(count / expected_total, rel=0.25)


def test_manifest_numbers_rows_without_a_gap() -> None:
    settings = Settings(hours=1, start="2013-01-16 04:02:00", slice_minutes=7)
    counts = [3] * 60
    counts[10:30] = [0] * 20
    manifest = manifest_of(settings, counts)
    next_seq = 1
    for piece in manifest.slices:
        assert piece.start_s % (7 * 60) == 0
        assert piece.first_seq == next_seq
        next_seq = piece.last_seq + 1
    assert next_seq - 1 == manifest.rows == 120
