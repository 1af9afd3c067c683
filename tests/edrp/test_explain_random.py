# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""Explanations and trade-off curves of random tiny problems against looking at every deployment."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from leeward.policies.edrp.problem.latency import MM1, Table
from leeward.policies.edrp.problem.outcome import Infeasible
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Node, Operator, Stream, Weights
from leeward.policies.edrp.questions.document import explanation_to_json
from leeward.policies.edrp.questions.explain import Explanation, explain
from leeward.policies.edrp.questions.pareto import RESOLUTION, Point, Tracer, unbeaten
from tests.helpers.deployments import feasible, least_f
from tests.helpers.solve_builders import problems

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)

RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
TINY = {"deployments": 300, "operators": 3, "nodes": 3}


def check_explanation(problem: Problem) -> None:
    result = explain(problem)
    if not isinstance(result, Explanation):
        assert isinstance(result, Infeasible)
        assert not list(feasible(problem))
        return
    chosen, metrics = result.outcome.deployment, result.outcome.metrics
    assert math.fsum(hop.seconds for hop in result.facts.path) == pytest.approx(metrics.R, abs=1e-12)
    document = explanation_to_json(result)
    for op in problem.operators:
        best = least_f(problem, lambda other, op=op: other[op.id] != chosen[op.id])
        shown = document["next_best"][op.id]
        assert (shown is None) == (best is None)
        if shown is not None:
            assert shown["exact"]
            assert shown["answer"]["F"] == pytest.approx(best, abs=3e-6)
    for limit in result.limits:
        if limit.kind == "capacity":
            nodes = tuple(replace(n, res=n.res + 1) if n.id == limit.where else n for n in problem.nodes)
            best = least_f(replace(problem, nodes=nodes), lambda _: True)
            assert limit.relaxed.metrics.F == pytest.approx(best, abs=3e-6)


def front(problem: Problem) -> list[tuple[float, float, float]]:
    """All (C, R, T_D) that no deployment beats in C and R, cheapest first; of equals that of the least T_D."""
    points = sorted((m.C, m.R, m.T_D) for _, m in feasible(problem))
    result: list[tuple[float, float, float]] = []
    for c, r, d in points:
        if not result or r < result[-1][1] * (1 - 3 * RESOLUTION):
            result.append((c, r, d))
    return result


def check_front(problem: Problem) -> None:
    expected = front(problem)
    found = list(Tracer(problem=problem).trace())
    if not expected:
        assert [type(one) for one in found] == [Infeasible]
        return
    assert all(isinstance(one, Point) and one.proven for one in found)
    shown = [(one.metrics.C, one.metrics.R, one.metrics.T_D) for one in reversed(unbeaten(found))]
    assert len(shown) == len(expected)
    for got, want in zip(shown, expected, strict=True):
        assert got[:2] == pytest.approx(want[:2], rel=5e-6, abs=1e-9)
    ends = list(Tracer(problem=problem).trace(points=2))
    assert 1 <= len(ends) <= 2
    assert ends[0].metrics.C == pytest.approx(expected[0][0], rel=5e-6)
    assert ends[-1].metrics.R == pytest.approx(expected[-1][1], rel=5e-6)


@settings(max_examples=15, suppress_health_check=RELAXED)
@given(problem=problems(**TINY))
def test_explanations_agree_with_looking_at_everything(problem):
    check_explanation(problem)


@settings(max_examples=30, suppress_health_check=RELAXED)
@given(problem=problems(**TINY))
def test_the_curve_is_that_of_looking_at_everything(problem):
    check_front(problem)


def test_the_curve_where_the_least_cost_is_nothing():
    """A bound of 0 would not be one, and so there was none: what pauses for less came first, at any cost."""
    nodes = tuple(Node(id=f"n{number}", res=res) for number, res in enumerate((2.0, 2.0, 3.0)))
    source = Operator(id="op0", k=1, curve=MM1(mu=333.0), cost=0.0, source_rate=10.0)
    doubled = Operator(id="op1", k=2, curve=Table(values_s=(math.inf, 0.03125)), cost=0.0)
    check_front(
        Problem(
            nodes=nodes, delay_s=((0.0,) * 3,) * 3, operators=(source, doubled),
            streams=(Stream(source="op0", target="op1", rate=1.0),), weights=Weights(r=1.0, c=0.0, d=0.0),
            bounds=Bounds(r=0.08, c=6.0, d=0.8), link_cost=0.02, current={"op0": {"n0": 1}, "op1": {"n1": 1}},
        )
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=400, suppress_health_check=RELAXED)
@given(problem=problems(**TINY))
def test_explanations_and_curves_agree_on_many(problem):
    check_explanation(problem)
    check_front(problem)
