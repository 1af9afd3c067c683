# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""Exhaustive search, `ilp`, `compact` and `exact` agree, on random tiny instances and on the stored ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings

from leeward.policies.edrp.exact.search import solve_exact
from leeward.policies.edrp.milp.compact import solve_compact
from leeward.policies.edrp.milp.ilp import solve_ilp
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Infeasible, Optimal
from leeward.policies.edrp.problem.problem import Problem
from tests.helpers.oracles import brute_force
from tests.helpers.solve_builders import instance_document, problems

#: How far the objectives of two methods may be apart.
AGREE = 3e-6
#: Without what only an infeasible outcome takes longer for: `solve` would look for reasons too.
METHODS = {"exact": solve_exact, "ilp": solve_ilp, "compact": solve_compact}
RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
#: The slow test's examples, in parts so that several processes can share them.
PARTS, EACH = 8, 260

pytestmark = pytest.mark.timeout(3_600)


def compare(problem: Problem) -> None:
    found = brute_force(problem)
    for name, method in METHODS.items():
        outcome = method(problem)
        if found is None:
            assert isinstance(outcome, Infeasible), name
            continue
        assert isinstance(outcome, Optimal), name
        assert verify(problem, outcome.deployment) == (), name
        assert outcome.metrics == evaluate(problem, outcome.deployment), name
        assert outcome.metrics.F == pytest.approx(found[0], abs=AGREE), name
        assert outcome.bound <= found[0] + AGREE, name


@settings(max_examples=12, suppress_health_check=RELAXED)
@given(problem=problems(deployments=3_000, operators=4, nodes=4))
def test_all_methods_agree(problem):
    compare(problem)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_methods_agree_on_many(part):
    count = 0

    @seed(part)
    @settings(max_examples=EACH, suppress_health_check=RELAXED, database=None)
    @given(problem=problems(deployments=3_000, operators=4, nodes=4))
    def run(problem):
        nonlocal count
        compare(problem)
        count += 1

    run()
    print(f"part {part}: {count} instances agree")
    assert count >= EACH


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["a-", "b-", "c-", "d-", "e-", "f-", "g-", "h-"])
def test_the_stored_instances(name, method):
    if name in ("g-", "h-") and method != "exact":
        pytest.skip(f"{name} is too large for {method}")
    document = instance_document(name)
    problem = problem_from_json(document)
    outcome = METHODS[method](problem)
    if name == "e-":
        assert isinstance(outcome, Infeasible)
        return
    assert isinstance(outcome, Optimal)
    assert verify(problem, outcome.deployment) == ()
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=AGREE)
