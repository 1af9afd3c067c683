"""Table V without a cluster: figures from the service's events and the sink's results."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.cli._edrp_table5 import SPEED, Asked
from leeward.cli._kept import Kept
from leeward.control.registry import policy_of, setting_names
from leeward.core.settings import settings_from
from leeward.policies.edrp.experiments import table5
from leeward.policies.edrp.experiments.table5 import LIVE, MODES, OBJECTIVES, QUIET_S, RESTART, Measured, measured_of


@dataclass
class Written:
    sent_s: float
    age_s: float


def looked(t: float, replicas: int, rate: float = 100.0) -> dict[str, Any]:
    return {
        "t": t, "action": "measured", "cost_per_h": float(replicas), "rates": {"data_source": rate},
        "deployment": {"parser": {"a": 1, "b": replicas - 1}},
    }  # fmt: skip


def changed(t: float, pause_s: float, kind: str = "handover") -> list[dict[str, Any]]:
    started = {"t": t - pause_s - 1, "action": "reconfiguration_started"}
    return [started, {"t": t, "action": "reconfiguration_ended", "kind": kind, "pause_s": pause_s}]


FACTS: dict[str, Any] = {"objective": "balanced", "mode": RESTART, "tuples": 10, "expected": 5, "wrong": 0}
PLAN = {"t": 1001.0, "action": "plan_made", "response_s": 0.1}


def measured(events: list[dict[str, Any]], results: list[Written], **facts: Any) -> Measured:
    """A run from 1,000 to 1,100 s."""
    return table5.measure(events, results, began=1000.0, ended=1100.0, **{**FACTS, **facts})


def test_cost_is_weighed_by_the_time_for_which_it_held():
    one = measured([looked(1000, 8), looked(1075, 12), looked(1200, 99)], [Written(1000, 0.1)])
    assert one.cost == pytest.approx((75 * 8 + 25 * 12) / 100)
    assert (one.least_replicas, one.most_replicas) == (8, 12)
    assert (one.replicas[0], one.replicas[-1], len(one.minutes)) == (8, 12, table5.POINTS)


def test_downtime_is_the_sum_of_the_pauses_within_the_run():
    late = changed(1101, 7.0)
    one = measured([looked(1000, 8), *changed(1020, 6.0), *changed(1050, 2.0, kind="reset"), *late], [Written(1000, 1)])
    assert (one.downtime_s, one.downtime, one.longest_s) == (8.0, 8.0, 6.0)
    assert (one.reconfigurations, one.resets) == (1, 1)
    assert (one.pauses[0], one.pauses[-1]) == (0.0, 8.0)


def test_results_that_waited_for_a_reconfiguration_are_left_out():
    results = [Written(1005, 0.1), Written(1012.9, 0.2), Written(1020, 6.0), Written(1020 + QUIET_S, 0.3)]
    one = measured([looked(1000, 8), *changed(1020, 6.0)], results)
    assert one.response_s == pytest.approx(0.2) and one.quiet == 0.5, "the first and the last alone"
    assert one.response_all_s == pytest.approx(6.6 / 4)


def test_minutes_of_overload_rule_the_mean_and_not_the_median():
    results = [Written(1000, 0.1), Written(1001, 0.1), Written(1002, 0.2), Written(1060, 5.0)]
    one = measured([looked(1000, 8)], results)
    assert one.response_all_s == pytest.approx(1.35) and one.response_median_s == pytest.approx(0.15)
    assert rows_of(one)["balanced, restart", "median R of all results"].ours == pytest.approx(150)


def test_the_curve_of_response_times_has_the_median_of_each_interval():
    """An interval is as long as the run over the number of points; one without results repeats the one before."""
    step = 100.0 / table5.POINTS
    results = [Written(1000 + 2.5 * step, 0.0), Written(1000 + 2.6 * step, 0.2), Written(1000 + 9.5 * step, 0.3)]
    curve = measured([looked(1000, 8)], results).responses_s
    assert curve == pytest.approx([0.1] * 9 + [0.3] * (table5.POINTS - 9))


def test_a_pause_that_nobody_notices_leaves_nothing_out():
    one = measured([looked(1000, 8), *changed(1020, 0.02)], [Written(1019.99, 0.1), Written(1021, 0.3)])
    assert one.quiet == 1.0 and one.response_s == pytest.approx(0.2)


def test_a_run_in_which_nothing_was_seen_has_no_figures():
    with pytest.raises(ValueError, match="without"):
        measured([PLAN], [Written(1000, 0.1)])
    with pytest.raises(ValueError, match="without"):
        measured([looked(1000, 8)], [])


def test_runs_that_are_over_are_told_without_a_cluster_and_stay(tmp_path):
    """The four days of eight runs take longer than an evening; those that are over are kept where `--runs` says."""
    kept = Kept(tmp_path / "runs", Asked(quick=False, hours=96, seed=1, runs=(), options="").kept_by, measured_of)
    for objective in OBJECTIVES:
        for mode in MODES:
            kept.add(measured([looked(1000, 8)], [Written(1000, 0.1)], objective=objective.name, mode=mode))
    words = ["experiment", "edrp-table5", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(_build(), [*words, "--output", "json"])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "runs").glob("*.json"))) == 8
    assert (tmp_path / "out/edrp-table5.svg").exists() and not (tmp_path / "out/rows").exists()


def test_a_run_with_other_settings_is_another_run():
    paper = Asked(quick=False, hours=96, seed=1, runs=(), options="")
    assert replace(paper, overrides=("edrp.c_max=10",)).kept_by != paper.kept_by == (paper.rows, SPEED)


def test_a_run_survives_its_file():
    one = measured([looked(1000, 8), PLAN], [Written(1000, 0.1)])
    again = table5.measured_of(json.loads(json.dumps(one.document())))
    assert again == one and one.response_model_s == 0.1


# --- figures


def rows_of(*runs: Measured) -> dict[tuple[str, str], Any]:
    return {(row.setting, row.metric): row for row in table5.conclude(runs).rows}


def test_live_is_bounded_by_the_papers_cost_and_by_its_own_downtime():
    balanced = OBJECTIVES[1]
    dear = measured([looked(1000, 10), *changed(1020, 0.06)], [Written(1000, 0.1)], mode=LIVE)
    rows = rows_of(dear)
    cost, downtime = (rows["balanced, live", metric] for metric in ("mean C", "downtime"))
    assert (cost.paper, cost.high, cost.met) == (balanced.paper_cost, balanced.paper_cost, False)
    assert (downtime.paper, downtime.high, downtime.met) == (balanced.paper_downtime, table5.LIVE_DOWNTIME, False)
    rows = rows_of(measured([looked(1000, 9), *changed(1020, 0.04)], [Written(1000, 0.1)], mode=LIVE))
    assert rows["balanced, live", "mean C"].met and rows["balanced, live", "downtime"].met


def test_restart_stands_beside_the_paper_without_bounds():
    rows = rows_of(measured([looked(1000, 10), *changed(1020, 6.0)], [Written(1000, 0.1)]))
    assert rows["balanced, restart", "downtime"].met is None
    assert rows["balanced, restart", "downtime"].paper == 2.36


def test_a_wrong_result_and_a_failed_run_miss_their_bounds():
    run = measured([looked(1000, 8)], [Written(1000, 0.1)], wrong=1)
    assert rows_of(run)["balanced, restart", "results lost, doubled or out of order"].met is False
    failed = table5.conclude([run], failed=["cost, live: no worker"])
    assert failed.rows[-1].met is False and failed.notes[-1] == "cost, live: no worker"


def test_a_figure_that_is_not_there_has_no_row():
    """A baseline that restarts at each plan may have no quiet time."""
    restless = measured(
        [looked(1000, 8), *changed(1001, 1.0), *changed(1031, 1.0), *changed(1061, 9.0)], [Written(1062, 1)]
    )
    assert math.isnan(restless.response_s) and math.isnan(restless.response_model_s)
    assert not [metric for _, metric in rows_of(restless) if "without results" in metric or "model" in metric]


def test_the_picture_has_the_replicas_of_each_objective_and_the_downtime_of_each_mode():
    live = measured([looked(1000, 8)], [Written(1000, 0.1)], mode=LIVE)
    both = [live, replace(live, mode=RESTART), replace(live, objective="cost")]
    titles = [panel.title for panel in table5.conclude(both).panels]
    assert titles == [
        "balanced: replicas", "cost: replicas", "median R, live", "downtime so far, live", "median R, restart",
        "downtime so far, restart", "rate of the source",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
def test_the_service_takes_the_settings_of_each_run(objective: table5.Objective, mode: str):
    options = table5.service_options(objective, mode)
    chosen = settings_from({}, options, more=setting_names)
    assert (chosen.service.mode, chosen.service.period_s, chosen.service.minimum_gain) == (mode, 60.0, 0.0)
    policy_of(chosen)
    assert sum((objective.weights.r, objective.weights.c, objective.weights.d)) == pytest.approx(1.0)
