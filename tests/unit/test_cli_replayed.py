"""`leeward demo` up to the start of its cluster: what it refuses, and what it removes of an earlier run."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leeward.cli import _build, _replayed
from leeward.cli._edrp_table5 import Asked, run_table5
from leeward.cli._output import Output
from leeward.cli._replayed import ReplayedError
from leeward.local.errors import FolderError
from leeward.local.processes import process_of
from leeward.local.record import write_record
from leeward.policies.edrp.experiments.table5 import LIVE, OBJECTIVES
from tests.helpers.records import record_in

#: What a demo leaves behind, and what somebody else keeps in the same folder.
WRITTEN = ["rows.csv.gz", "prepare.log", "topology.jar", "events.jsonl", "serve.log", "replay.log", "drain.log"]
OWN = ["thesis.txt", "rows.csv", "notes/replay.log"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of an earlier demo, in which a user has files, too."""
    folder = tmp_path / "out"
    (folder / "notes").mkdir(parents=True)
    for name in [*WRITTEN, *OWN]:
        (folder / name).write_bytes(gzip.compress(b"row\n") if name.endswith(".gz") else b"row\n")
    return folder


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run gets beyond the first command that it starts."""

    def refuse(arguments: list[str], log: Path) -> None:
        raise ReplayedError("cut short.", remedy="None.")

    monkeypatch.setattr(_replayed, "run_leeward", refuse)


def demo(out: Path, *more: str) -> Any:
    return CliRunner().invoke(_build(), ["demo", "--out", str(out), "--cluster", f"{out.parent / 'cluster'}", *more])


def left(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}


def running(folder: Path) -> Path:
    """The run folder of a cluster that runs."""
    folder.mkdir()
    process = process_of(os.getpid())
    assert process
    write_record(record_in(folder, process=process))
    return folder


@pytest.mark.parametrize("csv", [False, True])
def test_a_demo_removes_what_an_earlier_one_wrote_and_nothing_else(out: Path, cut: None, csv: bool):
    done = demo(out, *(["--csv", str(out / "rows.csv")] if csv else []))
    assert (done.exit_code, "cut short" in done.output) == (2, True), done.output
    assert left(out) == set(OWN)


def test_a_csv_that_does_not_exist_costs_no_file(out: Path, cut: None):
    done = demo(out, "--csv", str(out / "missing.csv"))
    assert (done.exit_code, "missing.csv does not exist" in done.output) == (2, True), done.output
    assert left(out) == {*WRITTEN, *OWN}


@pytest.mark.parametrize("csv", ["rows.csv.gz", ".", "slices/slices/own.csv"])
def test_a_csv_that_the_demo_would_remove_is_refused(out: Path, cut: None, csv: str):
    (out / "slices" / "slices").mkdir(parents=True)
    (out / "slices" / "slices" / "own.csv").write_text("row\n")
    before = left(out)
    done = demo(out, "--csv", str(out / csv))
    assert done.exit_code == 2, done.output
    assert "csv: " in done.output and "Copy it" in done.output, done.output
    assert left(out) == before


def test_a_demo_removes_nothing_while_a_cluster_runs(out: Path, cut: None):
    running(out.parent / "cluster")
    done = demo(out)
    assert (done.exit_code, "a cluster runs in" in done.output) == (2, True), done.output
    assert left(out) == {*WRITTEN, *OWN}


def test_table_5_removes_nothing_while_a_cluster_runs(out: Path, cut: None):
    folder = running(out.parent / "cluster")
    out.rename(out.parent / "rows")
    asked = Asked(quick=True, hours=1.0, seed=1, runs=[(OBJECTIVES[0], LIVE)], options="")
    with pytest.raises(FolderError, match="a cluster runs in"):
        run_table5(asked, folder=folder, base_port=7000, output=Output.json, out=out.parent)
    assert left(out.parent / "rows") == {*WRITTEN, *OWN}
