"""The picture of an experiment: its legend stays within it, and equal panels give equal bytes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from leeward.core.experiment import Curve, Panel
from leeward.dashboard.experiment_picture import draw

#: Of a letter of seven pixels' height, on average.
LETTER = 3.9


def panel(names: tuple[str, ...]) -> Panel:
    curves = tuple(Curve(name=name, values=(1.0, 2.0)) for name in names)
    return Panel(title="delay", unit="ms", kind="dots", along="setting", at=(0.0, 1.0), curves=curves)


@pytest.mark.parametrize("length", [4, 14, 28, 44])
def test_a_legend_stays_within_a_picture_of_one_panel(tmp_path: Path, length: int):
    names = tuple(f"{number} ".ljust(length, "a") for number in range(7))
    file = tmp_path / "one.svg"
    draw(file, [panel(names)], title="one")
    svg = file.read_text()
    box = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    assert box is not None
    found = re.findall(r'<text[^>]* x="([-\d.]+)"[^>]*>(\d a*)</text>', svg)
    assert len(found) == len(names)
    assert all(float(x) >= 0 and float(x) + LETTER * len(name) <= float(box[1]) for x, name in found)


@pytest.mark.parametrize(("values", "ticks"), [((15.0, math.nan, 15.0), ["15"]), ((8.0, 9.0), ["8", "9"])])
def test_counts_have_whole_numbers_at_their_axis(tmp_path: Path, values: tuple[float, ...], ticks: list[str]):
    file = tmp_path / "counts.svg"
    curves = (Curve(name="edrp", values=values),)
    draw(file, [Panel(title="replicas", unit="replicas", kind="lines", along="minute", curves=curves)], title="counts")
    axis = file.read_text().partition('id="matplotlib.axis_2"')[2]
    assert re.findall(r">([\d.]+)</text>", axis) == ticks


def test_equal_panels_give_equal_bytes(tmp_path: Path):
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        draw(file, [panel(("ours", "theirs"))], title="same")
    assert files[0].read_bytes() == files[1].read_bytes()
