"""Areas: what is refused, the date line, and what meets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from leeward.core.fields import FieldError
from leeward.policies.dssp.model.area import Area
from tests.helpers.dssp_areas import areas


def holds(area: Area, x: float, y: float) -> bool:
    within = area.west <= x <= area.east if area.west <= area.east else x >= area.west or x <= area.east
    return within and area.south <= y <= area.north


@given(areas(), areas())
def test_areas_meet_where_a_point_is_in_both(one, other):
    """Edges are on a grid, so areas that meet have one of its points in common."""
    common = any(
        holds(one, x, y) and holds(other, x, y) for x in range(-180, 181, 10) for y in range(-90, 91, 10)
    )  # fmt: skip
    assert one.intersects(other) == other.intersects(one) == common


@given(areas())
def test_json_brings_an_area_back(area):
    assert Area.from_json("area", area.to_json()) == area


def test_an_area_over_the_date_line_is_two_boxes():
    assert Area(170, -20, -170, 0).boxes() == ((170, -20, 180, 0), (-180, -20, -170, 0))
    assert Area(170, -20, -170, 0).intersects(Area(-175, -10, -160, 10))
    assert not Area(170, -20, -170, 0).intersects(Area(-160, -20, 160, 0))


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ("1,2,3,4", "areas[1]", "must be a list"),
        ([1, 2, 3], "areas[1]", "has 3 numbers"),
        ([1, 2, 3, 4, 5], "areas[1]", "has 5 numbers"),
        ([1, "2", 3, 4], "areas[1].south", "must be a number"),
        ([1, 2, True, 4], "areas[1].east", "must be a number"),
        ([math.nan, 2, 3, 4], "areas[1].west", "not a finite number"),
        ([10**400, 2, 3, 4], "areas[1].west", "not a finite number"),
        ([-181, 2, 3, 4], "areas[1].west", "not between -180 and 180"),
        ([1, 2, 180.5, 4], "areas[1].east", "not between -180 and 180"),
        ([1, -91, 3, 4], "areas[1].south", "not between -90 and 90"),
        ([1, 2, 3, 90.1], "areas[1].north", "not between -90 and 90"),
        ([1, 5, 3, 4], "areas[1].south", "greater than north, 4"),
    ],
)
def test_what_is_no_area_is_refused(value, field, reason):
    with pytest.raises(FieldError, match=reason) as caught:
        Area.from_json("areas[1]", value)
    assert caught.value.field == field and caught.value.remedy


def test_a_constructed_area_is_checked_too():
    with pytest.raises(FieldError, match=r"south = 5: is greater than north, 4\."):
        Area(1, 5, 3, 4)
    with pytest.raises(FieldError, match="west = inf"):
        Area(math.inf, 5, 3, 4)
