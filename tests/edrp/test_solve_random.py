"""The literal programme against exhaustive search, on random tiny instances."""

# ruff: noqa: SIM300  (F, R and C are metrics, not constants)

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal, Unknown
from tests.helpers.oracles import brute_force
from tests.helpers.solve_builders import problems

RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@settings(max_examples=60, suppress_health_check=RELAXED)
@given(problem=problems(deployments=5_000))
def test_ilp_finds_the_optimum_of_exhaustive_search(problem):
    found = brute_force(problem)
    outcome = solve(problem, method="ilp")
    if found is None:
        assert isinstance(outcome, Infeasible)
        return
    assert isinstance(outcome, Optimal)
    assert verify(problem, outcome.deployment) == ()
    assert outcome.metrics == evaluate(problem, outcome.deployment)
    assert outcome.metrics.F == pytest.approx(found[0], abs=3e-6)
    assert outcome.bound <= found[0] + 3e-6


@settings(max_examples=60, suppress_health_check=RELAXED)
@given(problem=problems(deployments=5_000))
def test_brute_force_agrees_with_the_definitions(problem):
    found = brute_force(problem)
    if found is not None:
        assert verify(problem, found[1]) == ()
        assert evaluate(problem, found[1]).F == pytest.approx(found[0], rel=1e-12, abs=1e-12)


@settings(max_examples=30, suppress_health_check=RELAXED)
@given(problem=problems(deployments=5_000).filter(lambda problem: problem.current is not None))
def test_restricted_lies_between_the_optimum_and_keeping(problem):
    outcome = solve(problem, method="restricted")
    found = brute_force(problem)
    keeps = not verify(problem, problem.current)
    assert not isinstance(outcome, Optimal | Infeasible)
    if isinstance(outcome, Unknown):
        assert not keeps
        return
    assert isinstance(outcome, Feasible)
    assert verify(problem, outcome.deployment) == ()
    assert found is not None
    assert outcome.metrics.F >= found[0] - 3e-6
    if keeps:
        assert outcome.metrics.F <= evaluate(problem, problem.current).F + 1e-12
