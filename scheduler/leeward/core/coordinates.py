"""Network coordinates (Vivaldi): round trips between all nodes, from a few that each of them has measured.

A node's coordinate is a point in the plane and a height above it. Two nodes are as far from each other as the way down
from one, along the plane, and up to the other: heights stand for access links, which all traffic of a node shares.
After each round trip that a node has measured, it moves its own coordinate a little, by the error of its prediction; a
node that is sure of its place moves less than one that is not. F. Dabek, R. Cox, F. Kaashoek and R. Morris, *Vivaldi: A
Decentralized Network Coordinate System*, SIGCOMM 2004.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

#: Of the plane.
DIMENSIONS = 2
#: Shares by which one round trip changes the error and moves the coordinate: the paper's c_e and c_c.
ERROR_SHARE = MOVE_SHARE = 0.25
#: A height is never less, s: heights only grow by a share of what they are.
LEAST_HEIGHT_S = 1e-6
#: A round trip longer than this is a machine that slept, or a clock that was set; s.
LONGEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The place of a node. Figures in s, but the error, which is a share."""

    position: tuple[float, ...] = (0.0,) * DIMENSIONS
    height: float = LEAST_HEIGHT_S
    error: float = 1.0  #: of its predictions, relative, smoothed; 1: nothing is known yet

    def figures(self) -> list[float]:
        """For a message: position, height, error."""
        return [*self.position, self.height, self.error]

    @classmethod
    def of(cls, figures: object) -> Coordinate | None:
        """From a message; None if these are no such figures."""
        if not isinstance(figures, list | tuple) or len(figures) != DIMENSIONS + 2:
            return None
        if not set(map(type, figures)) <= {int, float}:
            return None
        try:
            *position, height, error = map(float, figures)
        except OverflowError:  # an int of hundreds of digits
            return None
        if not all(map(math.isfinite, (*position, height, error))):
            return None
        return cls(tuple(position), height, error) if height > 0 and 0 < error <= 1 else None


def round_trip_s(one: Coordinate, other: Coordinate) -> float:
    """As predicted, s."""
    return math.dist(one.position, other.position) + one.height + other.height


def moved(own: Coordinate, other: Coordinate, measured_s: float, rng: Random) -> Coordinate:
    """`own` after a round trip to `other`'s node; unchanged by one that cannot be. `rng`: where both are at one point.

    The paper's section 3.4, with the vectors of section 5.4 for heights.
    """
    if not 0 < measured_s <= LONGEST_S:
        return own
    apart, predicted = math.dist(own.position, other.position), round_trip_s(own, other)
    trust = own.error / (own.error + other.error)
    wrong = abs(predicted - measured_s) / measured_s
    error = wrong * ERROR_SHARE * trust + own.error * (1 - ERROR_SHARE * trust)
    step = MOVE_SHARE * trust * (measured_s - predicted) / predicted
    along = [a - b for a, b in zip(own.position, other.position, strict=True)] if apart else _somewhere(predicted, rng)
    return Coordinate(
        position=tuple(a + step * way for a, way in zip(own.position, along, strict=True)),
        height=max(LEAST_HEIGHT_S, own.height + step * (own.height + other.height)),
        error=min(1.0, max(error, 1e-6)),
    )


def _somewhere(length: float, rng: Random) -> list[float]:
    """A vector of this length in any direction."""
    way = [rng.gauss(0, 1) for _ in range(DIMENSIONS)]
    return [length * part / (math.hypot(*way) or 1.0) for part in way]


def surest(known: Iterable[Coordinate]) -> Coordinate | None:
    """The one of least error; of equal ones the first. None of none."""
    return min(known, key=lambda one: one.error, default=None)


class Delays(Mapping[tuple[str, str], float]):
    """One-way delays, s, by (node, node), of nodes that have a place: half of the round trip.

    A round trip that was measured between the two, in either direction, goes before the prediction by their places.
    Nothing is computed before it is asked for, as a thousand nodes have a million pairs.
    """

    def __init__(
        self, places: Mapping[str, Coordinate], measured: Mapping[tuple[str, str], float] | None = None
    ) -> None:
        """`measured`: round trips, s, by (from node, to node)."""
        self.places = {node: place for node, place in sorted(places.items()) if place != Coordinate()}
        self._measured = dict(measured or {})

    def __getitem__(self, pair: tuple[str, str]) -> float:
        a, b = pair
        if a == b or a not in self.places or b not in self.places:
            raise KeyError(pair)
        measured = [self._measured[way] for way in ((a, b), (b, a)) if way in self._measured]
        return min(measured, default=round_trip_s(self.places[a], self.places[b])) / 2

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((a, b) for a in self.places for b in self.places if a != b)

    def __len__(self) -> int:
        return len(self.places) * max(0, len(self.places) - 1)

    def error(self) -> float | None:
        """Median of |predicted - measured| / measured over the pairs that were measured; None without one."""
        off = sorted(
            abs(round_trip_s(self.places[a], self.places[b]) - seconds) / seconds
            for (a, b), seconds in self._measured.items()
            if seconds > 0 and a in self.places and b in self.places
        )
        return off[len(off) // 2] if off else None
