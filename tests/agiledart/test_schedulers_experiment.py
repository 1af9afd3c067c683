"""The study of schedulers and churn: parts, figures and bounds."""

from __future__ import annotations

import pytest

from leeward.policies.agiledart.experiments.schedulers import APPLICATIONS, NODES, Schedulers

GOOD = {
    "routes": {"mean": 3.12, "most": 4.0},
    "schedulers": {
        "schedulers": 28.0, "wanted": 28.0, "wrong zones": 0.0, "served": 1.0, "most in a zone": 2.0,
        "mean hops": 2.3, "most hops": 4.0,
    },
    "hourly": {"reached": 1.0, "circles": 0.0, "alone": 1.4, "died": 100.0, "rounds": 2.0},
    "at once": {"reached": 1.0, "circles": 0.0, "alone": 1.7, "died": 300.0, "rounds": 4.0},
}  # fmt: skip


def concluded(study: Schedulers, changed: dict | None = None, *, quick: bool = False):
    figures = GOOD | (changed or {})
    return study.conclude({part: figures[part.option("kind")] for part in study.parts(seed=0, quick=quick)})


def test_good_figures_meet_all_bounds():
    found = concluded(Schedulers())
    assert {row.met for row in found.rows} == {True, None}
    assert [row.setting for row in found.rows if row.metric == "schedulers"] == [
        f"{NODES} nodes, 20 zones, {count} applications" for count in APPLICATIONS
    ]
    assert found.panels[0].at == tuple(map(float, APPLICATIONS))


@pytest.mark.parametrize(
    ("kind", "figure", "value", "metric"),
    [
        ("routes", "most", 5.0, "hops of a JOIN, most"),
        ("schedulers", "schedulers", 27.0, "schedulers"),
        ("schedulers", "most hops", 5.0, "hops of an anycast, most"),
        ("hourly", "reached", 0.99, "keys reached within 10 heartbeats"),
        ("at once", "alone", 2.1, "longest time of an application without a scheduler"),
    ],
)
def test_a_figure_beyond_its_bound_is_told(kind: str, figure: str, value: float, metric: str):
    rows = concluded(Schedulers(), {kind: GOOD[kind] | {figure: value}}).rows
    assert {row.metric for row in rows if row.met is False} == {metric}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["schedulers", "hourly", "at once"])
def test_a_quick_part_is_measured_and_the_same_for_its_seed(kind: str):
    study = Schedulers()
    part = next(part for part in study.parts(seed=3, quick=True) if part.option("kind") == kind)
    found = study.measure(part)
    assert found.keys() == GOOD[kind].keys()
    if kind == "schedulers":
        assert found["schedulers"] == found["wanted"] and found["served"] == 1.0
    elif kind == "hourly":
        assert found["died"] > 0 and found["reached"] == 1.0
    else:
        assert found == study.measure(part)
        assert found["circles"] == 0 and found["alone"] < 2.0
