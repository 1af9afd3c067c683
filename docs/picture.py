"""Makes docs/demo.png: one screen of a real run of `leeward demo`.

    python docs/picture.py [--hours 3] [--out docs/demo.png] [--base-port 6600]

Runs the demo as it is, keeps what its live view would show, and draws the screen with a migration in progress that has
the most history (or else the last one). Exit code 1 if the run was not exact: then there is no new picture.
"""

from __future__ import annotations

import argparse
import html
import io
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console

from leeward.cli._replayed import Replayed, generated_rows
from leeward.cli.demo import Drain, generating, judge, quickened
from leeward.dashboard.live import Screen, render
from leeward.dashboard.watch import Watch

WIDTH = 102  # columns
#: The cells of rich's SVG, and the first baseline in it.
COLUMN, LINE, BASELINE = 12.2, 24.4, 20.0
#: The font is matplotlib's own copy of DejaVu Sans Mono, in pixels.
SIZE = 24
GROUND = "#292929"


class Filmed(Replayed):
    """The demo's run; every screen is kept."""

    screens: list[Screen]

    def _watch(self) -> Watch:
        watch, self.screens = super()._watch(), []
        show = watch.screen

        def keep(now: float, started: float) -> Screen:
            self.screens.append(show(now, started))
            return self.screens[-1]

        watch.screen = keep
        return watch


def filmed(folder: Path, hours: float, base_port: int, stack: ExitStack) -> Filmed:
    """The demo as it is by default."""
    return Filmed(
        generated_rows(*generating(hours, seed=1), folder / "demo"), out=folder / "demo", folder=folder / "cluster",
        speed=60.0, service_times="emulated", options=["mode=live", *quickened(60.0)], base_port=base_port, stack=stack,
    )  # fmt: skip


def draw(screen: Screen) -> Image.Image:
    """The screen as pixels: right wherever it is shown, whatever fonts are there."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(render(screen))
    return pixels(console.export_svg(title="leeward demo"))


def pixels(svg: str) -> Image.Image:
    """Rich's picture of a terminal, its characters in a grid of cells in which the frames' lines meet."""
    fonts = Path(matplotlib.get_data_path()) / "fonts/ttf"
    plain, bold = (ImageFont.truetype(fonts / f"DejaVuSansMono{kind}.ttf", SIZE) for kind in ("", "-Bold"))
    wide, high = plain.getlength("M"), sum(plain.getmetrics())
    styles = dict(re.findall(r"(r\d+) \{ fill: ([^}]*?) ?\}", svg))
    runs = [
        (float(x) / COLUMN, round((float(y) - BASELINE) / LINE), styles[kind], html.unescape(text))
        for kind, x, y, text in re.findall(r'<text class="\S+-(r\d+)" x="(\S+)" y="(\S+)"[^>]*>([^<]*)<', svg)
    ]
    rows = 1 + max(row for _, row, _, _ in runs)
    image = Image.new("RGB", (round((WIDTH + 2) * wide), (rows + 1) * high), GROUND)
    pen = ImageDraw.Draw(image)
    for column, row, style, text in runs:
        colour, font = style.split(";")[0], bold if "bold" in style else plain
        for at, letter in enumerate(text):  # each in its cell: a font's own advance is no multiple of pixels
            pen.text((round((1 + column + at) * wide), high // 2 + row * high), letter, colour, font)
    return image.quantize(32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=Path("docs/demo.png"))
    parser.add_argument("--folder", type=Path, default=Path("out/picture"))
    parser.add_argument("--base-port", type=int, default=6600)
    options = parser.parse_args()
    with ExitStack() as stack:
        run = filmed(options.folder, options.hours, options.base_port, stack)
        run.start()
        run.play(Drain(run))
        if not judge(run):
            sys.exit(1)
    moving = [screen for screen in run.screens if screen.migration]
    best = max(moving, key=lambda screen: (len(screen.history), screen.elapsed_s), default=run.screens[-1])
    draw(best).save(options.out, optimize=True)
    print(f"{options.out}: the screen after {best.elapsed_s:.0f} s, of {len(run.screens)}")


if __name__ == "__main__":
    main()
