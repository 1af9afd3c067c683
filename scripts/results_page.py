"""docs/results/README.md from the pages beside it: `python scripts/results_page.py --write`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs/results"
PAGE = FOLDER / "README.md"
INTRODUCTION = """# Results

Printed from the pages here by `python scripts/results_page.py --write`; do not edit it by hand.

The command at the top of each page makes it anew. Its tables have the figures of the paper, ours, and some a bound that
ours has to keep; a picture shows the curves. A figure without a bound is there to be compared. The page of each system
says why a bound is not kept.
"""
HEAD = "| results | figures | bounds kept |\n| --- | --- | --- |"
#: The first word of a page's name -> the system, and its page.
SYSTEMS = {
    "edrp": ("EDRP and S-EDRP", "edrp.md"),
    "edge": ("Edge and cloud", "edge_cloud.md"),
    "bimodal": ("Bi-modal links", "bimodal.md"),
    "dssp": ("DSSP", "dssp.md"),
    "agiledart": ("AgileDART", "agiledart.md"),
    "service": ("The service and its guards", "guards.md"),
    "simulated_week": ("A week in the simulator", "measurements.md"),
}


def row(page: Path) -> str:
    """Name, figures of the paper, bounds that are kept."""
    text = page.read_text()
    figures = dict.fromkeys(re.findall(r"^## ([^:\n]+):", text, re.MULTILINE))
    kept, broken = text.count("| yes |\n"), text.count("| **no** |\n")
    bounds = f"{kept} of {kept + broken}" if kept + broken else "none set"
    return f"| [{page.stem}]({page.name}) | {', '.join(figures) or 'no paper'} | {bounds} |"


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for prefix, (system, about) in SYSTEMS.items():
        rows = map(row, sorted(FOLDER.glob(f"{prefix}*.md")))
        parts.append(f"## {system}\n[Its page](../{about}).\n\n{HEAD}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        print(page(), end="")
