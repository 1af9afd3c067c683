"""What an infeasible outcome says would help does help, and less of it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.outcome import Change, Infeasible
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.questions.relax import granted, greatest
from tests.helpers.oracles import brute_force, deployment_count
from tests.helpers.solve_builders import documents

pytestmark = pytest.mark.timeout(600)  # the first call on a machine compiles
ALL = list(HealthCheck)
#: Above what the search tells apart (1e-7 of a bound), below what anybody measures.
EPSILON = 1e-6


@st.composite
def tight(draw: st.DrawFn) -> Problem:
    """Tiny problems with bounds and nodes so tight that most have no solution."""
    document = draw(documents(deployments=3_000, operators=4, nodes=3))
    document["bounds"] = {
        "r": draw(st.sampled_from([0.02, 0.05, 0.1, 5.0])),
        "c": draw(st.sampled_from([1.0, 3.0, 6.0, 500.0])),
        "d": draw(st.sampled_from([0.1, 0.5, 10.0])),
    }
    for operator in document["operators"]:
        if draw(st.integers(0, 9)) == 0 and "mu" in operator:
            operator["mu"] = 15.0
    try:
        return problem_from_json(document)
    except FieldError:
        assume(False)
        raise


def scaled(changes: tuple[Change, ...], factor: float) -> tuple[Change, ...]:
    """The bounds among the changes a little higher or lower."""
    return tuple(
        replace(change, needed=change.needed * factor) if change.field.startswith("bounds") else change
        for change in changes
    )


def feasible(problem: Problem, changes: tuple[Change, ...]) -> bool:
    changed = granted(problem, changes)
    assume(deployment_count(changed) <= 100_000)
    return brute_force(changed) is not None


def check(problem: Problem) -> None:
    assume(brute_force(problem) is None)
    outcome = solve(problem, method="exact")
    assert isinstance(outcome, Infeasible)
    assert outcome.why
    for relaxation in outcome.relaxations:
        assert feasible(problem, scaled(relaxation.changes, 1 + EPSILON))
        for change in relaxation.changes:
            others = tuple(other for other in relaxation.changes if other is not change)
            assert not feasible(problem, (*others, slightly_less(change))), f"{change} asks for too much"


def slightly_less(change: Change) -> Change:
    if change.field.endswith(".k"):
        return replace(change, needed=change.needed - 1)
    if change.field.startswith("nodes"):
        return replace(change, needed=change.needed - 1e-3)
    return replace(change, needed=max(change.now, change.needed * (1 - EPSILON)))


@settings(max_examples=25, suppress_health_check=ALL)
@given(problem=tight())
def test_the_relaxation_is_enough_and_least(problem):
    check(problem)


@pytest.mark.slow
@settings(max_examples=1_000, suppress_health_check=ALL)
@given(problem=tight())
def test_the_relaxation_is_enough_and_least_on_many(problem):
    check(problem)


@settings(max_examples=25, suppress_health_check=ALL)
@given(problem=tight())
def test_no_deployment_exceeds_the_greatest_values(problem):
    loose = replace(problem, bounds=greatest(problem))
    found = brute_force(replace(loose, bounds=replace(loose.bounds, r=1e12, c=1e12, d=1e12)))
    assert (found is None) == (brute_force(loose) is None)
