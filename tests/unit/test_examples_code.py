"""The code of the examples in tests/cluster/examples: what `leeward check` says of it, and how much was changed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from tests.cluster.examples.results import CONVERTED, EXAMPLES, STOCK
from tests.helpers.doc_blocks import ROOT

PAGE = ROOT / "docs" / "streamparse.md"
OUTSIDE = " outside of self.state, which its tuples change and which is lost when its key groups move."
#: (level, problem) of each example in which base classes are Leeward's and nothing else has changed.
FOUND = {
    "ships": {
        ("error", f"lookout keeps sent{OUTSIDE}"),
        ("error", f"lookout keeps ships{OUTSIDE}"),
        ("error", f"tally keeps all{OUTSIDE}"),
        ("error", f"tally keeps passages{OUTSIDE}"),
    },
    "berths": {
        ("error", "Harbour keeps state and takes Arrivals by balanced(), so any replica would get any key."),
    },
    "clicks": {("error", f"source keeps sent{OUTSIDE}"), ("error", f"pages keeps clicks{OUTSIDE}")},
    "verses": {
        ("error", f"reader keeps lines{OUTSIDE}"),
        ("error", f"reader keeps sent{OUTSIDE}"),
        ("error", f"count keeps counts{OUTSIDE}"),
        ("error", f"top keeps counts{OUTSIDE}"),
        ("error", f"top keeps reported{OUTSIDE}"),
    },
    "parcels": {
        ("error", f"descriptions keeps sent{OUTSIDE}"),
        ("error", "rows keeps state by its class, but no method of it uses self.state."),
    },
}


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stock and converted modules have the same names: none may stay."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if any(name.endswith(end) for end in ("_bolts", "ends", *EXAMPLES)):
            del sys.modules[name]


def problems(project: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, set[tuple[str, str]]]:
    """Exit code of `leeward check`, and (level, problem) of each."""
    monkeypatch.chdir(project)
    result = CliRunner().invoke(_build(), ["check", name, "--output", "json"])
    return result.exit_code, {(row["level"], row["problem"]) for row in json.loads(result.stdout)["problems"]}


def only_bases_changed(folder: Path) -> Path:
    """The stock project, with the class lines and imports of the converted one."""
    shutil.copytree(STOCK, folder, dirs_exist_ok=True)
    for file in (*folder.glob("src/*.py"), *folder.glob("topologies/*.py")):
        there = (CONVERTED / file.relative_to(folder)).read_text()
        text = file.read_text()
        for line, head in re.findall(r"^((class \w+).*)", there, re.MULTILINE):
            text = re.sub(rf"^{head}\b.*", line, text, flags=re.MULTILINE)
        imports = "\n".join(re.findall(r"^from leeward.*", there, re.MULTILINE))
        text = re.sub(r"^(from streamparse import .*)", rf"\1\n{imports}", text, flags=re.MULTILINE)
        file.write_text(text)
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_check_finds_nothing_in_a_converted_example(name: str, monkeypatch: pytest.MonkeyPatch):
    assert problems(CONVERTED, name, monkeypatch) == (0, set())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_check_finds_what_a_change_of_base_classes_leaves_open(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code, found = problems(only_bases_changed(tmp_path), name, monkeypatch)
    found = {problem for problem in found if not problem[1].startswith("record keeps state")}  # the test's own
    assert (code, found) == (1, FOUND[name])


def test_the_stock_examples_know_nothing_of_leeward():
    for file in STOCK.rglob("*.py"):
        assert "leeward" not in file.read_text().lower(), file


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_tells_how_many_lines_were_changed(name: str):
    row = re.search(rf"^\| `{name}`.*", PAGE.read_text(), re.MULTILINE)
    assert row, f"{PAGE.name} has no row of {name}"
    assert f" {EXAMPLES[name].lines_changed()} of {EXAMPLES[name].lines()} lines" in row[0]
