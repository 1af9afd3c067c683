"""The common part of the experiments' pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "baseline": "#4c72b0", "balanced": "#55a868", "response time": "#dd8452", "cost": "#8172b3",
    "exact": "#4c72b0", "auto": "#4c72b0", "ilp": "#c44e52", "compact": "#55a868", "restricted": "#dd8452",
}  # fmt: skip
GREY = "#888888"


def figure_of(rows: int, columns: int, *, size: tuple[float, float], sharey: bool = False) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a display."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", sharey=sharey)
    return figure, axes


def plain(axis: Axes) -> None:
    """No frame, a light grid behind."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#eeeeee")
    axis.set_axisbelow(True)


def save(figure: Any, path: Path) -> None:
    """Writes it, and lets go of its memory."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
