"""The challenge's grid: 300 x 300 cells of 500 m, numbered `east.south` from 1.1 in the north-west."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.errors import ConfigError

#: Side of a cell, metres.
CELL_M = 500.0

#: East and south of the cell where a trip starts, then of that where it ends.
Route = tuple[int, int, int, int]


def route_id(from_east: int, from_south: int, to_east: int, to_south: int) -> str:
    """`e1.s1>e2.s2`."""
    return f"{from_east}.{from_south}>{to_east}.{to_south}"


def cells_of(route: str) -> Route:
    """The cells of a route's id."""
    ends = [end.split(".") for end in route.split(">")]
    (from_east, from_south), (to_east, to_south) = ends
    return int(from_east), int(from_south), int(to_east), int(to_south)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where the cells lie; a cell owns its western and northern edges. Raises ConfigError for sizes <= 0."""

    lat: float = 41.474937  #: degrees north, centre of cell 1.1
    lon: float = -74.913585  #: degrees east, centre of cell 1.1
    cell_lat: float = 0.004491556  #: degrees southward of one cell
    cell_lon: float = 0.005986  #: degrees eastward of one cell
    cells: int = 300  #: cells in either direction

    def __post_init__(self) -> None:
        for name in ("cell_lat", "cell_lon", "cells"):
            value = getattr(self, name)
            if not value > 0:
                raise ConfigError(f"grid: {name} is {value!r}.", remedy="It must be greater than 0.")

    def route(self, from_lon: float, from_lat: float, to_lon: float, to_lat: float) -> Route | None:
        """The cells that hold both ends of a trip (degrees), or None if either lies outside."""
        lon, lat, cell_lon, cell_lat, cells = self.lon, self.lat, self.cell_lon, self.cell_lat, self.cells
        from_east = (from_lon - lon) / cell_lon + 0.5
        from_south = (lat - from_lat) / cell_lat + 0.5
        to_east = (to_lon - lon) / cell_lon + 0.5
        to_south = (lat - to_lat) / cell_lat + 0.5
        # before they become whole numbers, as a quotient may be infinite
        if 0 <= from_east < cells and 0 <= from_south < cells and 0 <= to_east < cells and 0 <= to_south < cells:
            return int(from_east) + 1, int(from_south) + 1, int(to_east) + 1, int(to_south) + 1
        return None

    @classmethod
    def of_metres(cls, *, lon_m_per_degree: float, lat_m_per_degree: float) -> Grid:
        """The grid of an author who takes a degree to be so many metres (the organisers give degrees)."""
        for name, value in (("lon_m_per_degree", lon_m_per_degree), ("lat_m_per_degree", lat_m_per_degree)):
            if not value > 0:
                raise ConfigError(f"grid: {name} is {value!r}.", remedy="Give metres of one degree, greater than 0.")
        return cls(cell_lon=CELL_M / lon_m_per_degree, cell_lat=CELL_M / lat_m_per_degree)
