"""Areas that domains cover and queries ask for: a box of longitudes and latitudes, over the date line too."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leeward.core.fields import FieldError, number, wrong_type

#: West, south, east, north in degrees, west <= east and south <= north.
Box = tuple[float, float, float, float]
#: Largest longitude and latitude, degrees; the smallest are their negatives.
LONGITUDE, LATITUDE = 180.0, 90.0
EDGES = ("west", "south", "east", "north")
_LIMITS = (LONGITUDE, LATITUDE, LONGITUDE, LATITUDE)


@dataclass(frozen=True, slots=True)
class Area:
    """All points between two meridians and two parallels, edges included; in degrees.

    An area whose west is greater than its east goes over the date line: it has all points from `west` to 180 and from
    -180 to `east`.  180 and -180 count as two meridians, so areas that touch there from either side do not meet.

    Raises FieldError, with the edge as its field, for one that is not finite or out of range, or south above north.
    """

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        _check("", (self.west, self.south, self.east, self.north))

    def boxes(self) -> tuple[Box, ...]:
        """The area without the date line: one box, or the one west of it and the one east of it."""
        if self.west <= self.east:
            return ((self.west, self.south, self.east, self.north),)
        return ((self.west, self.south, LONGITUDE, self.north), (-LONGITUDE, self.south, self.east, self.north))

    def intersects(self, other: Area) -> bool:
        """Whether some point is in both; a common edge or corner is enough."""
        return any(_meet(one, two) for one in self.boxes() for two in other.boxes())

    def to_json(self) -> list[float]:
        """West, south, east, north in degrees."""
        return [self.west, self.south, self.east, self.north]

    @classmethod
    def from_json(cls, field: str, value: object) -> Area:
        """The area of a list of four numbers. Raises FieldError with a path such as `areas[2].south`."""
        if not isinstance(value, list):
            raise wrong_type(field, value, "a list [west, south, east, north]")
        if len(value) != len(EDGES):
            remedy = "give four: [west, south, east, north] in degrees"
            raise FieldError(field, value, f"has {len(value)} numbers", remedy=remedy)
        edges = tuple(number(f"{field}.{name}", item) for name, item in zip(EDGES, value, strict=True))
        _check(f"{field}.", edges)
        return cls(*edges)


def _check(prefix: str, edges: tuple[float, ...]) -> None:
    for name, degrees, limit in zip(EDGES, edges, _LIMITS, strict=True):
        if not math.isfinite(degrees):
            raise FieldError(f"{prefix}{name}", degrees, "is not a finite number", remedy="give a finite number")
        if abs(degrees) > limit:
            reason = f"is not between {-limit:g} and {limit:g} degrees"
            raise FieldError(f"{prefix}{name}", degrees, reason, remedy=f"give {-limit:g} to {limit:g}")
    south, north = edges[1], edges[3]
    if south > north:
        remedy = "give west, south, east, north in this order"
        raise FieldError(f"{prefix}south", south, f"is greater than north, {north:g}", remedy=remedy)


def _meet(one: Box, two: Box) -> bool:
    return one[0] <= two[2] and two[0] <= one[2] and one[1] <= two[3] and two[1] <= one[3]
