"""The common part of the studies on the paper's platform: runs by reading, number of links and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from leeward.core.experiment import Part
from leeward.policies.bimodal.experiments.readings import Named
from leeward.policies.bimodal.platform.run import Outcome, play
from leeward.policies.bimodal.platform.setup import Platform

NETWORKS, QUICK_NETWORKS = 10, 1
TASKS, QUICK_TASKS = 200, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A reading at a number of links."""

    name: str
    named: Named
    links: int
    per_hour: float = 60.0
    uneven: float = 0.0  #: of public paths

    @property
    def key(self) -> str:
        """For people, and to find it again."""
        return f"{self.name}, {self.links} links"


def parts_of(points: Sequence[Point], *, seed: int, quick: bool) -> list[Part]:
    """Each point on each network."""
    networks, tasks = (QUICK_NETWORKS, QUICK_TASKS) if quick else (NETWORKS, TASKS)
    return [
        Part(
            name=f"{point.key}, network {number}", seed=1000 * seed + number,
            options=(("point", point.key), ("tasks", tasks)),
        )
        for point in points
        for number in range(networks)
    ]  # fmt: skip


def figures(outcome: Outcome) -> dict[str, float]:
    """Percentages, Mbit/s and counts."""
    return {
        "acceptance": 100 * outcome.acceptance,
        "deviation": 100 * outcome.deviation,
        "elongation": 100 * outcome.elongation,
        "cpu": 100 * outcome.cpu,
        "links": 100 * outcome.links,
        "throughput": outcome.throughput,
        "public hops": outcome.public_hops,
        "messages": outcome.messages.total() / max(1, outcome.offered),
    }


class PlatformStudy:
    """A study whose parts are runs of the platform: every point on every network."""

    points: Sequence[Point]
    quick: Sequence[Point]

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """Each point on each network."""
        return parts_of(self.quick if quick else self.points, seed=seed, quick=quick)

    def measure(self, part: Part) -> Mapping[str, float]:
        """The figures of one run, in the units of the paper's figures."""
        point = next(point for point in self.points if point.key == part.option("point"))
        platform = Platform(
            links=point.links, direction=point.named.direction, tasks=int(part.option("tasks")),
            per_hour=point.per_hour, uneven=point.uneven,
        )  # fmt: skip
        return figures(play(platform, point.named.reading, part.seed))


class Found:
    """Means over the networks of each point."""

    def __init__(self, measured: Mapping[Part, Mapping[str, float]]) -> None:
        self._by_point: dict[str, list[Mapping[str, float]]] = {}
        for part, one in measured.items():
            self._by_point.setdefault(str(part.option("point")), []).append(one)

    def has(self, point: Point) -> bool:
        """It was run."""
        return point.key in self._by_point

    def values(self, point: Point, name: str) -> list[float]:
        """One for each network."""
        return [one[name] for one in self._by_point[point.key]]

    def mean(self, point: Point, name: str) -> float:
        """Over the networks."""
        return fmean(self.values(point, name))

    def spread(self, point: Point, name: str) -> float:
        """Standard deviation between networks; 0 of one alone."""
        values = self.values(point, name)
        return stdev(values) if len(values) > 1 else 0.0

    def setting(self, point: Point) -> str:
        """In words."""
        return f"{point.key}, {len(self._by_point[point.key])} networks"


def with_links(name: str, named: Named, links: Sequence[int]) -> list[Point]:
    """The same reading at several numbers of links."""
    return [Point(name=name, named=named, links=count) for count in links]
