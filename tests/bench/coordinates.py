"""Vivaldi's coordinates against measured matrices of round trips: how far predictions are off.

    python tests/bench/coordinates.py [--shared ../shared] [--looks 200] [--peers 64] [--seed 0]

Each node asks one of its peers, which are drawn once, so many times, as tasks do (`leeward.core.coordinates`). Printed
are the median and the ninth decile of |predicted - measured| / measured over all pairs, those that were never measured
too. PlanetLab: 490 nodes, six matrices. Seattle: 99 nodes, 60 matrices over time; directions are averaged, each look
takes the next matrix, and the last one is predicted. The data's sources are in ../shared/data/SOURCES.md.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import statistics
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from leeward.core.coordinates import Coordinate, moved, round_trip_s

Matrix = Sequence[Sequence[float]]  #: s; 0 or less: not measured


def planetlab(path: Path) -> Matrix:
    """A matrix in ms."""
    with gzip.open(path, "rt") as lines:
        return [[float(value) / 1_000 for value in line.split()] for line in lines if line.strip()]


def seattle(path: Path) -> list[Matrix]:
    """Matrices in s, in their order; a pair without one of its directions is left out."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.isfile() and (data := archive.extractfile(member)):
                rows = [list(map(float, line.split())) for line in io.TextIOWrapper(data) if line.strip()]
                found[member.name] = _both_ways(rows)
    return [found[name] for name in sorted(found, key=lambda name: int("".join(filter(str.isdigit, Path(name).name))))]


def _both_ways(rows: Matrix) -> Matrix:
    count = len(rows)
    return [
        [(rows[a][b] + rows[b][a]) / 2 if rows[a][b] > 0 and rows[b][a] > 0 else 0.0 for b in range(count)]
        for a in range(count)
    ]


def settled(
    at: Callable[[int], Matrix], *, looks: int, peers: int, seed: int, count: int
) -> list[Coordinate]:  # fmt: skip
    """Coordinates of all nodes after so many looks of each; `at(look)`: the matrix then."""
    rng = random.Random(seed)
    places = [Coordinate()] * count
    others = [
        rng.sample([other for other in range(count) if other != node], min(peers, count - 1)) for node in range(count)
    ]
    for look in range(looks):
        matrix = at(look)
        for node in range(count):
            other = rng.choice(others[node])
            places[node] = moved(places[node], places[other], matrix[node][other], rng)
    return places


def errors(places: Sequence[Coordinate], matrix: Matrix) -> list[float]:
    """Relative, of all pairs that were measured, in order."""
    return sorted(
        abs(round_trip_s(places[a], places[b]) - matrix[a][b]) / matrix[a][b]
        for a in range(len(places)) for b in range(a) if matrix[a][b] > 0
    )  # fmt: skip


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[3] / "shared")
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument("--peers", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table = Table("matrix", "nodes", "median error", "ninth decile")

    def row(name: str, places: Sequence[Coordinate], matrix: Matrix) -> None:
        found = errors(places, matrix)
        table.add_row(name, str(len(places)), f"{statistics.median(found):.1%}", f"{found[len(found) * 9 // 10]:.1%}")

    how = {"looks": given.looks, "peers": given.peers, "seed": given.seed}
    folder = given.shared / "data" / "rtt"
    for path in sorted(folder.glob("planetlab490_*.gz")):
        matrix = planetlab(path)
        row(path.name.removesuffix(".txt.gz"), settled(lambda _, m=matrix: m, count=len(matrix), **how), matrix)
    series = seattle(folder / "seattle99_slices001-060.tar.gz")
    row("seattle99", settled(lambda look: series[look % len(series)], count=len(series[0]), **how), series[-1])
    Console().print(table)


if __name__ == "__main__":
    main()
