"""Table V in virtual time: its rows, its rates, and short runs of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.cli._edrp_table5 import Asked
from leeward.cli._edrp_table5_simulated import WORLD, SimulatedTable5
from leeward.policies.edrp.experiments.table5 import LIVE_DOWNTIME, MODES, OBJECTIVES, POINTS
from leeward.policies.edrp.experiments.table5_simulated import conclude, curve_of
from leeward.replay.generate import Settings, counts_of
from leeward.replay.profile import Profile
from leeward.sim.world.description import load_world

FIGURES = {
    "response": 0.05, "p95": 0.1, "cost": 9.9, "downtime": 0.6, "seconds": 1000.0, "longest": 0.06,
    "reconfigurations": 10.0, "most replicas": 12.0, "offered": 9.0, "lost": 0.0, "replicas 0": 8.0, "replicas 1": 9.0,
}  # fmt: skip


def asked(hours: float = 1.0, *, quick: bool = True) -> Asked:
    runs = [(objective, mode) for mode in MODES for objective in OBJECTIVES]
    return Asked(quick=quick, hours=hours, seed=1, runs=runs, options="")


def test_live_runs_alone_are_bounded_by_the_papers_cost():
    found = conclude({("balanced", "live"): FIGURES, ("balanced", "restart"): FIGURES}, minutes=96, peak=260, delay_s=0)
    rows = {(row.setting, row.metric): row for row in found.rows}
    cost, downtime = (rows["balanced, live", metric] for metric in ("mean C", "downtime"))
    assert (cost.paper, cost.high, cost.met) == (9.8, 9.8, False)
    assert (downtime.ours, downtime.high, downtime.met) == (pytest.approx(0.06), LIVE_DOWNTIME, False)
    assert rows["balanced, restart", "mean C"].met is None and rows["balanced, restart", "downtime"].met is None
    (panel,) = found.panels
    assert [curve.values for curve in panel.curves] == [(8.0, 9.0)] * 2 and panel.at == (48.0, 96.0)


def test_a_lost_tuple_misses_its_bound():
    found = conclude({("cost", "live"): {**FIGURES, "lost": 1.0}}, minutes=96, peak=260, delay_s=0)
    assert [row.metric for row in found.rows if row.met is False] == ["mean C", "downtime", "tuples lost"]


@pytest.mark.parametrize("quick", [True, False])
def test_its_rates_are_those_of_the_rows_that_storm_is_sent(quick: bool):
    words = asked(2, quick=quick).rows
    given = dict(zip(words[::2], words[1::2], strict=True))
    settings = Settings(
        hours=float(given["--hours"]), seed=int(given["--seed"]), profile=Profile(given["--profile"]),
        peak_rate=float(given["--peak-rate"]),
    )  # fmt: skip
    settings = replace(
        settings, **({"trough_rate": float(given["--trough-rate"])} if quick else {"start": given["--start"]})
    )
    trace = asked(2, quick=quick).trace
    assert trace.rates == tuple(counts_of(settings)) and trace.times[:2] == (0.5, 1.5)


def test_a_day_a_week_and_other_settings_are_other_parts():
    world, day = load_world(Path(__file__).parents[2] / WORLD), asked(3)
    others = (day, replace(day, quick=False), replace(day, overrides=("edrp.c_max=10",)))
    parts = [part for one in others for part in SimulatedTable5(world, one).parts()]
    assert len(set(parts)) == 3 * 8, "an interrupted run goes on with its own"


def test_the_same_seed_gives_the_same_figures():
    study = SimulatedTable5(load_world(Path(__file__).parents[2] / WORLD), asked(3))
    part = study.parts()[1]
    figures = study.measure(part)
    assert figures == study.measure(part) and figures["lost"] == 0 and figures["offered"] > 5000
    assert len(curve_of(figures)) == POINTS and set(curve_of(figures)) <= set(map(float, range(8, 16)))


def test_the_command_writes_table_csv_and_picture(tmp_path: Path):
    words = ["experiment", "edrp-table5-simulated", "--quick", "--hours", "2", "--delay-ms", "1", "--output", "json"]
    done = CliRunner().invoke(_build(), [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "edrp-table5-simulated.json").read_text())
    assert document["command"] == "leeward experiment edrp-table5-simulated --seed 1 --quick --hours 2 --delay-ms 1"
    lost = [row["ours"] for row in document["rows"] if row["metric"] == "tuples lost"]
    assert lost == [0.0] * 8
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json", ".md", ".svg"]


def test_a_setting_override_notes_of_the_papers_rules_the_run_and_is_told(tmp_path: Path):
    run = ["edrp-table5-simulated", "--quick", "--hours", "2", "--objective", "response time", "--mode", "live"]
    words = ["experiment", *run, "-o", "edrp.c_max=9", "--output", "json", "--out", str(tmp_path)]
    done = CliRunner().invoke(_build(), words)
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "edrp-table5-simulated.json").read_text())
    assert document["command"].endswith(" --objective 'response time' --mode live -o edrp.c_max=9")
    (most,) = [row["ours"] for row in document["rows"] if row["metric"] == "most replicas"]
    assert most == 9.0
    assert "In place of the paper's settings: edrp.c_max=9." in document["notes"]


@pytest.mark.parametrize(
    ("option", "said"),
    [("mode=restart", "--objective and --mode"), ("edrp.c_mix=9", "edrp.c_max"), ("edrp.w_c=2", "sum")],
)
@pytest.mark.parametrize("name", ["edrp-table5", "edrp-table5-simulated"])
def test_a_setting_that_the_service_would_not_take_is_refused_before_a_run(
    name: str, option: str, said: str, tmp_path: Path
):
    done = CliRunner().invoke(_build(), ["experiment", name, "-o", option, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and said in done.output, done.output
    assert not (tmp_path / "out").exists()
