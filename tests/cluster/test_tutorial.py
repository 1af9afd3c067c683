"""The tutorial, block by block, on a real local cluster; only ports and the home folder are the test's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.helpers.doc_blocks import ROOT, blocks
from tests.helpers.servers import port_block

TUTORIAL = ROOT / "docs" / "tutorial.md"
BASE_PORT = port_block()
#: of the tutorial's text: how often each word is in one round of the lines that the spout sends
TEXT = """the wind blows to leeward and the sea runs high
the ship that lies to leeward feels no wind
a lee shore is the one to which the wind blows"""


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    """A shell block; stops at the first command that fails."""
    script = script.replace("leeward cluster up", f"leeward cluster up --base-port {BASE_PORT}")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def counts(table: str) -> dict[str, int]:
    """What look.py printed."""
    lines = [line.split() for line in table.splitlines()]
    return {word: int(count) for count, word in (line for line in lines if len(line) == 2 and line[0].isdigit())}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_tutorial_does_what_it_says(tmp_path: Path):
    words = tmp_path / "words"
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    shell: list[str] = []
    try:
        for block in blocks(TUTORIAL)[1:]:  # the first one is set-up, without which no test runs
            if block.file:
                target = words / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text)
            else:
                shell.append(run(block.text, words if words.exists() else tmp_path, environment))
    finally:
        down = subprocess.run(
            ["leeward", "cluster", "down"], cwd=words, env=environment, capture_output=True, text=True
        )
    _project, submitted, running, first, scaled, decided, frugal, ended = shell
    assert "cluster up" in submitted
    assert re.search(r"^phase +run", running, re.MULTILINE)
    assert scaled.count("done") == 2
    assert "127.0.0.13:1" in scaled
    assert "deployment" in decided
    assert "100 tuples/s for each replica" in frugal
    assert "0 processes" not in ended
    assert "0 processes" in down.stdout
    check_counts(counts(first), counts(scaled.split("done")[1]), counts(scaled.split("done")[2]))


def check_counts(*tables: dict[str, int]) -> None:
    """No count ever goes back, and all words are counted equally often, but for lines on the way."""
    occurrences = {word: TEXT.split().count(word) for word in TEXT.split()}
    for table in tables:
        assert table.keys() == occurrences.keys()
        rounds = [table[word] / occurrences[word] for word in occurrences]
        assert max(rounds) - min(rounds) < 15, table  # two seconds of the source may be on the way
    for before, after in pairwise(tables):
        assert all(after[word] > before[word] for word in before), (before, after)
