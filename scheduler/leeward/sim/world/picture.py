"""A simulation as a picture: rate, replicas and response time over time. Equal figures give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leeward.sim.world.cluster import Sample
from leeward.sim.world.ledger import Figures

#: Points of a curve, at most.
POINTS = 1500


def draw(path: Path, figures: Figures, *, title: str) -> None:
    """Writes an SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    with plt.rc_context({"svg.hashsalt": "leeward", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(3, 1, figsize=(10, 6), sharex=True, layout="constrained")
        points = thinned(figures.samples)
        hours = [point.at_s / 3600.0 for point in points]
        figure.suptitle(title)
        _curve(axes[0], hours, [point.offered for point in points], "#4c72b0", "offered, tuples/s")
        axes[1].step(hours, [point.replicas for point in points], where="mid", color="#55a868", linewidth=0.9)
        _plain(axes[1], "replicas")
        _curve(axes[2], hours, [1000 * point.response_s for point in points], "#c44e52", "response time, ms")
        axes[2].set_yscale("log")
        axes[2].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes[2].yaxis.set_major_formatter("{x:g}")
        axes[2].yaxis.set_minor_formatter(NullFormatter())
        axes[2].set_xlabel("hours")
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "leeward simulate"})
        plt.close(figure)


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """At most POINTS samples: of each part of the time its longest response, with what else was then."""
    if len(samples) <= POINTS:
        return list(samples)
    end = samples[-1].at_s + 1e-9
    worst: dict[int, Sample] = {}
    for sample in samples:
        part = int(sample.at_s / end * POINTS)
        if part not in worst or sample.response_s > worst[part].response_s:
            worst[part] = sample
    return [worst[part] for part in sorted(worst)]


def _curve(axis: Any, hours: Sequence[float], values: Sequence[float], colour: str, label: str) -> None:
    axis.plot(hours, values, color=colour, linewidth=0.9)
    _plain(axis, label)


def _plain(axis: Any, label: str) -> None:
    """No frame, a light grid behind."""
    axis.set_ylabel(label)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#eeeeee")
    axis.set_axisbelow(True)
