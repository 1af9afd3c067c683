"""The study of regret: parts, figures and bounds."""

from __future__ import annotations

import pytest

from leeward.policies.agiledart.experiments.regret import FADING, FOR_DRIFT, OURS, PLANNERS, SIZES, STEADY, Regret

POINTS = {f"after {at}": 1.0 for at in range(50, 1001, 50)}


def measured(study, regrets, *, quick=False):
    return {
        part: POINTS | {"regret": regrets(part), "square": regrets(part) ** 2}
        for part in study.parts(seed=0, quick=quick)
    }


def known(part):
    size = next(size for size in SIZES if size.name == part.option("size"))
    if part.option("drift") != STEADY.name:
        return {FADING: 85.0, FOR_DRIFT: 70.0}.get(part.option("planner"), 100.0)
    if part.option("planner") == FOR_DRIFT:
        return 99.0
    return size.known[PLANNERS.index(part.option("planner"))]


def test_a_quick_part_is_measured():
    study = Regret()
    part = next(part for part in study.parts(seed=0, quick=True) if part.option("planner") == OURS)
    found = study.measure(part)
    assert 6 < found["regret"] < 20 and found["regret"] == pytest.approx(found["after 1000"])
    assert found["after 50"] < found["after 500"] < found["after 1000"]
    assert found == study.measure(part)


def test_the_independent_figures_meet_all_bounds():
    rows = Regret().conclude(measured(Regret(), known)).rows
    assert {row.met for row in rows} == {True, None}
    bound = [row.metric for row in rows if row.met]
    assert bound.count("regret, KL, c = 0.3") == bound.count("regret, Thompson") == 4
    assert bound.count("Thompson over KL, c = 0.3") == 4 and bound.count("Thompson for drift, over Thompson") == 8


def test_regrets_that_are_ten_percent_off_do_not():
    rows = Regret().conclude(measured(Regret(), lambda part: 1.1 * known(part))).rows
    assert {row.met for row in rows if row.metric == "regret, Thompson" and "drift" not in row.figure} == {False}


def test_a_planner_for_drift_that_gains_little_does_not():
    rows = Regret().conclude(measured(Regret(), lambda part: 85.0)).rows
    assert {row.met for row in rows if row.metric == "Thompson for drift, over Thompson"} == {False}
    assert {row.ours for row in rows if row.metric == "Thompson for drift over Thompson, no drift"} == {1.0}


def test_a_quick_study_has_no_bounds_around_them():
    finding = Regret().conclude(measured(Regret(), known, quick=True))
    assert {row.met for row in finding.rows if row.metric.startswith("regret, ")} == {None}
    assert {row.met for row in finding.rows if row.metric == "Thompson over KL, c = 0.3"} == {True}
