"""The README's `make` lines are run as they stand, in this checkout; only folders and ports are the test's.

`make test` is not among them: it is what runs the tests, in the pipeline too (`.ci/run`); nor is `make wheel`, which
`tests/package` calls.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.doc_blocks import ROOT, commands
from tests.helpers.servers import port_block
from tests.helpers.shared_folder import RIDES, stored

BASE_PORT = port_block()
LINES = [c.line.partition("#")[0].strip() for c in commands(ROOT / "README.md") if c.program == "make"]


class Shell:
    """A user's shell in the checkout, with a cluster of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "LEEWARD_BASE_PORT": str(BASE_PORT),
            "LEEWARD_CLUSTER": str(folder / "cluster"),
            "LEEWARD_OUT": str(folder / "demo"),
        }

    def type(self, line: str, **variables: str) -> str:
        """A line, and what it printed."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=ROOT, env=self.environment | variables, capture_output=True, text=True,
            timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def verdict(self) -> dict:
        return json.loads((self.folder / "demo.json").read_text())

    def alive(self) -> list[str]:
        """Processes whose command line names this shell's folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                found += [words.replace("\0", " ")] if str(self.folder) in words else []
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    try:
        yield shell
    finally:
        shell.type("make down")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    [rides] = stored("data/taxi", RIDES.name)
    (tmp_path / "sorted_data.csv").write_bytes(gzip.decompress(rides.read_bytes()))
    return tmp_path / "sorted_data.csv"


def exact(verdict: dict) -> bool:
    wrong = {key: verdict[key] for key in ("lost", "duplicated", "out_of_order")}
    return verdict["equal_to_reference"] and wrong == {"lost": 0, "duplicated": 0, "out_of_order": 0}


def test_the_readme_has_the_lines_that_are_run_here():
    own = ["make demo CSV=path/to/sorted_data.csv", "make demo KEEP=1", "make down"]
    assert ["make demo", "make test", *own, "make wheel"] == LINES
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_make_demo_moves_operators_and_is_exact(shell: Shell):
    shell.type("make demo")
    verdict = shell.verdict()
    assert exact(verdict)
    kinds = "+".join(r["kind"] for r in verdict["reconfigurations"]).split("+")
    assert {"scale-out", "scale-in", "move"} <= set(kinds)
    assert shell.alive() == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_make_demo_replays_own_rows_and_leaves_nothing_running(shell: Shell, rows: Path):
    shell.type(f"make demo CSV={rows}")
    verdict = shell.verdict()
    assert exact(verdict)
    assert verdict["data"] == str(rows)
    assert verdict["tuples_in"] == len([line for line in rows.read_text().splitlines() if line])
    assert shell.alive() == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_make_demo_keeps_the_cluster_until_make_down(shell: Shell, rows: Path):
    shell.type("make demo KEEP=1", CSV=str(rows))
    assert exact(shell.verdict())
    status = json.loads(shell.type(f"{ROOT}/.venv/bin/leeward cluster status --output json"))
    assert status["healthy"] and len(status["nodes"]) == 5
    assert [name for name, *_ in status["topologies"]] == ["query1"]
    assert "processes ended" in shell.type("make down")
    assert shell.alive() == []
