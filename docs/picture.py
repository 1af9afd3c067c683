"""Makes docs/demo.svg: one screen of a real run of `leeward demo`.

    python docs/picture.py [--hours 3] [--out docs/demo.svg] [--base-port 6600]

Runs the demo as it is, keeps what its live view would show, and draws the screen with a migration in progress that has
the most history (or else the last one). Exit code 1 if the run was not exact: then there is no new picture.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from leeward.cli.demo import Demo
from leeward.dashboard.live import Screen, render
from leeward.dashboard.watch import Watch

WIDTH = 102  # columns
FONTS = "DejaVu Sans Mono, Menlo, Consolas, monospace"


class Filmed(Demo):
    """The demo; every screen is kept."""

    screens: list[Screen]

    def _watch(self) -> Watch:
        watch, self.screens = super()._watch(), []
        show = watch.screen

        def keep(now: float, started: float) -> Screen:
            self.screens.append(show(now, started))
            return self.screens[-1]

        watch.screen = keep
        return watch


def filmed(folder: Path, base_port: int, stack: ExitStack) -> Filmed:
    """The demo as it is by default."""
    return Filmed(
        out=folder / "demo", folder=folder / "cluster", speed=60.0, service_times="emulated",
        options=["mode=live"], drain=True, base_port=base_port, stack=stack, keep=False,
    )  # fmt: skip


def draw(screen: Screen) -> str:
    """The screen as an SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(render(screen))
    svg = console.export_svg(title="leeward demo")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # rich's font comes from a web server
    return svg.replace("Fira Code, monospace", FONTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=Path("docs/demo.svg"))
    parser.add_argument("--folder", type=Path, default=Path("out/picture"))
    parser.add_argument("--base-port", type=int, default=6600)
    options = parser.parse_args()
    with ExitStack() as stack:
        run = filmed(options.folder, options.base_port, stack)
        run.prepare(None, options.hours, 1)
        run.start()
        run.play()
        if not run.judge():
            sys.exit(1)
    moving = [screen for screen in run.screens if screen.migration]
    best = max(moving, key=lambda screen: (len(screen.history), screen.elapsed_s), default=run.screens[-1])
    options.out.write_text(draw(best))
    print(f"{options.out}: the screen after {best.elapsed_s:.0f} s, of {len(run.screens)}")


if __name__ == "__main__":
    main()
