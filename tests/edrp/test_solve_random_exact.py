# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""The branch and bound against exhaustive search, on random tiny instances."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.evaluate import verify
from leeward.policies.edrp.problem.outcome import Infeasible, Optimal
from leeward.policies.edrp.problem.problem import Problem
from tests.helpers.oracles import brute_force
from tests.helpers.solve_builders import problems

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)

RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def compare(problem: Problem) -> None:
    found = brute_force(problem)
    outcome = solve(problem, method="exact")
    if found is None:
        assert isinstance(outcome, Infeasible)
        return
    assert isinstance(outcome, Optimal)
    assert verify(problem, outcome.deployment) == ()
    assert outcome.metrics.F == pytest.approx(found[0], abs=3e-6)
    assert outcome.bound <= found[0] + 1e-9


@settings(max_examples=200, suppress_health_check=RELAXED)
@given(problem=problems(deployments=20_000, operators=5, nodes=5))
def test_exact_finds_the_optimum_of_exhaustive_search(problem):
    compare(problem)


@pytest.mark.slow
@settings(max_examples=3_000, suppress_health_check=RELAXED)
@given(problem=problems(deployments=100_000, operators=6, nodes=5))
def test_exact_finds_the_optimum_of_exhaustive_search_on_many(problem):
    compare(problem)
