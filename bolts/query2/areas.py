"""The challenge's areas: query 1's grid at half the side, 600 x 600 cells of 250 m."""

from __future__ import annotations

from bolts.query1.grid import Grid

_HALF = Grid()
#: Cell 1.1 is centred where query 1 has its own.
AREAS = Grid(cell_lat=_HALF.cell_lat / 2, cell_lon=_HALF.cell_lon / 2, cells=2 * _HALF.cells)


def area_id(east: int, south: int) -> str:
    """`east.south`."""
    return f"{east}.{south}"
