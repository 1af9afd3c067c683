"""Figure 9(b): tasks accepted by the number of dedicated links, with the public network and without."""

from __future__ import annotations

from collections.abc import Mapping

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.bimodal.experiments.platform_study import Found, PlatformStudy, Point, with_links
from leeward.policies.bimodal.experiments.readings import B, D, dedicated_only, our_mapping, ours, public_only

FIGURE = "Fig. 9(b)"
#: Where the paper's curves reach 50 %.
ALONE, WITH_PUBLIC = 120, 50
#: As many as a tree of all servers has.
TREE = 99
HALF, WITHIN = 50.0, 5.0
#: Ours by name, and the points that the second has to gain.
OURS, GAIN = ("B, our mapping", "B, ours"), 5.0

POINTS = (
    *with_links("B, dedicated only", dedicated_only(B), (80, TREE, ALONE, 140)),
    *with_links("B, public only", public_only(B), (TREE,)),
    *with_links("B", B, (30, WITH_PUBLIC, 70, TREE)),
    *with_links("D, dedicated only", dedicated_only(D), (TREE, ALONE)),
    *with_links("D", D, (30, WITH_PUBLIC)),
    *with_links("B, our mapping", our_mapping(B), (30, WITH_PUBLIC, 70, TREE)),
    *with_links("B, ours", ours(B), (30, WITH_PUBLIC, 70, TREE)),
)
QUICK = tuple(point for point in POINTS if point.links in (WITH_PUBLIC, ALONE) and not point.name.startswith("D"))


class Acceptance(PlatformStudy):
    """See the module."""

    points, quick = POINTS, QUICK

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Means over the networks, and ours over the paper's rule on the same networks and tasks."""
        found = Found(measured)
        rows = [row for point in POINTS if found.has(point) for row in _rows(point, found)]
        rows += [
            Row(
                figure=FIGURE, setting=found.setting(mine), metric="acceptance over the paper's rule", unit="points",
                low=GAIN if (mine.name, mine.links) == (OURS[1], WITH_PUBLIC) else None,
                ours=found.mean(mine, "acceptance") - found.mean(theirs, "acceptance"),
            )
            for mine, theirs in _pairs(found)
        ]  # fmt: skip
        rows += _use(found)
        return Finding(rows=tuple(rows), panels=(_panel(found),), notes=NOTES)


def _rows(point: Point, found: Found) -> list[Row]:
    half = (point.name, point.links) in (("B, dedicated only", ALONE), ("B", WITH_PUBLIC))
    return [
        Row(
            figure=FIGURE, setting=found.setting(point), metric="acceptance", unit="%", paper=HALF if half else None,
            independent=HALF if half else None, ours=found.mean(point, "acceptance"),
            low=HALF - WITHIN if half else None, high=HALF + WITHIN if half else None,
        ),
        Row(
            figure=FIGURE, setting=found.setting(point), metric="the same, standard deviation between networks",
            unit="points", ours=found.spread(point, "acceptance"),
        ),
        Row(
            figure=FIGURE, setting=found.setting(point), metric="messages of a task", unit="",
            ours=found.mean(point, "messages"),
        ),
    ]  # fmt: skip


def _use(found: Found) -> list[Row]:
    """CPU that both networks together make use of, over the sum of what each alone does (Figs. 9(c), 9(d))."""
    both, *alone = (Point(name=name, named=B, links=TREE) for name in ("B", "B, dedicated only", "B, public only"))
    if not all(found.has(point) for point in (both, *alone)):
        return []
    more = found.mean(both, "cpu") - sum(found.mean(point, "cpu") for point in alone)
    metric = "use of CPU over the sum of that with each network alone"
    return [Row(figure="Fig. 9(c,d)", setting=found.setting(both), metric=metric, unit="points", low=0.0, ours=more)]


def _pairs(found: Found) -> list[tuple[Point, Point]]:
    """(ours, the paper's) at the same links."""
    theirs = {point.links: point for point in POINTS if point.name == "B" and found.has(point)}
    mine = [point for point in POINTS if point.name in OURS and found.has(point)]
    return [(point, theirs[point.links]) for point in mine if point.links in theirs]


def _panel(found: Found) -> Panel:
    names = list(dict.fromkeys(point.name for point in POINTS if found.has(point)))
    links = sorted({point.links for point in POINTS if found.has(point)})
    at = {(point.name, point.links): found.mean(point, "acceptance") for point in POINTS if found.has(point)}
    curves = tuple(
        Curve(name=name, values=tuple(at.get((name, count), float("nan")) for count in links)) for name in names
    )
    return Panel(
        title="tasks accepted",
        unit="%",
        kind="lines",
        along="dedicated links",
        at=tuple(map(float, links)),
        curves=curves,
    )


NOTES = (
    "Readings B and D: docs/bimodal.md. The paper prints that 50 % need more than 120 links alone and 50 with the "
    "public network; the independent implementation found 119.6 and 49.7 (B), 109.6 and 40.1 (D).",
)
