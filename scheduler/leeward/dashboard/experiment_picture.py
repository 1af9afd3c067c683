"""The picture of an experiment: its panels in rows of three, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leeward.core.experiment import Panel

COLUMNS = 3
#: Inches of one panel.
WIDTH, HEIGHT = 4.2, 3.3
#: Characters of a legend that a panel has room for side by side; a mark and the gap behind a name take six.
LEGEND = 78
#: Inches of a line of a legend.
LINE = 0.16
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")


def draw(path: Path, panels: Sequence[Panel], *, title: str) -> None:
    """Writes the picture; equal panels give equal bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = title
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: smaller, and found by a search
    import matplotlib.pyplot as plt

    columns = min(COLUMNS, len(panels)) or 1
    rows = -(-len(panels) // columns) or 1
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH * columns, (HEIGHT + _more(panels)) * rows), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        _panel(axis, panel)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": f"leeward experiment {title}"})
    plt.close(figure)


def _columns(panel: Panel) -> int:
    """Of its legend."""
    longest = max((len(curve.name) for curve in panel.curves), default=0)
    return max(1, min(3, LEGEND // (longest + 6)))


def _more(panels: Sequence[Panel]) -> float:
    """Inches that the longest legend needs beyond three lines, so that the axes keep their height."""
    lines = [-(-len(panel.curves) // _columns(panel)) for panel in panels if panel.kind != "boxes"]
    return LINE * max(0, max(lines, default=0) - 3)


def _panel(axis: Any, panel: Panel) -> None:
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(panel.curves))]
    if panel.kind != "boxes":
        style = {"linestyle": "none", "marker": "o", "markersize": 4} if panel.kind == "dots" else {"linewidth": 1}
        for curve, colour in zip(panel.curves, colours, strict=True):
            points = zip(panel.at or range(len(curve.values)), curve.values, strict=True)
            known = [(at, value) for at, value in points if not math.isnan(value)]  # a line goes on over a gap
            axis.plot([at for at, _ in known], [value for _, value in known], label=curve.name, color=colour, **style)
        axis.set_xlabel(panel.along)
        columns = _columns(panel)
        axis.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)
    else:
        boxes = axis.boxplot(
            [curve.values or (0.0,) for curve in panel.curves], whis=(0, 100), patch_artist=True, widths=0.6
        )
        for box, colour in zip(boxes["boxes"], colours, strict=True):
            box.set(facecolor=colour, alpha=0.6)
        axis.set_xticks(
            range(1, len(panel.curves) + 1), [curve.name for curve in panel.curves], rotation=20, fontsize=7
        )
    if panel.logarithmic:
        axis.set_yscale("log")
    elif all(math.isnan(value) or float(value).is_integer() for curve in panel.curves for value in curve.values):
        axis.locator_params(axis="y", integer=True, min_n_ticks=1)  # nothing has 14.5 replicas
    axis.set_title(panel.title, fontsize=9)
    axis.set_ylabel(panel.unit)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#eeeeee")
    axis.set_axisbelow(True)
