"""The challenge's grid: 300 x 300 cells of 500 m, numbered `east.south` from 1.1 in the north-west."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from leeward.core.errors import ConfigError

#: Side of a cell, metres.
CELL_M = 500.0


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

    def cell(self, lon: float, lat: float) -> str | None:
        """`east.south` of the cell that holds a point (degrees), or None outside the grid."""
        east = floor((lon - self.lon) / self.cell_lon + 0.5) + 1
        south = floor((self.lat - lat) / self.cell_lat + 0.5) + 1
        if 1 <= east <= self.cells and 1 <= south <= self.cells:
            return f"{east}.{south}"
        return None

    def route(self, from_lon: float, from_lat: float, to_lon: float, to_lat: float) -> str | None:
        """Route id `e1.s1>e2.s2`, or None if either end lies outside."""
        start = self.cell(from_lon, from_lat)
        end = self.cell(to_lon, to_lat)
        return None if start is None or end is None else f"{start}>{end}"

    @classmethod
    def of_metres(cls, *, lon_m_per_degree: float, lat_m_per_degree: float) -> Grid:
        """The grid of an author who takes a degree to be so many metres (the organisers give degrees)."""
        for name, value in (("lon_m_per_degree", lon_m_per_degree), ("lat_m_per_degree", lat_m_per_degree)):
            if not value > 0:
                raise ConfigError(
                    f"grid: {name} is {value!r}.", remedy="Give metres of one degree, greater than 0."
                )
        return cls(cell_lon=CELL_M / lon_m_per_degree, cell_lat=CELL_M / lat_m_per_degree)
