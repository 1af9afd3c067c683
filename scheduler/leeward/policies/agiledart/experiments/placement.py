"""Fig. 10(a) and 10(b): how evenly the dataflows of up to 1,000 applications lay operators on 10,000 nodes.

An independent simulation of the same figures is in the specification of AgileDART, section 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.agiledart.dataflow.nodes import ByTables, Loads
from leeward.policies.agiledart.dataflow.placement import place
from leeward.policies.agiledart.overlay.ids import hops_bound
from leeward.policies.agiledart.platform.heartbeats import LoadsOfHeartbeats
from leeward.policies.agiledart.platform.zones import Zoned, chain, zoned

FIGURE = "Fig. 10"
NODES, ZONES, OPERATORS = 10_000, 20, 10
APPLICATIONS = (250, 500, 750, 1_000)
#: A node holds so many: more than any has, as the paper names no limit.
CAPACITY = 20
NETWORKS, QUICK_NETWORKS = 10, 1
#: Ways to place: dataflows of one or two sources with their ends anywhere or in one zone, the first with old loads, and
#: operators on random nodes.
ONE, TWO, LOCAL = "one source", "two sources", "one source, in one zone"
STALE, RANDOM = "one source, old loads", "random nodes"
WAYS = ONE, TWO, LOCAL, STALE, RANDOM
#: Applications between two heartbeats where loads are old.
BEAT = 100
#: Share of nodes that host fewer operators, %: (applications, operators) -> paper, independent, and the issue's bounds.
PAPER = {(250, 3): 97.85, (500, 3): 97.85, (750, 4): 99.89, (1_000, 4): 99.89}
INDEPENDENT = {(500, 3): 99.84, (1_000, 3): 98.66, (1_000, 4): 99.90}
#: Of the ways with one source.
BOUND = ONE, LOCAL
LOW = {(500, 3): 99.8, (1_000, 3): 98.5, (1_000, 4): 99.9}
MEAN_HOPS, MOST_HOPS = 3.1, 4
#: Operators of a node and hops of a JOIN that the picture shows.
SHOWN, SHOWN_HOPS = 7, 5


class Spread:
    """A study whose parts are networks; on each all ways place the same number of applications."""

    def parts(self, *, seed: int, quick: bool) -> list[Part]:
        """One network where it is quick."""
        numbers = range(QUICK_NETWORKS if quick else NETWORKS)
        return [Part(name=f"network {number}", seed=1_000 * seed + number) for number in numbers]

    def measure(self, part: Part) -> Mapping[str, float]:
        """Of each way the nodes by `A applications: K operators`, and the JOINs by `H hops`."""
        network = zoned(NODES, ZONES, Random(part.seed))
        found = {way: spread(network, way, Random(f"{part.seed} {way}")) for way in WAYS}
        return {f"{way}; {name}": count for way, counts in found.items() for name, count in counts.items()}

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Over all networks together."""
        sums: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
        for figures in measured.values():
            for name, count in figures.items():
                way, _, counted = name.partition("; ")
                sums[way][counted] += int(count)
        found = {way: Spreads(one) for way, one in sums.items()}
        rows = [row for way in WAYS for row in (*_shares(way, found[way]), *_hops(way, found[way]))]
        return Finding(rows=tuple(rows), panels=_panels(found), notes=NOTES)


def spread(
    network: Zoned, way: str, rng: Random, *, applications: Sequence[int] = APPLICATIONS, beat: int = BEAT
) -> Counter[str]:
    """The counts of one network and way; `applications`: ascending, and nodes are counted at each; `beat`: see BEAT."""
    ids = network.overlay.ids
    overlay = ByTables(network.overlay)
    loads = (LoadsOfHeartbeats if way == STALE else Loads)(dict.fromkeys(ids, CAPACITY))
    found: Counter[str] = Counter()
    for number in range(1, applications[-1] + 1):
        if way == RANDOM:
            for _ in range(OPERATORS):
                loads.add(rng.choice(ids))
        else:
            nodes = rng.choice(network.zones) if way == LOCAL else ids
            made = chain(f"{number}", nodes, rng, operators=OPERATORS, sources=2 if way == TWO else 1)
            found.update(f"{join.hops} hops" for join in place(made, overlay, loads).joins.values())
        if isinstance(loads, LoadsOfHeartbeats) and number % beat == 0:
            loads.beat()
        if number in applications:
            found.update(f"{number} applications: {loads.hosted(node)} operators" for node in ids)
    return found


