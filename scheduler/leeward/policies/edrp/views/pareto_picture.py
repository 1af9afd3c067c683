"""The trade-off curves as a picture: response time over cost, each point labelled with its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: A label is left out where one stands within this many points of the page already.
CLEAR = 16.0


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Writes a PNG or SVG by the ending of `path`; the document is that of `leeward pareto --output json`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    placed: list[tuple[float, float]] = []
    marks = (("optimum", "*", 190, "chosen optimum"), ("present", "X", 90, "present deployment"))
    for curve in document["curves"]:
        points = sorted(curve["points"], key=lambda point: point["C"])
        if not points:
            continue
        costs, times = [p["C"] for p in points], [1000 * p["R"] for p in points]
        several = len(document["curves"]) > 1
        name = f"T_D ≤ {curve['T_D_max']:g} s" if several else "trade-off"
        if not curve["complete"]:
            name += " (unfinished)"
        axes.plot(costs, times, drawstyle="steps-post", marker="o", markersize=4, linewidth=1.2, label=name)
    for key, marker, size, name in marks:
        if document[key] is not None:
            at = document[key]
            axes.scatter([at["C"]], [1000 * at["R"]], marker=marker, s=size, zorder=3, color="black", label=name)
    axes.set_xlabel("cost C ($/h)")
    axes.set_ylabel("response time R (ms)")
    axes.set_title((document["name"] or "EDRP problem").replace("$", r"\$"), fontsize=11)
    axes.grid(alpha=0.3)
    axes.margins(0.06)
    for curve in document["curves"]:
        for point in curve["points"]:
            _label(axes, point, placed)
    axes.legend(title="numbers: replicas")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _label(axes: Any, point: Mapping[str, Any], placed: list[tuple[float, float]]) -> None:
    x, y = axes.transData.transform((point["C"], 1000 * point["R"]))
    if any(abs(x - u) < CLEAR and abs(y - v) < CLEAR for u, v in placed):
        return
    placed.append((x, y))
    axes.annotate(
        str(point["replicas"]), (point["C"], 1000 * point["R"]), xytext=(4, 5), textcoords="offset points", fontsize=8
    )  # fmt: skip
