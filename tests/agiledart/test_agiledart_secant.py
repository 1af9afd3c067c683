"""The study: its phases, a part, figures and bounds."""

from __future__ import annotations

from random import Random

import pytest

from leeward.core.experiment import Part
from leeward.policies.agiledart.experiments.phases import CAPACITIES, EXACT, NOISY, guarded, phases, plain
from leeward.policies.agiledart.experiments.secant import EMPTY, FULL, NONE, PATIENCE, Secant


def found(**changes: float) -> dict[str, float]:
    return {
        "phases": 1_000,
        "evaluations 2": 1_000,
        "settled": 1_000,
        "swings": 0,
        "served": 1_000,
        "over": 10,
    } | changes


def test_phases_have_all_capacities_and_are_the_same_for_a_seed():
    drawn = list(phases(50, Random(1)))
    assert {(phase.r, phase.q) for phase in drawn} == set(CAPACITIES) and drawn == list(phases(50, Random(1)))
    assert all(phase.Q == 0 for phase in phases(5, Random(1), empty=True))


def test_fifty_phases_without_noise_are_those_of_the_paper():
    x = 1
    for phase in phases(50, Random(2)):
        assert plain(phase, EXACT, Random(0)).evaluations <= 4
        search = guarded(phase, EXACT, Random(0), x=x)
        assert search.evaluations <= 2 and search.settled and search.served and not search.swings
        x = search.x


def test_a_search_is_given_up():
    searches = [plain(phase, NOISY, Random(k)) for k, phase in enumerate(phases(600, Random(3)))]
    assert max(search.evaluations for search in searches) <= PATIENCE
    assert {search.evaluations for search in searches if not search.settled} <= {PATIENCE}
    assert sum(search.evaluations > 4 for search in searches) > 60


@pytest.mark.parametrize("rule", ["secant", "guarded"])
@pytest.mark.parametrize("queues", [FULL, EMPTY])
def test_a_part_without_noise_is_measured(rule, queues):
    study = Secant()
    options = {"noise": NONE, "queues": queues, "rule": rule}
    part = next(one for one in study.parts(seed=0, quick=True) if dict(one.options) == options)
    figures = study.measure(part)
    assert figures == study.measure(part) and figures["settled"] == figures["phases"] == 1_000
    assert (figures["served"] == 1_000) is (rule == "guarded")


def test_rows_have_the_bounds_of_the_issue():
    study = Secant()
    parts = study.parts(seed=0, quick=True)
    bad: dict[Part, dict[str, float]] = {
        part: found(**{"evaluations 2": 0, "evaluations 5": 1_000, "served": 999}) for part in parts
    }
    good = {part: found(served=500 if part.option("rule") == "secant" else 1_000) for part in parts}
    for part in parts:
        if part.option("rule") == "secant" and part.option("noise") != NONE:
            good[part] |= {"evaluations 2": 500, "evaluations 9": 500}
    finding = study.conclude(good)
    assert all(row.met is not False for row in finding.rows)
    assert sum(row.met is True for row in finding.rows) == 13
    assert [panel.kind for panel in finding.panels] == ["lines", "dots"]
    assert all(row.met is not True for row in study.conclude(bad).rows if "guarded" in row.metric)


def test_full_runs_have_a_hundred_thousand_phases_under_noise():
    parts = [
        p for p in Secant().parts(seed=0, quick=False) if p.option("rule") == "guarded" and p.option("queues") == FULL
    ]
    assert len(parts) == 21
