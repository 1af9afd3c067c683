"""Figure 8: the platform with re-allocation of links and without, at several rates of arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.bimodal.experiments.platform_study import Found, PlatformStudy, Point
from leeward.policies.bimodal.experiments.readings import D, Named

FIGURE = "Fig. 8"
PER_HOUR = (30, 60, 90)
LINKS = 99


def _points(name: str, named: Named) -> list[Point]:
    off = replace(named, reading=replace(named.reading, reallocation=False))
    return [
        Point(name=f"{name}, {words}, {rate} tasks/h", named=one, links=LINKS, per_hour=rate)
        for rate in PER_HOUR
        for words, one in (("without", off), ("with", named))
    ]


POINTS = tuple(_points("D", D))
QUICK = tuple(point for point in POINTS if point.per_hour == 60)
#: Figure -> unit, and whether more is better; None: it is to stay as it is.
FIGURES = {
    "throughput": ("Mbit/s", True), "acceptance": ("%", None), "links": ("%", True), "deviation": ("%", False),
    "cpu": ("%", None),
}  # fmt: skip
WORDS = {
    "throughput": "work of accepted tasks", "acceptance": "tasks accepted", "links": "use of dedicated links",
    "deviation": "deviation from the wanted rate", "cpu": "use of CPU",
}  # fmt: skip


class Reallocation(PlatformStudy):
    """See the module."""

    points, quick = POINTS, QUICK

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """With beside without, on the same networks and tasks."""
        found = Found(measured)
        pairs = [(a, b) for a, b in zip(POINTS[::2], POINTS[1::2], strict=True) if found.has(a) and found.has(b)]
        rows = [row for off, on in pairs for row in _rows(off, on, found)]
        curves = [
            Curve(name=words, values=tuple(found.mean(pair[index], "deviation") for pair in pairs))
            for index, words in enumerate(("without", "with"))
        ]
        at = tuple(pair[0].per_hour for pair in pairs)
        panel = Panel(
            title="deviation from the wanted rate", unit="%", kind="lines", along="tasks an hour", at=at,
            curves=tuple(curves),
        )  # fmt: skip
        return Finding(rows=tuple(rows), panels=(panel,), notes=NOTES)


def _rows(off: Point, on: Point, found: Found) -> list[Row]:
    rows = []
    for name, (unit, better) in FIGURES.items():
        before, after = found.mean(off, name), found.mean(on, name)
        rows += [
            Row(figure=FIGURE, setting=found.setting(on), metric=f"{WORDS[name]}, without", unit=unit, ours=before),
            Row(
                figure=FIGURE, setting=found.setting(on), metric=f"{WORDS[name]}, with", unit=unit, ours=after,
                low=before if better else None, high=before if better is False else None,
            ),
        ]  # fmt: skip
    return rows


NOTES = (
    "The paper's curves have no numbers: with re-allocation more throughput, more use of dedicated links, less "
    "deviation, and CPU use unchanged.",
)
