"""Runs that an experiment keeps: the next call of the same experiment finds them, another one does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leeward.cli._kept import Kept


@dataclass(frozen=True)
class Figures:
    name: str
    value: float

    @property
    def key(self) -> tuple[str, ...]:
        return self.name, "live"

    def document(self) -> dict[str, Any]:
        return asdict(self)


def read(document: Mapping[str, Any]) -> Figures:
    return Figures(**document)


ONE, OTHER = Figures("response time", 1.5), Figures("cost", 2.0)


def test_runs_are_kept_for_the_next_call_of_the_same_experiment(tmp_path: Path):
    folder = tmp_path / "runs"
    kept = Kept(folder, {"hours": 20}, read)
    kept.add(ONE)
    assert Kept(folder, {"hours": 20}, read).runs == {ONE.key: ONE}
    assert Kept(folder, {"hours": 96}, read).runs == {}
    kept.add(OTHER)
    again = Kept(folder, {"hours": 20}, read)
    assert again.runs == {ONE.key: ONE, OTHER.key: OTHER}
    again.end()
    assert Kept(folder, {"hours": 20}, read).runs == {}


def test_runs_of_other_settings_stay_in_the_same_folder(tmp_path: Path):
    """A quick run beside a full one: the run of 96 minutes must not be replaced."""
    Kept(tmp_path, {"hours": 96}, read).add(ONE)
    Kept(tmp_path, {"hours": 20}, read).add(Figures("response time", 7.0))
    assert Kept(tmp_path, {"hours": 96}, read).runs == {ONE.key: ONE}


def test_a_file_that_is_cut_off_or_of_another_form_counts_as_none(tmp_path: Path):
    folder = tmp_path / "runs"
    kept = Kept(folder, 1, read)
    kept.add(ONE)
    kept.add(OTHER)
    first, second = sorted(folder.iterdir())
    first.write_text(first.read_text()[:-9])
    second.write_text(second.read_text().replace('"value"', '"amount"'))
    assert Kept(folder, 1, read).runs == {}
