"""The picture of a deployment as inline SVG: the graph laid over the nodes, critical path highlighted.

Ids come from outside, so every text goes through `escape`.  Elements with a detail can be tabbed to, and
hold in `data-detail` the text that the page shows below the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from leeward.policies.edrp.views.explain_layout import CHIP_H, LETTER_W, PAD, Layout, Rect, layout, rate_text
from leeward.policies.edrp.views.explain_words import ms, placed

#: Letters of an id that fit into a chip and into the head of a box.
CHIP_LETTERS = 19


def picture(document: Mapping[str, Any]) -> str:
    """The whole <svg> element."""
    plan = layout(document)
    operators = {op["id"]: op for op in document["operators"]}
    critical = {
        (hop["operator"],) if "operator" in hop else (hop["from"], hop["to"], *hop["nodes"]) for hop in document["path"]
    }
    parts = [
        f'<svg class="dag" viewBox="0 0 {plan.width:.0f} {plan.height:.0f}" width="{plan.width:.0f}" '
        f'height="{plan.height:.0f}" role="group" aria-label="Operators, streams and nodes">',
        _arrow_heads(),
        *(_node(node, plan.boxes[node["id"]]) for node in document["nodes"] if node["id"] in plan.boxes),
        *_edges(document, plan, critical),
        *(_head(node, plan.boxes[node["id"]]) for node in document["nodes"] if node["id"] in plan.boxes),
        *(_chip(operators[op], node, rect, (op,) in critical) for (op, node), rect in plan.chips.items()),
        *_labels(document, plan),
        "</svg>",
    ]
    return "\n".join(parts)


def _arrow_heads() -> str:
    head = (
        '<marker id="{0}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="head {0}" d="M0,0 L8,4 L0,8 z"/></marker>'
    )
    return f"<defs>{head.format('plain')}{head.format('hot')}</defs>"


def shorten(text: str, letters: int) -> str:
    """Cut in the middle where it does not fit: ids tend to differ at the end."""
    if len(text) <= letters:
        return text
    tail = letters // 3
    return f"{text[: letters - tail - 1]}…{text[-tail:]}"


def _spot(kind: str, detail: str, inside: str, operators: str = "") -> str:
    """Something to point at or tab to."""
    return (
        f'<g class="spot {kind}" tabindex="0" role="img" aria-label="{escape(detail)}" '
        f'data-detail="{escape(detail)}"{operators}><title>{escape(detail)}</title>{inside}</g>'
    )


def _node(node: Mapping[str, Any], box: Rect) -> str:
    detail = f"node {node['id']}: {_use(node)} units in use, hosts {placed(node['placed'])}"
    inside = f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="8"/>'
    return _spot("node", detail, inside)


def _use(node: Mapping[str, Any]) -> str:
    return f"{node['used']:g} of {node['capacity']:g}"


def _head(node: Mapping[str, Any], box: Rect) -> str:
    """Name and use of a node, above the curves that pass."""
    capacity, used = node["capacity"], node["used"]
    share = min(1.0, used / capacity) if capacity > 0 else 1.0
    text = f"{used:g}/{capacity:g}"
    bar_w = 28
    right = box.x + box.w - PAD
    letters = int((box.w - 3 * PAD - bar_w - len(text) * LETTER_W - 12) / (LETTER_W + 0.6))
    return (
        f'<g class="over" aria-hidden="true"><text class="name" x="{box.x + PAD:.1f}" y="{box.y + 19:.1f}">'
        f"{escape(shorten(node['id'], letters))}</text>"
        f'<text class="used" x="{right - bar_w - 6:.1f}" y="{box.y + 19:.1f}" text-anchor="end">{text}</text>'
        f'<rect class="track" x="{right - bar_w:.1f}" y="{box.y + 11:.1f}" width="{bar_w}" height="8" rx="2"/>'
        f'<rect class="fill" x="{right - bar_w:.1f}" y="{box.y + 11:.1f}" width="{bar_w * share:.1f}" height="8" '
        'rx="2"/></g>'
    )


def _chip(op: Mapping[str, Any], node: str, rect: Rect, hot: bool) -> str:
    count = op["placed"][node]
    times = "" if count == 1 else f" ×{count}"
    name = shorten(op["id"], CHIP_LETTERS) + times
    spare = "on the critical path" if op["slack"] == 0 else f"{ms(op['slack'])} to spare"
    detail = (
        f"{op['id']}: {op['replicas']} of at most {op['k']} replicas, {count} on {node}; "
        f"load {op['load']:g} tuples/s, latency {ms(op['latency'])}, {op['cost']:.2f} $/h; {spare}"
    )
    x, y = rect.x + rect.w / 2, rect.y + rect.h / 2
    inside = (
        f'<rect x="{rect.x:.1f}" y="{rect.y:.1f}" width="{rect.w:.1f}" height="{CHIP_H}" rx="{CHIP_H / 2:.0f}"/>'
        f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle">{escape(name)}</text>'
        f'<text class="small" x="{x:.1f}" y="{y + 11:.1f}" text-anchor="middle">{ms(op["latency"])}</text>'
    )
    return _spot("chip hot" if hot else "chip", detail, inside)


def _edges(document: Mapping[str, Any], plan: Layout, critical: set[tuple[str, ...]]) -> list[str]:
    """One curve for each pair of nodes of each stream; those of the critical path last, on top."""
    drawn: list[tuple[bool, str]] = []
    pairs = ((stream, link) for stream in document["streams"] for link in stream["links"])
    for edge, (stream, link) in zip(plan.edges, pairs, strict=True):
        hot = (stream["from"], stream["to"], link["from"], link["to"]) in critical
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = edge.points
        path = f"M{ax:.1f},{ay:.1f} C{bx:.1f},{by:.1f} {cx:.1f},{cy:.1f} {dx:.1f},{dy:.1f}"
        detail = (
            f"{stream['from']} → {stream['to']}, {link['from']} → {link['to']}: {link['rate']:.4g} of "
            f"{stream['rate']:g} tuples/s; the stream waits {ms(stream['delay'])} and costs {stream['cost']:.2f} $/h"
        )
        arrow = "hot" if hot else "plain"
        inside = f'<path class="wide" d="{path}"/><path class="line" d="{path}" marker-end="url(#{arrow})"/>'
        drawn.append((hot, _spot("edge hot" if hot else "edge", detail, inside)))
    return [text for _, text in sorted(drawn, key=lambda item: item[0])]


def _labels(document: Mapping[str, Any], plan: Layout) -> list[str]:
    return [
        f'<text class="rate" x="{edge.label.x + edge.label.w / 2:.1f}" y="{edge.label.y + 12:.1f}" '
        f'text-anchor="middle">{rate_text(document["streams"][edge.stream]["rate"])}</text>'
        for edge in plan.edges
        if edge.label is not None
    ]
