# ruff: noqa: SIM300  (F is a metric, not a constant)
"""`both`, the service's method: rEDRP with the exact search beside it, and the better deployment of the two."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from leeward.policies.edrp.methods import both, solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Optimal, Unknown, found_in_words
from tests.helpers.solve_builders import chain_document, instance_document, settled_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", ["b-", "c-", "d-"])
def test_it_gives_the_proven_optimum_and_says_how_far_off_the_other_was(name):
    document = instance_document(name)
    problem = problem_from_json(document)
    outcome = solve(problem, method="both")
    assert isinstance(outcome, Optimal) and outcome.effort.method == "both"
    assert verify(problem, outcome.deployment) == ()
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)
    near = document["optimum"]["redrp"]["F"]
    if near > outcome.metrics.F + 1e-5:
        assert (outcome.effort.found_by, outcome.effort.other) == ("exact", "restricted")
        assert outcome.effort.other_F == pytest.approx(near, abs=3e-6)
        assert f"rEDRP {100 * (near / outcome.metrics.F - 1):.2g} % worse" in found_in_words(outcome)
    else:
        assert outcome.effort.found_by == "restricted"


def test_where_both_are_as_good_it_is_the_one_nearer_to_the_present():
    document = settled_document()
    outcome = solve(problem_from_json(document), method="both")
    assert isinstance(outcome, Optimal) and outcome.deployment == document["current"]
    assert (outcome.effort.found_by, outcome.effort.other) == ("restricted", "exact")
    assert found_in_words(outcome) == "by rEDRP (proven optimal); the exact search found none that is better"


def test_without_a_present_deployment_the_exact_search_works_alone():
    outcome = solve(problem_from_json(instance_document("a-") | {"current": None}), method="both")
    assert isinstance(outcome, Optimal)
    assert (outcome.effort.found_by, outcome.effort.other, outcome.effort.other_F) == ("exact", None, None)
    assert found_in_words(outcome) == "by the exact search (proven optimal)"


def test_what_is_infeasible_is_infeasible():
    outcome = solve(problem_from_json(instance_document("e-")), method="both", reasons=False)
    assert isinstance(outcome, Infeasible) and found_in_words(outcome) == ""


def far_from_any_neighbour() -> dict:
    """The present deployment has three replicas of an operator that may have one: no neighbour is allowed."""
    document = chain_document()
    document["operators"][1] |= {"allowed": ["n2"], "k": 1}
    return document | {"current": {"source": {"n0": 1}, "work": {"n0": 3}, "sink": {"n1": 1}}}


def test_where_no_neighbour_will_do_the_exact_search_answers():
    outcome = solve(problem_from_json(far_from_any_neighbour()), method="both")
    assert isinstance(outcome, Optimal) and outcome.effort.other_F is None
    assert found_in_words(outcome) == "by the exact search (proven optimal); rEDRP found none"


@pytest.mark.parametrize(
    ("taken_s", "most_s", "given_s"), [(2.0, None, 6.0), (2.0, 4.0, 4.0), (9.0, 4.0, both.BOUND_S)]
)
def test_the_exact_search_gets_what_the_restricted_one_leaves(monkeypatch, taken_s, most_s, given_s):
    problem = problem_from_json(instance_document("b-"))
    ticks = itertools.count()
    asked = {}

    def unknown(*_, time_limit_s, **options):
        asked.update(options, limit_s=time_limit_s)
        return Unknown(why="time", effort=Effort(method="exact", seconds=0.0))

    monkeypatch.setattr(both, "solve_exact", unknown)
    outcome = both.solve_both(problem, time_limit_s=8.0, exact_limit_s=most_s, clock=lambda: next(ticks) * taken_s)
    assert asked["limit_s"] == pytest.approx(given_s)
    assert verify(problem, asked["start"]) == ()
    assert isinstance(outcome, Feasible) and outcome.deployment == asked["start"]
    assert (outcome.effort.found_by, outcome.effort.other_F) == ("restricted", None)


def test_a_search_out_of_time_still_gives_the_better_of_what_is_known():
    document = instance_document("b-")
    problem = problem_from_json(document)
    outcome = both.solve_both(problem, exact_limit_s=1e-9)
    assert isinstance(outcome, Feasible | Optimal)
    assert outcome.metrics == evaluate(problem, outcome.deployment)
    assert outcome.metrics.F <= document["optimum"]["redrp"]["F"] + 3e-6
    assert 0 < outcome.bound <= document["optimum"]["F"] + 1e-9


def test_a_gap_in_words():
    outcome = solve(problem_from_json(instance_document("b-")), method="both")
    metrics, effort = outcome.metrics, replace(outcome.effort, found_by="exact", other="restricted", other_F=None)
    open_still = Feasible(deployment=outcome.deployment, metrics=metrics, bound=0.9 * metrics.F, effort=effort)
    assert "by the exact search (at most 10 % above the optimum); rEDRP found none" == found_in_words(open_still)
