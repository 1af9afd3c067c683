"""Experiments by name, and studies: runs on all processors that go on where they were broken off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import typer

from leeward.cli import _experiment
from leeward.cli._output import Output
from leeward.cli.experiment import SIMULATED
from leeward.control.registry import EXPERIMENTS, load, names
from leeward.core.experiment import Finding, Part, Row

PARTS = 6


class Squares:
    """Each part squares its number, and notes in a file that it was asked."""

    folder = Path()

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        return [Part(name=f"n{n}", seed=seed, options=(("n", n),)) for n in range(2 if quick else PARTS)]

    def measure(self, part: Part) -> Mapping[str, float]:
        with (self.folder / "asked").open("a") as file:
            file.write(f"{part.name}\n")
        if part.option("n") == 4 and not (self.folder / "go on").exists():
            raise KeyboardInterrupt
        return {"square": float(part.option("n")) ** 2}

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        rows = [
            Row(figure="f", setting="s", metric=part.name, unit="", ours=one["square"])
            for part, one in measured.items()
        ]
        return Finding(rows=tuple(rows), panels=())


@pytest.fixture
def squares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Squares, "folder", tmp_path)
    monkeypatch.setattr("leeward.control.registry.load", lambda name, group: Squares)
    return tmp_path


def run(out: Path, *, quick: bool = False) -> dict[str, float]:
    _experiment.run_experiment("squares", seed=1, quick=quick, output=Output.json, out=out)
    rows = json.loads((out / "squares.json").read_text())["rows"]
    return {row["metric"]: row["ours"] for row in rows}


def test_every_experiment_has_a_command_and_asks_for_runs_that_exist():
    assert set(names(EXPERIMENTS)) == SIMULATED.keys()
    for name in names(EXPERIMENTS):
        experiment = load(name, EXPERIMENTS)()
        ask = experiment.parts if hasattr(experiment, "parts") else experiment.runs
        quick, full = ask(seed=0, quick=True), ask(seed=0, quick=False)
        assert quick and len(quick) == len(set(quick)) and len(full) == len(set(full)) > len(quick)


def test_rows_come_in_the_order_of_the_parts(squares: Path):
    (squares / "go on").touch()
    assert list(run(squares).items()) == [(f"n{n}", float(n * n)) for n in range(PARTS)]
    assert list(run(squares, quick=True)) == ["n0", "n1"]
    assert sorted(path.suffix for path in squares.glob("squares*")) == [".csv", ".json", ".md"], "there is no panel"


def test_a_study_that_was_broken_off_goes_on(squares: Path):
    with pytest.raises(typer.Exit) as caught:
        run(squares)
    assert caught.value.exit_code == 130
    kept = squares / "squares.rows" / "parts.jsonl"
    done = {json.loads(json.loads(line)["part"])[0] for line in kept.read_text().splitlines()}
    assert done and "n4" not in done
    kept.write_text(kept.read_text() + '{"version": "0.1.0", "part": "cut o')
    (squares / "asked").write_text("")
    (squares / "go on").touch()
    assert run(squares) == {f"n{n}": float(n * n) for n in range(PARTS)}
    assert done.isdisjoint((squares / "asked").read_text().split()), "what was measured is not measured again"


def test_figures_of_another_version_are_measured_anew(squares: Path):
    (squares / "go on").touch()
    (rows := squares / "squares.rows").mkdir()
    part = Squares().parts(seed=1, quick=False)[3]
    line = {"version": "0.0.1", "part": _experiment._key(part), "figures": {"square": 99.0}}
    (rows / "parts.jsonl").write_text(json.dumps(line) + "\n")
    assert run(squares)["n3"] == 9.0
