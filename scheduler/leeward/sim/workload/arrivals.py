"""Arrivals and departures drawn from a seed, as the paper on edge and cloud has them (its section 5, "Workloads").

Pure. They do not depend on a policy, so several policies meet the same ones; an arrival that a policy refuses stays an
arrival. The first intervals of a longer run are those of a shorter one.

Our reading: sizes are those that the catalogue has. A size that no entry, or no active topology, has is drawn again
until one does, which is to draw among those that do, by the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from leeward.core.fields import FieldError, check_number

#: Active components for each node, on average: the paper's U.
UTILISATION = 2.0
#: Poisson arrivals: the mean size, and how many topologies there are at first, in a small cluster and in a large one.
POISSON_SIZE = 12.0
SMALL_NODES, SMALL_START, LARGE_START = 100, 16, 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrive:
    """A topology comes."""

    topology: str
    entry: int  #: of the catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Depart:
    """A topology goes."""

    topology: str


#: The events of one control interval: one, but for the first interval of Poisson arrivals.
Step = tuple[Arrive | Depart, ...]


def random_walk(
    sizes: Sequence[int], nodes: int, intervals: int, rng: Random, *, spread: float = 0.0
) -> tuple[Step, ...]:
    """Adds while there are less than U + u components a node, then removes while there are more than U - u.

    `sizes`: components of each entry of the catalogue; `spread`: u. A size is drawn with a probability inversely
    proportional to it. Raises `FieldError` for a catalogue without entries or a spread outside of 0 to U.
    """
    check_number("spread", spread)
    if spread > UTILISATION:
        remedy = f"give a number from 0 to {UTILISATION:g}"
        raise FieldError("spread", spread, f"is more than the mean utilisation of {UTILISATION:g}", remedy=remedy)
    pool = _Pool(sizes, lambda size: -math.log(size), rng)
    low, high = (UTILISATION - spread) * nodes, (UTILISATION + spread) * nodes
    steps: list[Step] = []
    adds = True
    for _ in range(_count(intervals)):
        if adds and not pool.components < high:
            adds = False
        if not adds and not pool.components > low:
            adds = True
        steps.append((pool.add() if adds else pool.remove(),))
    return tuple(steps)


def poisson(
    sizes: Sequence[int], nodes: int, intervals: int, rng: Random, *, start: int | None = None
) -> tuple[Step, ...]:
    """`start` topologies in the first interval, then one comes and one goes in turn.

    None: 16 topologies, or 70 where there are over 100 nodes.

    A size is drawn from a Poisson distribution with mean 12. Raises `FieldError` for a catalogue without entries.
    """
    pool = _Pool(sizes, lambda size: size * math.log(POISSON_SIZE) - math.lgamma(size + 1), rng)
    if start is None:
        start = SMALL_START if nodes <= SMALL_NODES else LARGE_START
    steps: list[Step] = [tuple(pool.add() for _ in range(start))]
    steps += [(pool.add() if interval % 2 else pool.remove(),) for interval in range(1, _count(intervals))]
    return tuple(steps)


def _count(intervals: int) -> int:
    if intervals < 1:
        raise FieldError("intervals", intervals, "there is nothing to run", remedy="give 1 or more")
    return intervals


class _Pool:
    """The catalogue by size, and the topologies that are active as far as the arrivals go."""

    def __init__(self, sizes: Sequence[int], log_weight: Callable[[int], float], rng: Random) -> None:
        if not sizes or min(sizes) < 1:
            remedy = "give entries with a component at least"
            raise FieldError("catalogue.sizes", list(sizes), "nothing can arrive", remedy=remedy)
        self._sizes, self._rng, self._log_weight = sizes, rng, log_weight
        self._entries: dict[int, list[int]] = {}
        for entry, size in enumerate(sizes):
            self._entries.setdefault(size, []).append(entry)
        self._active: dict[str, int] = {}  # topology -> size, in the order of arrival
        self._arrivals = 0
        self.components = 0

    def add(self) -> Arrive:
        """A size by weight, then one of the entries of this size evenly."""
        entry = self._rng.choice(self._entries[self._drawn(self._entries)])
        name = f"t{self._arrivals:04}"
        self._arrivals += 1
        self._active[name] = self._sizes[entry]
        self.components += self._sizes[entry]
        return Arrive(topology=name, entry=entry)

    def remove(self) -> Depart:
        """A size by weight, then the first active topology of this size."""
        size = self._drawn(set(self._active.values()))
        name = next(name for name, other in self._active.items() if other == size)
        del self._active[name]
        self.components -= size
        return Depart(topology=name)

    def _drawn(self, sizes: dict[int, list[int]] | set[int]) -> int:
        """Weights are relative to the greatest, so that they do not all vanish far from the mean."""
        known = sorted(sizes)
        logs = [self._log_weight(size) for size in known]
        return self._rng.choices(known, [math.exp(one - max(logs)) for one in logs])[0]
