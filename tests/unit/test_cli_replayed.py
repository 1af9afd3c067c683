"""`leeward demo` without a cluster: what it refuses, removes and reads at the start, and how its replay ends it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest
from typer.testing import CliRunner

from leeward.cli import _build, _replayed
from leeward.cli._edrp_table5 import Asked, run_table5
from leeward.cli._output import Output
from leeward.cli._replayed import Replayed, ReplayedError, Rows, generated_rows, prepared_rows
from leeward.local.errors import FolderError
from leeward.local.processes import process_of
from leeward.local.record import write_record
from leeward.policies.edrp.experiments.table5 import LIVE, OBJECTIVES
from tests.helpers.records import record_in

#: Files that a demo leaves behind, and those of somebody else in the same folder.
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


class Watched:
    """The screen that a demo shows each second."""

    def screen(self, now: float, started: float) -> Any:
        return NS(elapsed_s=1)


class Ended:
    """The results of a run whose replay has ended behind row `last`; the run may look twice, no more."""

    def __init__(self, last: int) -> None:
        self.last, self.looks = last, 0

    def sent(self) -> int:
        return self.last

    def ended(self) -> bool:
        self.looks += 1
        assert self.looks < 3, "the run goes on after its replay has ended"
        return self.looks == 2

    def newest(self, count: int) -> list[Any]:
        return [NS(number=7)]


def played(out: Path, monkeypatch: pytest.MonkeyPatch, sent: int) -> None:
    """Plays 1,000 rows by a replay that ends at once, behind entry `sent`."""

    @contextmanager
    def ended(command: list[str], log: Path) -> Iterator[int]:
        log.write_text("error: slice 7 cannot be read\n")
        child = subprocess.Popen(["false"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie, as one that nobody has asked for
        yield child.pid
        child.wait()

    monkeypatch.setattr(_replayed, "background", ended)
    monkeypatch.setattr(Replayed, "_watch", lambda run: Watched())
    monkeypatch.setattr(Replayed, "_quiet", lambda run: True)
    reference = [NS(number=7, row="row")]
    with ExitStack() as stack:
        run = Replayed(
            Rows(data="", slices=out, last=1001, reference=reference), out=out, folder=out, speed=60.0,
            service_times="none", options=[], base_port=7000, stack=stack,
        )  # fmt: skip
        run.cluster = NS(redis_url="redis://127.0.0.1:1", secrets_file=out / "secrets.json")  # type: ignore[assignment]
        run.results = Ended(sent)  # type: ignore[assignment]
        run.play()


@pytest.mark.parametrize("sent", [0, 400, 1000])
def test_a_run_ends_with_its_replay(out: Path, monkeypatch: pytest.MonkeyPatch, sent: int):
    with pytest.raises(ReplayedError, match=rf"(?s)ended behind row {sent} of 1000\..*slice 7 cannot.*replay\.log"):
        played(out, monkeypatch, sent)


def test_a_replay_that_has_sent_everything_may_end_before_the_run(out: Path, monkeypatch: pytest.MonkeyPatch):
    played(out, monkeypatch, 1001)


#: A pickup and a dropoff inside the grid.
HERE, THERE = "-73.956528,40.716976", "-73.962440,40.715008"


def trip(minute: int, begin: str = HERE, end: str = THERE) -> str:
    times = f"2013-01-01 00:00:00,2013-01-01 00:{minute:02d}:00"
    return f"07290D,E7750A,{times},120,0.44,{begin},{end},CSH,3.50,0.50,0.50,0.00,0.00,4.50\n"


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices are prepared without Spark: there is their manifest alone."""

    def run(arguments: list[str], log: Path) -> None:
        slices = Path(arguments[arguments.index("--out") + 1])
        slices.mkdir()
        (slices / "manifest.json").write_text(json.dumps({"rows": 2}))
        if "--csv" in arguments:
            Path(arguments[arguments.index("--csv") + 1]).write_bytes(gzip.compress(trip(1, "0,0").encode()))

    monkeypatch.setattr(_replayed, "run_leeward", run)


def test_the_reference_reads_the_files_that_are_replayed(tmp_path: Path, prepared: None):
    folder = tmp_path / "own"
    (folder / "folder.csv").mkdir(parents=True)
    (folder / "A.CSV").write_text(trip(1))
    (folder / "b.csv").write_text(trip(5, THERE, HERE))
    (folder / "notes.txt.gz").write_bytes(gzip.compress(trip(9, HERE, HERE).encode()))
    rows = prepared_rows([folder], tmp_path / "out")
    assert [one.row.split(",")[1] for one in rows.reference] == ["2013-01-01 00:01:00", "2013-01-01 00:05:00"]


def test_rows_without_a_result_are_refused(tmp_path: Path, prepared: None):
    (tmp_path / "far.csv").write_text(trip(1, "0,0"))
    with pytest.raises(ReplayedError, match=r"far\.csv: none .* in the grid of query1.*Give"):
        prepared_rows([tmp_path / "far.csv"], tmp_path / "out")
    with pytest.raises(ReplayedError, match=r"an hour: none .* in the grid of query1.*Give"):
        generated_rows([], "an hour", tmp_path / "made")
