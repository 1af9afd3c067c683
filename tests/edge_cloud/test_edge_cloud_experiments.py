"""The experiments: rows that follow from runs, files of one form, and runs that go on where they were broken off."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.experiment import Played, Row, Run
from leeward.core.workload import Interval
from leeward.policies.edge_cloud.experiments.makespan import Makespan
from leeward.policies.edge_cloud.experiments.setups import REF, SMALL, gain, gains, run, walk, words
from leeward.policies.edge_cloud.experiments.time import Time
from leeward.sim.workload.bench import play_all

ROW = {"figure", "setting", "metric", "unit", "paper", "independent", "ours", "low", "high", "met"}


def interval(number: int, makespan_s: float, plan_s: float = 0.001, **more: object) -> Interval:
    return Interval(
        interval=number, arrived=(f"a{number}",), active=1, makespan_s=makespan_s, violations=0, moves=0,
        stabilization_s=0.0, plan_s=plan_s, **more,
    )  # fmt: skip


def played(*values: float, plan_s: float = 0.001, **more: object) -> Played:
    return Played(intervals=[interval(k, value, plan_s, **more) for k, value in enumerate(values)], topologies={})


def by_metric(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {row.metric: row for row in rows}


def test_a_row_is_met_within_its_bounds_alone():
    def met(ours: float, low: float | None = None, high: float | None = None) -> bool | None:
        return Row(figure="f", setting="s", metric="m", unit="", ours=ours, low=low, high=high).met

    assert met(1.0) is None
    assert met(1.0, low=1.0) and met(1.0, high=1.0) and met(1.0, low=0.5, high=1.5)
    assert met(1.0, low=1.1) is False and met(1.0, high=0.9) is False


def test_gains_are_of_sums_and_of_single_intervals():
    assert gain([[1.0, 2.0], [3.0]], [[2.0, 2.0], [4.0]]) == pytest.approx(25.0)
    assert gains([[1.0, 0.0]], [[2.0, 0.0]]) == [50.0]


def test_rows_of_makespans_compare_the_strategies_interval_by_interval():
    setting = walk(REF, SMALL, 0.5, 0)
    runs = {
        run(setting, "topset"): played(1.0, 1.0, 1.0, 1.0),
        run(setting, "topset-p"): played(0.9, 0.9, 0.9, 1.1, refused={f"a{k}": "no room" for k in range(4)}),
        run(setting, "polished"): played(0.8, 0.8, 0.8, 0.8, refused={"a1": "no room"}),
    }
    finding = Makespan().conclude(runs)
    rows = by_metric(finding.rows)
    assert (
        rows["intervals in which topset-p is better than topset"].ours == 75
        and not rows["intervals in which topset-p is better than topset"].met
    )
    assert rows["polished under topset-p"].ours == pytest.approx(100 * (1 - 3.2 / 3.8))
    assert rows["refused arrivals, polished"].ours == 100 and rows["refused arrivals, polished"].met is False
    assert rows["refusals of polished less those of topset-p"].ours == -12
    assert [panel.title for panel in finding.panels] == [words(setting)]


def test_planning_times_leave_out_the_interval_that_loads_compiled_code():
    setting = walk(REF, SMALL, 0.5, 0)
    times = Played(intervals=[interval(0, 1.0, 9.0), interval(1, 1.0, 0.001), interval(2, 1.0, 0.003)], topologies={})
    rows = by_metric(Time().conclude({run(setting, "polished"): times}).rows)
    assert rows["polished, median"].ours == pytest.approx(2.0) and rows["polished, most"].ours == pytest.approx(3.0)
    assert rows["polished, median"].high == 2.0


def test_the_command_writes_json_csv_and_picture_and_prints_the_rows(tmp_path: Path):
    result = CliRunner().invoke(_build(), ["experiment", "edge-cloud-makespan", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "edge-cloud-makespan.json").read_text())
    assert document.keys() == {"experiment", "command", "seed", "version", "machine", "seconds", "rows", "notes"}
    assert document["command"] == "leeward experiment edge-cloud-makespan --seed 0 --quick"
    assert document["rows"] and all(row.keys() == ROW for row in document["rows"])
    with (tmp_path / "edge-cloud-makespan.csv").open() as file:
        assert [row["metric"] for row in csv.DictReader(file)] == [row["metric"] for row in document["rows"]]
    assert "<svg" in (tmp_path / "edge-cloud-makespan.svg").read_text()
    assert "polished under topset-p" in result.output
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json", ".md", ".svg"]


def test_runs_go_on_where_they_were_broken_off(tmp_path: Path):
    setting = walk(REF, (30, 12), 0.5, 1)
    runs = [run(setting, "topset"), run(setting, "polished")]

    def play(folder: str, most: int = 10**6) -> dict[Run, Played]:
        def advance(done: float, label: str) -> None:
            if done >= most:
                raise KeyboardInterrupt

        return play_all(runs, tmp_path / folder, version="1", clock=lambda: 0.0, advance=advance)

    whole = play("whole")
    with pytest.raises(KeyboardInterrupt):
        play("broken", most=17)
    lines = next((tmp_path / "broken").iterdir()).read_text().splitlines()
    assert len(lines) == 1 + 17
    assert play("broken") == whole
