"""Where everything goes in the picture of a deployment: node boxes in rows along the flow, replicas in them.

Top to bottom: an operator's depth in the graph is its row, a node stands in the mean row of its operators.
Within a row nodes are ordered by the mean place of those they talk to (barycentres, a few sweeps), which keeps
crossings few.  Only nodes in use are placed.  Everything is deterministic; ties go by the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

CHIP_W, CHIP_H, CHIP_GAP = 168, 34, 58
PAD, HEAD, ROW_GAP, BOX_GAP, MARGIN = 12, 26, 62, 34, 16
#: Chips side by side in a box before the next line begins.
ABREAST = 2
SWEEPS = 6
LABEL_H, LETTER_W = 16, 6.6
#: How far a curve may swing aside to pass the replicas in its way, px.
SWINGS = (0, -70, 70, -140, 140, -220, 220)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A rectangle, px."""

    x: float
    y: float
    w: float
    h: float

    def meets(self, other: Rect) -> bool:
        return (
            self.x < other.x + other.w
            and other.x < self.x + self.w
            and self.y < other.y + other.h
            and other.y < self.y + self.h
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The traffic of one stream between two nodes; `label` belongs to one edge of each stream."""

    stream: int
    #: (x, y) of the four points of a Bézier curve.
    points: tuple[tuple[float, float], ...]
    label: Rect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The picture."""

    width: float
    height: float
    #: node -> its box.
    boxes: Mapping[str, Rect]
    #: (operator, node) -> its chip.
    chips: Mapping[tuple[str, str], Rect]
    edges: tuple[Edge, ...]


def layout(document: Mapping[str, Any]) -> Layout:
    """Places the used nodes of an explanation document."""
    used = {node["id"]: node["placed"] for node in document["nodes"] if node["placed"]}
    depth = _depths(document)
    rows = _rows(used, depth)
    _order_rows(rows, document)
    boxes, chips = _boxes(rows, used, depth)
    edges = _edges(document, boxes, chips)
    right = max(box.x + box.w for box in boxes.values())
    bottom = max(box.y + box.h for box in boxes.values())
    return Layout(width=right + MARGIN, height=bottom + MARGIN + 14, boxes=boxes, chips=chips, edges=edges)


def _depths(document: Mapping[str, Any]) -> dict[str, int]:
    depth = {op["id"]: 0 for op in document["operators"]}
    for _ in depth:  # longest paths have fewer streams than there are operators
        for s in document["streams"]:
            depth[s["to"]] = max(depth[s["to"]], depth[s["from"]] + 1)
    return depth


def _rows(used: Mapping[str, Mapping[str, int]], depth: Mapping[str, int]) -> list[list[str]]:
    row = {node: round(fmean(depth[op] for op in placed)) for node, placed in used.items()}
    return [[node for node in used if row[node] == at] for at in sorted(set(row.values()))]


def _order_rows(rows: list[list[str]], document: Mapping[str, Any]) -> None:
    """Sorts each row in place by the mean position of the nodes that its nodes talk to."""
    talks: dict[str, list[str]] = {node: [] for row in rows for node in row}
    for stream in document["streams"]:
        for link in stream["links"]:
            if link["from"] != link["to"]:
                talks[link["from"]].append(link["to"])
                talks[link["to"]].append(link["from"])
    for _ in range(SWEEPS):
        at = {node: (place + 0.5) / len(row) for row in rows for place, node in enumerate(row)}
        for row in rows:
            row.sort(key=lambda node: fmean([at[other] for other in talks[node]] or [at[node]]))


def _boxes(
    rows: list[list[str]], used: Mapping[str, Mapping[str, int]], depth: Mapping[str, int]
) -> tuple[dict[str, Rect], dict[tuple[str, str], Rect]]:
    sizes = {node: _box_size(len(placed)) for node, placed in used.items()}
    widths = [sum(sizes[node][0] for node in row) + BOX_GAP * (len(row) - 1) for row in rows]
    boxes: dict[str, Rect] = {}
    chips: dict[tuple[str, str], Rect] = {}
    y = float(MARGIN)
    for row, width in zip(rows, widths, strict=True):
        x = MARGIN + (max(widths) - width) / 2
        for node in row:
            w, h = sizes[node]
            boxes[node] = Rect(x=x, y=y, w=w, h=h)
            for place, op in enumerate(sorted(used[node], key=depth.__getitem__)):
                line, column = divmod(place, ABREAST)
                chips[op, node] = Rect(
                    x=x + PAD + column * (CHIP_W + CHIP_GAP),
                    y=y + HEAD + PAD / 2 + line * (CHIP_H + CHIP_GAP / 2),
                    w=CHIP_W,
                    h=CHIP_H,
                )
            x += w + BOX_GAP
        y += max(sizes[node][1] for node in row) + ROW_GAP
    return boxes, chips


def _box_size(chips: int) -> tuple[float, float]:
    columns, lines = min(chips, ABREAST), -(-chips // ABREAST)
    return (
        2 * PAD + columns * CHIP_W + (columns - 1) * CHIP_GAP,
        HEAD + 1.5 * PAD + lines * CHIP_H + (lines - 1) * CHIP_GAP / 2,
    )


def _edges(
    document: Mapping[str, Any], boxes: Mapping[str, Rect], chips: Mapping[tuple[str, str], Rect]
) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    taken = [
        *chips.values(),
        *(Rect(x=box.x, y=box.y, w=box.w, h=HEAD) for box in boxes.values()),
    ]
    for number, stream in enumerate(document["streams"]):
        curves = []
        for link in stream["links"]:
            start, end = chips[stream["from"], link["from"]], chips[stream["to"], link["to"]]
            others = [chip for chip in chips.values() if chip not in (start, end)]
            curves.append(min((_curve(start, end, swing) for swing in SWINGS), key=lambda c: _hidden(c, others)))
        length = [abs(c[0][0] - c[3][0]) + abs(c[0][1] - c[3][1]) for c in curves]
        order = sorted(range(len(curves)), key=lambda at: -length[at])  # a long curve has room for the label
        label_of = None
        for at in order:
            label_of = _label(curves[at], rate_text(stream["rate"]), taken)
            if label_of is not None:
                taken.append(label_of)
                break
        edges += [
            Edge(stream=number, points=curve, label=label_of if place == at else None)
            for place, curve in enumerate(curves)
        ]
    return tuple(edges)


def rate_text(rate: float) -> str:
    """The label beside a stream."""
    return f"{rate:.4g}/s"


def _hidden(points: tuple[tuple[float, float], ...], chips: list[Rect]) -> int:
    """How much of a curve lies behind chips, in twelfths."""
    middle = [point_at(points, step / 12) for step in range(1, 12)]
    return sum(c.x - 4 < x < c.x + c.w + 4 and c.y - 4 < y < c.y + c.h + 4 for x, y in middle for c in chips)


def _curve(start: Rect, end: Rect, swing: float) -> tuple[tuple[float, float], ...]:
    """From chip to chip: down, up, beside, or below a neighbour in the same line; `swing` px aside."""
    middle_a, middle_b = start.x + start.w / 2, end.x + end.w / 2
    if end.y > start.y:
        a, b = (middle_a, start.y + start.h), (middle_b, end.y)
        bend = max(24.0, (b[1] - a[1]) * 0.5)
        return a, (a[0] + swing, a[1] + bend), (b[0] + swing, b[1] - bend), b
    if end.y < start.y:
        a, b = (middle_a, start.y), (middle_b, end.y + end.h)
        bend = max(24.0, (a[1] - b[1]) * 0.5)
        return a, (a[0] + swing, a[1] - bend), (b[0] + swing, b[1] + bend), b
    gap = end.x - start.x - start.w if end.x > start.x else start.x - end.x - end.w
    if gap <= CHIP_GAP:  # side by side
        a = (start.x + start.w, start.y + start.h / 2) if end.x > start.x else (start.x, start.y + start.h / 2)
        b = (end.x, end.y + end.h / 2) if end.x > start.x else (end.x + end.w, end.y + end.h / 2)
        return a, (a[0] * 2 / 3 + b[0] / 3, a[1]), (a[0] / 3 + b[0] * 2 / 3, b[1]), b
    a, b = (middle_a, start.y + start.h), (middle_b, end.y + end.h)
    return a, (a[0], a[1] + ROW_GAP), (b[0], b[1] + ROW_GAP), b


def _label(points: tuple[tuple[float, float], ...], text: str, taken: Iterable[Rect]) -> Rect | None:
    """A place on the curve where the text covers nothing, or None."""
    w = len(text) * LETTER_W + 4
    for t in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
        x, y = point_at(points, t)
        if points[0][1] == points[3][1] and points[1][1] == points[0][1]:
            y -= LABEL_H / 2 + 2  # above a straight line
        for shift in (0.0, w / 2 + 5, -w / 2 - 5):
            rect = Rect(x=x + shift - w / 2, y=y - LABEL_H / 2, w=w, h=LABEL_H)
            if rect.x >= 0 and not any(rect.meets(other) for other in taken):
                return rect
    return None


def point_at(points: tuple[tuple[float, float], ...], t: float) -> tuple[float, float]:
    """The point of a Bézier curve at `t` from 0 to 1."""
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return (
        sum(weight * x for weight, (x, _) in zip(weights, points, strict=True)),
        sum(weight * y for weight, (_, y) in zip(weights, points, strict=True)),
    )
