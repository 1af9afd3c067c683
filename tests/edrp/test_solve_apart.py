# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""Operators that may share no node: every method against exhaustive search, and what is said where none can."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from leeward.core.fields import FieldError
from leeward.policies.edrp.exact.search import solve_exact
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.milp.compact import solve_compact
from leeward.policies.edrp.milp.ilp import solve_ilp
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal, Unknown
from tests.helpers.oracles import brute_force
from tests.helpers.solve_builders import chain_document, problems

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(900)

RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
#: How far the objectives of two methods may be apart.
AGREE = 3e-6
METHODS = {"exact": solve_exact, "ilp": solve_ilp, "compact": solve_compact}


def compare(problem, *names):
    found = brute_force(problem)
    for name in names:
        outcome = METHODS[name](problem)
        if found is None:
            assert isinstance(outcome, Infeasible), name
            continue
        assert isinstance(outcome, Optimal), name
        assert verify(problem, outcome.deployment) == (), name
        assert outcome.metrics.F == pytest.approx(found[0], abs=AGREE), name
        assert outcome.bound <= found[0] + AGREE, name


@settings(max_examples=150, suppress_health_check=RELAXED)
@given(problem=problems(deployments=20_000, operators=5, nodes=5, apart=True).filter(lambda problem: problem.apart))
def test_exact_finds_the_optimum_of_exhaustive_search(problem):
    compare(problem, "exact")


@settings(max_examples=15, suppress_health_check=RELAXED)
@given(problem=problems(deployments=3_000, operators=4, nodes=4, apart=True).filter(lambda problem: problem.apart))
def test_the_programmes_find_it_too(problem):
    compare(problem, "ilp", "compact")


@settings(max_examples=20, suppress_health_check=RELAXED)
@given(problem=problems(deployments=3_000, apart=True).filter(lambda p: p.current is not None and p.apart))
def test_what_the_service_asks_keeps_them_apart(problem):
    """`both` and rEDRP, from a present deployment that may break it."""
    found = brute_force(problem)
    for method in ("both", "restricted"):
        outcome = solve(problem, method=method, reasons=False)
        if isinstance(outcome, Infeasible):
            assert found is None, method
        elif not isinstance(outcome, Unknown):
            assert isinstance(outcome, Feasible | Optimal), method
            assert verify(problem, outcome.deployment) == (), method
            assert outcome.metrics.F >= found[0] - AGREE, method


def chain(*apart, nodes=3):
    return problem_from_json(chain_document(nodes) | {"apart": list(apart)})


def test_a_deployment_that_breaks_it_says_where():
    problem = chain(["work", "sink", "source"])
    placed = {"source": {"n0": 1}, "work": {"n0": 1, "n1": 1}, "sink": {"n1": 1}}
    assert [str(broken) for broken in verify(problem, placed)] == [
        "apart at sink and work on n1: 2, allowed 1",
        "apart at source and work on n0: 2, allowed 1",
    ]
    assert verify(replace(problem, apart=()), placed) == ()


def test_they_leave_the_node_that_all_others_would_share():
    large = [{"id": f"n{u}", "res": 8} for u in range(3)]
    alone = solve(problem_from_json(chain_document(3) | {"nodes": large}), method="exact")
    assert len({node for placed in alone.deployment.values() for node in placed}) == 1
    problem = problem_from_json(chain_document(3) | {"nodes": large, "apart": [["work", "sink"]]})
    apart = solve(problem, method="exact")
    assert not apart.deployment["work"].keys() & apart.deployment["sink"].keys()
    assert apart.metrics.F == evaluate(problem, apart.deployment).F > alone.metrics.F


def test_where_they_cannot_be_apart_the_reason_says_so():
    outcome = solve(chain(["work", "sink", "source"], nodes=2), method="exact")
    assert isinstance(outcome, Infeasible)
    assert outcome.why == ("no deployment keeps these apart (work, sink, source): allow some to share a node",)


def test_the_document_and_its_errors():
    problem = chain(["work", "sink"])
    assert problem_from_json(problem_to_json(problem)) == problem
    assert "apart" not in problem_to_json(chain())
    with pytest.raises(FieldError, match=r"apart\[0\]\[1\].*there is no such operator"):
        chain(["work", "nobody"])
