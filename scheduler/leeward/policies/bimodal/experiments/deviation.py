"""Figures 9(g) to 9(i): deviation from the wanted rate, and longer execution, by links and reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.bimodal.experiments.platform_study import Found, PlatformStudy, Point, with_links
from leeward.policies.bimodal.experiments.readings import (
    B,
    C,
    D,
    Named,
    buffered,
    learned,
    our_mapping,
    public_only,
    whole_uplink,
)

FIGURE = "Fig. 9(g-i)"
LINKS = (99, 125)
#: (reading, links) -> deviation %, longer execution % that the independent implementation found.
INDEPENDENT = {
    ("B", 99): (24.3, 35.0), ("D", 99): (13.6, 17.8), ("C", 99): (19.6, 29.0),
    ("B", 125): (4.6, None), ("D", 125): (0.6, None), ("C", 125): (0.7, None),
    ("B, public only", 99): (58.6, 146.0), ("D, public only", 99): (58.6, 146.0), ("C, public only", 99): (67.0, 211.0),
    ("D, whole uplink", 99): (6.7, None), ("D, buffers", 99): (0.0, None),
}  # fmt: skip
#: (reading, links) -> low and high bound of the deviation, %.
BOUNDS: dict[tuple[str, int], tuple[float | None, float | None]] = {
    ("D", 99): (10.0, 20.0), ("D", 125): (None, 2.0), ("B, public only", 99): (50.0, None),
    ("D, public only", 99): (50.0, None), ("D, whole uplink", 99): (None, 8.0),
}  # fmt: skip

#: Ours, and not the paper's: public paths of unlike rates, and what is gained where their quantiles are learned.
UNEVEN = 1.0
DIFFER, LEARNED = ", paths that differ", ", learned"


def _uneven(name: str, named: Named) -> list[Point]:
    """Without and with quantiles that are learned."""
    both = (name + DIFFER, named), (name + DIFFER + LEARNED, learned(named))
    return [replace(point, uneven=UNEVEN) for words, one in both for point in with_links(words, one, LINKS[:1])]


POINTS = (
    *with_links("B", B, LINKS),
    *with_links("C", C, LINKS),
    *with_links("D", D, LINKS),
    *with_links("B, public only", public_only(B), LINKS[:1]),
    *with_links("C, public only", public_only(C), LINKS[:1]),
    *with_links("D, public only", public_only(D), LINKS[:1]),
    *with_links("D, whole uplink", whole_uplink(D), LINKS[:1]),
    *with_links("D, buffers", buffered(D), LINKS[:1]),
    *_uneven("D", D),
    *_uneven("D, our mapping", our_mapping(D)),
)
QUICK = tuple(
    point for point in POINTS if point.name in ("D", "B, public only", "D, whole uplink") and point.links == 99
)


class Deviation(PlatformStudy):
    """See the module."""

    points, quick = POINTS, QUICK

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Means over the networks."""
        found = Found(measured)
        points = [point for point in POINTS if found.has(point)]
        curves = tuple(Curve(name=point.key, values=tuple(found.values(point, "deviation"))) for point in points)
        panel = Panel(title="deviation from the wanted rate, each network", unit="%", kind="boxes", curves=curves)
        return Finding(rows=tuple(row for point in points for row in _rows(point, found)), panels=(panel,), notes=NOTES)


def _rows(point: Point, found: Found) -> list[Row]:
    key = (point.name, point.links)
    deviation, longer = INDEPENDENT.get(key, (None, None))
    low, high = BOUNDS.get(key, (None, None))
    if point.name.endswith(LEARNED):
        without = next(other for other in POINTS if other.name + LEARNED == point.name)
        high = found.mean(without, "deviation") if found.has(without) else None
    public = point.name.endswith("public only")
    paper = 50.0 if public else None if point.uneven or point.links == LINKS[0] else 0.0
    return [
        Row(
            figure=FIGURE, setting=found.setting(point), metric="deviation from the wanted rate", unit="%", paper=paper,
            independent=deviation, ours=found.mean(point, "deviation"), low=low, high=high,
        ),
        Row(
            figure=FIGURE, setting=found.setting(point), metric="longer execution", unit="%", independent=longer,
            ours=found.mean(point, "elongation"),
        ),
        Row(
            figure=FIGURE, setting=found.setting(point), metric="public hops of a task when it begins", unit="",
            ours=found.mean(point, "public hops"),
        ),
    ]  # fmt: skip


NOTES = (
    "The paper: over 50 % with the public network alone, 10 to 20 % with 99 links too, about 0 from 125 links on; "
    "execution 10 to 20 % longer with both, 200 to 300 % with the public network alone. Readings: docs/bimodal.md.",
    "Paths that differ are not the paper's: the log2 of a path's rate over that of the paper's paths is normal with "
    "standard deviation 1. A server learns of a path only while it sends a stream over it.",
)
