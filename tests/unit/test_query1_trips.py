"""Rows of the taxi file, and the cells they start and end in."""

import pytest

from bolts.query1.grid import Grid, route_id
from bolts.query1.trips import Reject, Trip, parse_trip
from leeward.core.errors import ConfigError

GOOD = (
    "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,"
    "2013-01-01 00:02:00,120,0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50"
)


def with_column(index: int, text: str) -> str:
    columns = GOOD.split(",")
    columns[index] = text
    return ",".join(columns)


def test_a_good_row():
    assert parse_trip(GOOD) == Trip(
        pickup="2013-01-01 00:00:00",
        dropoff="2013-01-01 00:02:00",
        dropoff_s=1_356_998_520,
        from_lon=-73.956528,
        from_lat=40.716976,
        to_lon=-73.962440,
        to_lat=40.715008,
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_line_ends_do_not_matter(end):
    assert parse_trip(GOOD + end) == parse_trip(GOOD)


def test_coordinates_may_end_in_f():
    assert parse_trip(with_column(6, "-73.956528f")) == parse_trip(GOOD)


def test_pickup_may_equal_dropoff_and_days_may_be_leap_days():
    assert isinstance(parse_trip(with_column(3, "2013-01-01 00:00:00")), Trip)
    trip = parse_trip(with_column(3, "2016-02-29 23:59:59"))
    assert isinstance(trip, Trip) and trip.dropoff_s == 1_456_790_399


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", Reject.COLUMNS),
        (GOOD + ",", Reject.COLUMNS),
        (GOOD.replace(",CSH", ""), Reject.COLUMNS),
        (with_column(2, ""), Reject.DATE),
        (with_column(2, "pickup_datetime"), Reject.DATE),
        (with_column(3, "2013-01-01T00:02:00"), Reject.DATE),
        (with_column(3, "2013-01-01 00:02:00.0"), Reject.DATE),
        (with_column(3, "2013-01-01 00:02"), Reject.DATE),
        (with_column(3, "２013-01-01 00:02:00"), Reject.DATE),
        (with_column(3, "2013-02-29 00:02:00"), Reject.IMPOSSIBLE_DATE),
        (with_column(3, "0000-00-00 00:00:00"), Reject.IMPOSSIBLE_DATE),
        (with_column(3, "2013-01-01 24:00:00"), Reject.IMPOSSIBLE_DATE),
        (with_column(3, "2013-01-01 00:60:00"), Reject.IMPOSSIBLE_DATE),
        (with_column(3, "2013-01-01 00:02:60"), Reject.IMPOSSIBLE_DATE),
        (with_column(3, "2013-01-01 00:02:0"), Reject.DATE),
        (with_column(3, "2013-01-01 00:02:0x"), Reject.DATE),
        (with_column(3, "2013-01-01 00:02:００"), Reject.DATE),
        (with_column(3, "2013-01-01 00:02 :00"), Reject.DATE),
        (with_column(2, "2013-01-01 00:02:01"), Reject.IMPOSSIBLE_DATE),
        (with_column(6, ""), Reject.NUMBER),
        (with_column(7, "nan"), Reject.NUMBER),
        (with_column(8, "inf"), Reject.NUMBER),
        (with_column(9, "1e999"), Reject.NUMBER),
        (with_column(9, "4_0.7"), Reject.NUMBER),
        (with_column(9, "40.7ff"), Reject.NUMBER),
        (with_column(9, "f"), Reject.NUMBER),
        (with_column(9, "4e"), Reject.NUMBER),
        (with_column(9, " 40.7"), Reject.NUMBER),
        (with_column(9, "40.7\t"), Reject.NUMBER),
        (with_column(9, "４0.7"), Reject.NUMBER),
        (with_column(9, "0x1f"), Reject.NUMBER),
        (with_column(9, "-1e999f"), Reject.NUMBER),
    ],
)
def test_bad_rows_have_a_reason(line, reason):
    assert parse_trip(line) is reason


def test_the_first_reason_counts():
    assert parse_trip(with_column(6, "x").replace("2013-01-01 00:02:00", "x")) is Reject.DATE


@pytest.mark.parametrize("text", ["-7.3956528e1", "-73.956528F", "-0073.956528", "-73956528.e-6"])
def test_a_number_may_be_written_in_many_ways(text):
    assert parse_trip(with_column(6, text)) == parse_trip(GOOD)


def cell(grid: Grid, lon: float, lat: float) -> str | None:
    """`east.south` of the cell that holds a point."""
    route = grid.route(lon, lat, lon, lat)
    if route is None:
        return None
    start, end = route_id(*route).split(">")
    assert start == end
    return start


def test_cell_1_1_is_centred_where_the_challenge_says():
    grid = Grid()
    assert cell(grid, -74.913585, 41.474937) == "1.1"
    assert cell(grid, -74.913585 + 0.005986, 41.474937) == "2.1"
    assert cell(grid, -74.913585, 41.474937 - 2 * 0.004491556) == "1.3"


@pytest.mark.parametrize(
    ("east", "south", "number"),
    [
        (-0.49, -0.49, "1.1"),
        (0.49, 0.49, "1.1"),
        (0.51, 0.49, "2.1"),
        (0.49, 0.51, "1.2"),
        (299.49, 299.49, "300.300"),
        (-0.51, 0, None),
        (0, -0.51, None),
        (299.51, 0, None),
        (0, 299.51, None),
    ],
)
def test_edges_of_cells_and_grid(east, south, number):
    """`east`, `south`: cells from the centre of cell 1.1."""
    grid = Grid()
    assert cell(grid, grid.lon + east * grid.cell_lon, grid.lat - south * grid.cell_lat) == number


@pytest.mark.parametrize("far", [1e308, -1e308])
def test_the_end_of_the_numbers_lies_outside(far):
    assert cell(Grid(), far, 41.0) is cell(Grid(), -74.0, far) is None


def test_zero_coordinates_lie_outside():
    assert cell(Grid(), 0.0, 0.0) is None
    assert Grid().route(0.0, 0.0, -73.993973, 40.751266) is None
    assert Grid().route(-73.993973, 40.751266, 0.0, 0.0) is None


def test_cell_sizes_are_parameters():
    own = Grid.of_metres(lon_m_per_degree=84_380, lat_m_per_degree=110_540)
    assert cell(own, -73.993973, 40.751266) == "156.161"
    assert cell(Grid(), -73.993973, 40.751266) == "155.162"
    assert route_id(*own.route(-74.913585, 41.474937, -73.993973, 40.751266)) == "1.1>156.161"


def test_sizes_must_be_positive():
    with pytest.raises(ConfigError, match="cell_lon is 0"):
        Grid(cell_lon=0)
    with pytest.raises(ConfigError, match="lat_m_per_degree is -1"):
        Grid.of_metres(lon_m_per_degree=1, lat_m_per_degree=-1)