class Spreads:
    """Sums of a way to place."""

    def __init__(self, sums: Counter[str]) -> None:
        self._sums = sums

    def share(self, applications: int, operators: int) -> float:
        """Of the nodes, those with so many operators, %."""
        counts = self._counts(f"{applications} applications: ", " operators")
        return 100 * counts[operators] / counts.total()

    def below(self, applications: int, operators: int) -> float:
        """Of the nodes, those with fewer operators, %."""
        return sum(self.share(applications, count) for count in range(operators))

    def most(self, applications: int) -> int:
        """Operators on a node."""
        return max(self._counts(f"{applications} applications: ", " operators"))

    @property
    def hops(self) -> Counter[int]:
        """JOINs by their hops."""
        return self._counts("", " hops")

    def _counts(self, before: str, after: str) -> Counter[int]:
        names = (name for name in self._sums if name.startswith(before) and name.endswith(after))
        return Counter({int(name.removeprefix(before).removesuffix(after)): int(self._sums[name]) for name in names})


def _shares(way: str, found: Spreads) -> Iterator[Row]:
    for applications in APPLICATIONS:
        setting = f"{applications:,} applications, {way}"
        for operators in (3, 4):
            key = (applications, operators)
            yield Row(
                figure=FIGURE, setting=setting, metric=f"nodes of fewer than {operators} operators", unit="%",
                ours=found.below(*key), paper=PAPER.get(key) if way != RANDOM else None,
                independent=INDEPENDENT.get(key) if way == ONE else None, low=LOW.get(key) if way in BOUND else None,
            )  # fmt: skip
        yield Row(
            figure=FIGURE, setting=setting, metric="most operators of a node", unit="", ours=found.most(applications)
        )


def _hops(way: str, found: Spreads) -> Iterator[Row]:
    if way == RANDOM:
        return
    hops = found.hops
    mean = sum(count * number for count, number in hops.items()) / hops.total()
    known = way == ONE

    def row(metric: str, ours: float, independent: float, high: float | None = None) -> Row:
        return Row(
            figure="section IV", setting=way, metric=metric, unit="hops", ours=ours, high=high,
            independent=independent if known else None,
        )  # fmt: skip

    yield row("JOIN, mean", mean, MEAN_HOPS)
    yield row("JOIN, most", max(hops), MOST_HOPS, hops_bound(NODES))


def _panels(found: Mapping[str, Spreads]) -> tuple[Panel, ...]:
    operators, at = range(SHOWN), tuple(float(count) for count in range(SHOWN))
    by_applications = tuple(
        Curve(name=f"{number:,}", values=tuple(found[ONE].share(number, count) for count in operators))
        for number in APPLICATIONS
    )
    by_way = tuple(
        Curve(name=way, values=tuple(found[way].share(APPLICATIONS[-1], count) for count in operators)) for way in WAYS
    )
    hops = found[ONE].hops
    ways = tuple(100 * hops[count] / hops.total() for count in range(SHOWN_HOPS))
    along = "operators of a node"
    return (
        Panel(title="nodes, by applications", unit="%", kind="lines", along=along, at=at, curves=by_applications),
        Panel(title="nodes, 1,000 applications", unit="%", kind="lines", along=along, at=at, curves=by_way),
        Panel(title="JOINs", unit="%", kind="dots", along="hops", curves=(Curve(name=ONE, values=ways),)),
    )


NOTES = (
    "10,000 nodes with random ids in 20 zones of 500; an application has 10 operators: its sources and its sink on "
    "random nodes, of one random zone where it says so, and a chain between. The paper has a mix of topologies of 10 "
    "operators on average and does not list them. The bounds are set for one source. With two sources three of ten "
    "operators are pinned to random nodes: of 151 nodes with three operators or more, on a network with 1,000 such "
    "applications, 123 host two pinned ones or more. A node holds 20 operators, more than any gets. Old "
    "loads: all nodes tell their loads once in 100 applications. Random nodes: every operator is on a node drawn at "
    "random.",
)
