"""Query 2: what a row brings, the operators as Storm sees them, the declared topology, and the command."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from bolts.query1.grid import Grid
from bolts.query1.trips import Reject
from bolts.query2.areas import AREAS
from bolts.query2.fares import NoFare, parse_fare
from bolts.query2.logic import Place, Profit, ProfitWindow, Standing, TaxiPlaces, result_row
from bolts.query2.service_times import LIKE, RATES
from leeward.cli import _build
from topologies.query2 import MAX_REPLICAS, Query2

TIMES = "2013-01-01 00:00:00,2013-01-01 00:02:00"


def line(*, taxi="m", start="-73.956528,40.716976", end="-73.962440,40.715008", fare="6", tip="1.2", at=TIMES) -> str:
    return f"{taxi},h,{at},120,0.44,{start},{end},CSH,{fare},0.5,0.5,{tip},0,9"


@pytest.mark.parametrize(
    ("fare", "tip", "cents"),
    [("6", "1.2", 720), ("6.50", "0.00", 650), ("0", "0", 0), ("2.29", ".1", 239), ("5.", "0.07", 507)],
)
def test_a_trip_brings_fare_and_tip(fare, tip, cents):
    found = parse_fare(line(fare=fare, tip=tip) + "\r\n")
    assert (found.taxi, found.cents, found.trip.dropoff_s) == ("m", cents, 1356998520)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,b", Reject.COLUMNS),
        (line(at=TIMES.replace("00:02", "00:61")), Reject.IMPOSSIBLE_DATE),
        (line(start="x,40.7"), Reject.NUMBER),
        (line(taxi=""), NoFare.TAXI),
        *((line(fare=money), NoFare.AMOUNT) for money in ("", "-3", "nan", "1e3", "inf", ".", "six")),
        (line(tip="-0.5"), NoFare.AMOUNT),
    ],
)
def test_a_row_that_is_none_has_its_reason(row, reason):
    assert parse_fare(row) is reason


def test_areas_are_half_as_wide_as_query_1s_cells_and_begin_at_the_same_centre():
    lon, lat = Grid().lon, Grid().lat
    assert (AREAS.cells, AREAS.cell_lat * 2, AREAS.cell_lon * 2) == (600, Grid().cell_lat, Grid().cell_lon)
    quarter_east, quarter_south = lon + 0.3 * Grid().cell_lon, lat - 0.3 * Grid().cell_lat
    assert Grid().route(lon, lat, quarter_east, quarter_south) == (1, 1, 1, 1)
    assert AREAS.route(lon, lat, quarter_east, quarter_south) == (1, 1, 2, 2)


def test_a_result_has_four_figures_for_each_of_ten_areas():
    row = result_row("p", "d", [Standing("1.2", 3, 1501, 9), Standing("4.5", 1, 400, 7)])
    assert row == "p,d,1.2,3,7.505,2.501667,4.5,1,2.000,2.000000" + ",NULL" * 32
    assert row.count(",") == 41


def test_the_topology_joins_profits_and_taxis_by_area():
    edges = {
        (stream.componentId, stream.streamId, name, tuple(arg.string_arg for arg in grouping.custom_object.args_list))
        for name, bolt in Query2.thrift_bolts.items()
        for stream, grouping in bolt.common.inputs.items()
        if stream.streamId != "marker"
    }
    assert edges == {
        ("data_source", "default", "parser", ()),
        ("parser", "default", "locate", ()),
        ("locate", "clock", "metronome", ()),
        ("locate", "profits", "profit_by_area", ("area",)),
        ("locate", "taxis", "empty_taxis", ("taxi",)),
        ("metronome", "default", "profit_by_area", ("t",)),
        ("metronome", "default", "empty_taxis", ("t",)),
        ("profit_by_area", "default", "rank_areas", ("area",)),
        ("empty_taxis", "default", "rank_areas", ("area",)),
        ("rank_areas", "default", "top_areas", ()),
    }
    for spec in Query2.specs:
        conf = json.loads(spec.common.json_conf)
        assert conf["leeward.service_rate"] == RATES[spec.name]
        assert conf["leeward.max_replicas"] == MAX_REPLICAS[spec.name]
    assert set(LIKE) == set(MAX_REPLICAS) == {spec.name for spec in Query2.specs}


def test_the_command_prints_the_reference(tmp_path):
    file = tmp_path / "rows.csv"
    back = line(start="-73.962440,40.715008", end="-73.956528,40.716976", taxi="n")
    file.write_text(f"{line()}\n{back}\nbad\n")
    ran = CliRunner().invoke(_build(), ["reference", "query2", str(file), "--per", "pulse", "--count-bad"])
    assert ran.exit_code == 0
    (row,) = [text for text in ran.output.splitlines() if text.startswith("2013")]
    assert row == f"{TIMES},319.339,1,7.200,7.200000,321.339,1,7.200,7.200000" + ",NULL" * 32
    assert "columns: 1" in ran.output


def test_the_command_refuses_rows_out_of_order(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f"{line()}\n{line(at=TIMES.replace('00:02', '00:01'))}\n")
    ran = CliRunner().invoke(_build(), ["reference", "query2", str(file)])
    assert ran.exit_code == 1 and "line 2" in ran.output and "--sort" in ran.output


def test_a_taxi_is_empty_for_less_than_its_window():
    state: dict = {}
    places = TaxiPlaces(state, window_s=600)
    places.add("m", 1000, "1.1", 7)
    assert places.changes(1000) == [Place("1.1", "m", 7)]
    assert TaxiPlaces(state, window_s=600).changes(1599) == []  # as a moved task begins
    assert TaxiPlaces(state, window_s=600).changes(1600) == [Place("1.1", "m", 0)] and state == {}


def test_a_trip_counts_in_the_profit_for_less_than_its_window():
    state: dict = {}
    window = ProfitWindow(state, window_s=300)
    window.add("1.1", 1000, 700, 7)
    window.add("1.1", 1001, 300, 8)
    assert window.changes(1001) == [Profit("1.1", 2, 1000, 8)]
    assert ProfitWindow(state, window_s=300).changes(1299) == []
    assert ProfitWindow(state, window_s=300).changes(1300) == [Profit("1.1", 1, 600, 8)]
    assert ProfitWindow(state, window_s=300).changes(1301) == [Profit("1.1", 0, 0, 0)] and state == {}


def test_a_trip_that_leaves_while_another_comes_is_told():
    """The number of trips is as before, and so may be the median; the latest row is another."""
    window = ProfitWindow({}, window_s=300)
    window.add("1.1", 1000, 700, 7)
    assert window.changes(1000) == [Profit("1.1", 1, 1400, 7)]
    window.add("1.1", 1300, 700, 9)
    assert window.changes(1300) == [Profit("1.1", 1, 1400, 9)]


def test_a_taxi_that_drives_on_leaves_one_area_for_another_and_renews_its_own():
    places = TaxiPlaces({}, window_s=600)
    places.add("m", 1000, "1.1", 7)
    places.add("m", 1001, "1.1", 8)
    places.add("m", 999, "9.9", 6)  # it came through a slower task
    assert places.changes(1010) == [Place("1.1", "m", 8)]
    places.add("m", 1020, "1.1", 11)
    assert places.changes(1020) == [Place("1.1", "m", 11)]
    places.add("m", 1030, "2.2", 12)
    assert places.changes(1030) == [Place("1.1", "m", 0), Place("2.2", "m", 12)]
