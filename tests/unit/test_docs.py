"""The pages keep their shape: the map is short, its pictures are what the script draws, and what it names exists."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest
from PIL import ImageFont

from tests.helpers.doc_blocks import ROOT

DOCS = ROOT / "docs"
MAP = (DOCS / "design.md").read_text()
RECORDS = sorted((DOCS / "adr").glob("[0-9]*.md"))
MOST_WORDS = 2000
FONTS = Path(matplotlib.get_data_path()) / "fonts/ttf"


@pytest.fixture(scope="module")
def drawings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("drawings", ROOT / "scripts/drawings.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["drawings"] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_map_is_short():
    words = len(MAP.split())
    assert words <= MOST_WORDS, f"docs/design.md has {words} words: move reasons to docs/adr"


def test_the_files_that_the_map_names_exist():
    for name in re.findall(r"`((?:tests|sim|core|docs|scripts)/[\w/.]+)`", MAP):
        where = ROOT / name if name.startswith(("tests", "docs", "scripts")) else ROOT / "scheduler/leeward" / name
        assert where.exists(), f"docs/design.md names {name}"


def anchors(page: Path) -> set[str]:
    """Of the headings of a page, as they are on GitHub."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name[:12])
def test_links_into_a_page_name_one_of_its_headings(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        other = page.parent / target if target else page
        assert anchor in anchors(other), f"{page.name} links to {target}#{anchor}"


def test_every_invariant_has_a_test():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", MAP.partition("## Invariants")[2], re.MULTILINE)[2:]
    assert len(rows) > 8
    for invariant, held in rows:
        assert re.search(r"`tests/\w+/test_\w+\.py`", held), invariant


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.name[:4])
def test_a_decision_has_its_four_parts(page):
    text = page.read_text()
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads == ["Context", "Decision", "Alternatives tried", "Consequence"], page.name
    assert text.startswith(f"# {int(page.name[:4])}. "), f"{page.name}: the heading has another number"
    assert re.search(r"^Date: 20\d\d-\d\d-\d\d.*Status: \w+", text, re.MULTILINE), page.name
    assert len(text.split("\n")) <= 70, f"{page.name} is longer than a page"


def test_decisions_are_numbered_without_a_gap():
    assert [int(page.name[:4]) for page in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_the_index_lists_every_decision_by_its_title():
    titles = [page.read_text().partition("\n")[0].removeprefix("# ") for page in RECORDS]
    expected = [f"- [{title}]({page.name})" for title, page in zip(titles, RECORDS, strict=True)]
    listed = [line for line in (DOCS / "adr/README.md").read_text().split("\n") if line.startswith("- [")]
    assert listed == expected


@pytest.mark.parametrize("name", ["house.svg", "tuple.svg", "handover.svg"])
def test_a_picture_is_what_the_script_draws(drawings, name):
    drawn = drawings.PICTURES[name]().svg()
    assert (DOCS / name).read_text() == drawn, "run: make pages"
    assert f"({name})" in MAP


def test_the_house_has_every_room_and_no_arrow_runs_up(drawings):
    graph = drawings.rooms()
    svg = (DOCS / "house.svg").read_text()
    for room, others in graph.items():
        assert f">{room}/<" in svg
        assert all(drawings.floor_of(graph, other) < drawings.floor_of(graph, room) for other in others)


def extent(text) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a line of text."""
    font = ImageFont.truetype(FONTS / ("DejaVuSans-Bold.ttf" if text.bold else "DejaVuSans.ttf"), text.size)
    width = font.getlength(text.text)
    left = text.x - {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    return left, text.y - text.size * 0.78, left + width, text.y + text.size * 0.22


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("name", ["house.svg", "tuple.svg", "handover.svg"])
def test_no_text_is_cut_or_covered(drawings, name):
    picture = drawings.PICTURES[name]()
    texts = [(shape.text, extent(shape)) for shape in picture.shapes if isinstance(shape, drawings.Text)]
    boxes = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in picture.shapes if isinstance(b, drawings.Box)]
    for text, (left, top, right, bottom) in texts:
        assert left >= 4 and top >= 4 and right <= picture.width - 4 and bottom <= picture.height - 4, text
        for box in boxes:
            if overlap(box, (left, top, right, bottom)):
                assert left >= box[0] + 3 and right <= box[2] - 3, f"{text!r} crosses the edge of a box"
    for (one, a), (other, b) in combinations(texts, 2):
        assert not overlap(a, b), f"{one!r} covers {other!r}"
    for one, other in combinations(boxes, 2):
        inside = one[0] <= other[0] and one[1] <= other[1] and one[2] >= other[2] and one[3] >= other[3]
        assert inside or not overlap(one, other), f"boxes {one} and {other}"
