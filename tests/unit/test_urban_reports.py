"""Urban sensing: what a report says, an index and its alert, the settings, and the declared topology."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bolts.urban.index import ALERT_RESULTS, BANDS, CityIndex, CityJoin, badness, index_of
from bolts.urban.places import Figures
from bolts.urban.reference import made_lines, reference_rows
from bolts.urban.reports import (
    CITIES,
    KINDS,
    PERIOD_S,
    START_S,
    Drop,
    made_report,
    made_time_s,
    read_report,
    sensors_of_a_city,
)
from bolts.urban.service_times import RATES
from bolts.urban.settings import read_settings
from leeward.cli import _build
from leeward.core.errors import ConfigError
from topologies.urban import MAX_REPLICAS, Urban

GOOD = "boston-3,1421280000,90,400.5,9000,58.25,-3.125,52"


def test_a_report_has_hundredths_by_kind():
    report = read_report(GOOD + "\r\n")
    assert (report.sensor, report.t, report.dropped) == ("boston-3", 1421280000, [])
    assert report.values == {
        "pollution": 9000, "dust": 40050, "light": 900000, "sound": 5825, "temperature": -312, "humidity": 5200,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Drop.NUMBER), ("?", Drop.NUMBER), ("1e3", Drop.NUMBER), ("٣", Drop.NUMBER), ("1_0", Drop.NUMBER),
        ("nan", Drop.NOT_FINITE), ("-inf", Drop.NOT_FINITE), ("NaN", Drop.NOT_FINITE),
        ("100.01", Drop.RANGE), ("-0.5", Drop.RANGE),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_dropped_and_the_others_stay(text, reason):
    report = read_report(GOOD.rpartition(",")[0] + f",{text}")
    assert report.dropped == [reason] and set(report.values) == {kind.name for kind in KINDS} - {"humidity"}


@pytest.mark.parametrize("text", ["0", "100", "100.", ".5"])
def test_a_value_at_the_end_of_its_range_counts(text):
    assert read_report(GOOD.rpartition(",")[0] + f",{text}").values["humidity"] == round(float(text) * 100)


@pytest.mark.parametrize(
    "line", ["", "boston-3", GOOD + ",1", GOOD.replace("boston-3", "boston"), GOOD.replace("1421280000", "-5")]
)
def test_a_line_that_is_no_report_is_dropped(line):
    assert read_report(line) is Drop.COLUMNS


@given(seed=st.integers(0, 2**32), number=st.integers(1, 10**6), each=st.integers(1, 500))
def test_a_made_report_follows_from_its_number(seed, number, each):
    sensor, line = made_report(seed, number, each)
    assert (sensor, line) == made_report(seed, number, each)
    report = read_report(line)
    assert report.sensor == sensor and report.t == made_time_s(number, each)
    assert len(report.values) + len(report.dropped) == len(KINDS)


def test_every_sensor_reports_once_a_minute():
    assert sensors_of_a_city(90_000) == 12_858 and sensors_of_a_city(7) == 1
    reports = [(*made_report(1, number, 3), made_time_s(number, 3)) for number in range(1, 43)]
    for city in CITIES:
        own = [(sensor, t - START_S) for sensor, _, t in reports if sensor.startswith(city)]
        assert own == [(f"{city}-{n % 3}", n * PERIOD_S // 3) for n in range(6)]


@given(kind=st.sampled_from(sorted(BANDS)), mean=st.integers(-10_000, 30_000_000))
def test_badness_grows_with_the_distance_from_the_middle(kind, mean):
    middle, good, bad = BANDS[kind]
    assert 0 <= badness(kind, mean) <= 100
    assert badness(kind, mean) == badness(kind, 2 * middle - mean)
    assert badness(kind, middle + good) == 0 and badness(kind, middle + bad) == 100
    assert badness(kind, mean) <= badness(kind, mean + (1 if mean >= middle else -1))


def figures(mean: int) -> Figures:
    return Figures(2, mean, mean - 1, mean + 1)


def test_the_index_is_that_of_the_worst_kind_and_of_equals_the_first():
    assert index_of({"humidity": figures(5000), "sound": figures(7000)}) == CityIndex(50, "sound")
    assert index_of({"humidity": figures(0), "dust": figures(10**6), "sound": figures(0)}) == CityIndex(100, "dust")
    assert index_of({"light": figures(0)}) == CityIndex(0, "light")


def test_an_alert_begins_at_the_third_high_result_in_a_row_and_ends_with_the_first_low_one():
    state: dict = {}
    alerts = []
    for mean in (8500, 8500, 5000, 8500, 8500, 8500, 8500, 5000):  # dB, hundredths
        CityJoin(state).add("rio", "sound", figures(mean))
        ((city, row),) = CityJoin(state).rows(60)
        alerts.append(row.split(",")[4])
        assert city == "rio" and row.startswith("60,rio,") and row.count(",") == 4 + 4 * len(KINDS)
    assert ALERT_RESULTS == 3 and alerts == ["0", "0", "0", "0", "0", "1", "1", "0"]
    assert CityJoin(state).rows(70) == []  # nothing came


@pytest.mark.parametrize(
    "conf", [{"urban.sensors": 0}, {"urban.pulse_s": 1.5}, {"urban.pulse_s": 7, "urban.window_s": 30}]
)
def test_a_wrong_setting_is_named(conf):
    with pytest.raises(ConfigError, match=r"urban\.") as error:
        read_settings(conf)
    assert error.value.remedy


def test_there_is_a_rate_in_any_case():
    assert read_settings({"latency.rate": 30, "latency.seconds": 3}).made.count == 90
    made = read_settings({}).made
    assert made.rate > 0 and made.count == float("inf")


def test_the_topology_keeps_a_sensors_reports_in_order():
    edges = {
        (stream.componentId, name, tuple(arg.string_arg for arg in grouping.custom_object.args_list))
        for name, bolt in Urban.thrift_bolts.items()
        for stream, grouping in bolt.common.inputs.items()
        if stream.streamId != "marker"
    }
    assert edges == {
        ("sensors", "parser", ("sensor",)),
        ("parser", "smooth", ("sensor",)),
        ("smooth", "stats", ("place",)),
        ("stats", "city_index", ("city",)),
        ("city_index", "city_board", ()),
    }
    assert len(CITIES) == 7 and set(Urban.thrift_spouts) == {"sensors"}
    for spec in Urban.specs:
        conf = json.loads(spec.common.json_conf)
        assert conf["leeward.max_replicas"] == MAX_REPLICAS[spec.name]
        assert conf["leeward.service_rate"] == RATES[spec.name]
    assert set(RATES) == set(MAX_REPLICAS) == {spec.name for spec in Urban.specs}


def test_the_command_prints_the_reference():
    arguments = ["--reports", "140", "--sensors", "14", "--seed", "3", "--pulse-s", "30", "--count-bad"]
    ran = CliRunner().invoke(_build(), ["reference", "urban", *arguments])
    assert ran.exit_code == 0
    drops: Counter[str] = Counter()
    wanted = reference_rows(made_lines(3, 14, 140), pulse_s=30, window_s=60, drops=drops)
    rows = [text for text in ran.output.splitlines() if text.startswith("14")]
    assert rows == [result.row for result in wanted] and len(rows) == 20 * 7
    assert f"number: {drops['number']}" in ran.output


def test_the_command_refuses_a_window_that_no_pulse_divides():
    ran = CliRunner().invoke(_build(), ["reference", "urban", "--pulse-s", "7"])
    assert ran.exit_code == 1 and "urban.window_s is 60" in ran.output
