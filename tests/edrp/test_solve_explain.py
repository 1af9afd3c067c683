# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""Explanations: each figure computed once more, from the definitions or by looking at every deployment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.latency import Table
from leeward.policies.edrp.problem.outcome import Infeasible
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.questions.document import explanation_to_json
from leeward.policies.edrp.questions.explain import Explanation, explain
from leeward.policies.edrp.questions.facts import facts_of
from leeward.policies.edrp.questions.whatif import with_bounds
from tests.helpers.deployments import least_f
from tests.helpers.solve_builders import chain_document, instance_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)


def braid() -> Problem:
    """source -> (left, right) -> sink on three nodes with something running; the source is pinned."""
    document = chain_document(nodes=3, k=2) | {
        "operators": [
            {"id": "source", "k": 1, "mu": 300, "source_rate": 100, "allowed": ["n1"]},
            {"id": "left", "k": 2, "mu": 150, "state": 1e6},
            {"id": "right", "k": 2, "mu": 120},
            {"id": "sink", "k": 1, "mu": 400},
        ],
        "streams": [
            {"from": a, "to": b, "rate": rate}
            for a, b, rate in (
                ("source", "left", 100),
                ("source", "right", 50),
                ("left", "sink", 100),
                ("right", "sink", 50),
            )
        ],
        "link_cost": 0.01,
        "weights": {"r": 0.5, "c": 0.3, "d": 0.2},
        "bounds": {"r": 0.06, "c": 9, "d": 2},
        "current": {"source": {"n1": 1}, "left": {"n0": 1}, "right": {"n2": 1}, "sink": {"n0": 1}},
    }
    return problem_from_json(document)


def stacked(model: str = "generic") -> Problem:
    """The same where two replicas on one node are best; n0 and n1 are large and fast."""
    document = problem_to_json(braid()) | {"weights": {"r": 0.9, "c": 0.1, "d": 0.0}, "downtime_model": model}
    document["nodes"] = [{"id": "n0", "res": 4, "speedup": 2}, {"id": "n1", "res": 3, "speedup": 2}, {"id": "n2"}]
    document["bounds"]["c"] = 20
    return problem_from_json(document)


@pytest.fixture(scope="module", params=[braid, stacked, lambda: stacked("storm")], ids=["braid", "stacked", "storm"])
def explained(request) -> Explanation:
    result = explain(request.param())
    assert isinstance(result, Explanation)
    return result


def test_the_hops_of_the_path_add_up_to_the_response_time(explained):
    path, metrics = explained.facts.path, explained.outcome.metrics
    assert sum(hop.seconds for hop in path) == pytest.approx(metrics.R)
    assert sum(hop.share for hop in path) == pytest.approx(1)
    names = [hop.ends for hop in path]
    assert names[0] == ("source",) and names[-1] == ("sink",)
    for before, stream, after in zip(names[::2], names[1::2], names[2::2], strict=False):
        assert stream == (*before, *after)


def test_slack_is_how_much_slower_an_operator_may_be(explained):
    problem, deployment, response = explained.problem, explained.outcome.deployment, explained.outcome.metrics.R

    def slowed(op, seconds: float) -> float:
        """R if the operator took so much longer."""
        on_reference = (op.latency_s + seconds) * min(problem.nodes[problem.node_index[n]].speedup for n in op.placed)
        operators = tuple(
            replace(one, curve=Table(values_s=(on_reference,) * one.k)) if one.id == op.id else one
            for one in problem.operators
        )
        return evaluate(replace(problem, operators=operators), deployment).R

    for op in explained.facts.operators:
        assert slowed(op, op.slack_s) == pytest.approx(response)
        assert slowed(op, op.slack_s + 0.001) == pytest.approx(response + 0.001)


def test_costs_and_links_add_up(explained):
    facts = explained.facts
    total = sum(op.cost for op in facts.operators) + sum(s.cost for s in facts.streams)
    assert total == pytest.approx(explained.outcome.metrics.C)
    assert max(op.downtime_s for op in facts.operators) == pytest.approx(explained.outcome.metrics.T_D)
    for stream in facts.streams:
        assert sum(stream.links.values()) == pytest.approx(stream.rate_tps)


def accepts(alternative, deployment):
    """Whether a deployment is one of those that an alternative chooses from."""
    op, change, node = alternative.operator, alternative.change, alternative.node
    now = deployment[op]

    def test(other) -> bool:
        size, before = sum(other[op].values()), sum(now.values())
        if change == "leave":
            return node not in other[op]
        if change == "thin":
            return other[op].get(node, 0) < now[node]
        return size < before if change == "fewer" else size > before

    return test


def test_alternatives_solved_anew_are_the_best_of_all(explained):
    problem, deployment = explained.problem, explained.outcome.deployment
    asked = [a for a in explained.alternatives if a.others == "solved anew"]
    assert {a.operator for a in asked} == set(deployment)
    for alternative in asked:
        best = least_f(problem, accepts(alternative, deployment))
        answer = alternative.answer
        if best is None:
            assert answer.status == "infeasible"
        else:
            assert answer.status == "optimal"
            assert answer.metrics.F == pytest.approx(best, abs=3e-6)
            assert answer.metrics == evaluate(problem, answer.deployment)
            assert accepts(alternative, deployment)(answer.deployment)


def test_alternatives_with_the_others_fixed_change_one_replica(explained):
    problem, deployment = explained.problem, explained.outcome.deployment
    seen = [a for a in explained.alternatives if a.others == "fixed" and a.answer.deployment]
    assert seen
    for alternative in seen:
        other = alternative.answer.deployment
        op = alternative.operator
        assert all(other[name] == deployment[name] for name in deployment if name != op)
        assert not verify(problem, other)
        nodes = set(other[op]) | set(deployment[op])
        change = [other[op].get(node, 0) - deployment[op].get(node, 0) for node in nodes]
        step = {"fewer": [-1], "more": [1], "move": [-1, 1]}[alternative.change]
        assert sorted(c for c in change if c) == step


def test_the_next_best_of_each_operator_is_the_best_that_differs(explained):
    problem, deployment = explained.problem, explained.outcome.deployment
    document = explanation_to_json(explained)
    for op in deployment:
        best = least_f(problem, lambda other, op=op: other[op] != deployment[op])
        shown = document["next_best"][op]
        if best is None:
            assert shown is None
        else:
            assert shown["exact"]
            assert shown["answer"]["F"] == pytest.approx(best, abs=3e-6)


def test_one_more_of_a_bound_gains_what_looking_at_everything_says(explained):
    problem, base = explained.problem, explained.outcome.metrics
    bounds = problem.bounds
    steps = {"response": {"r": bounds.r + 0.001}, "cost": {"c": bounds.c + 1}, "downtime": {"d": bounds.d + 1}}
    limits = {limit.kind: limit for limit in explained.limits if limit.kind in steps}
    assert set(limits) == set(steps)
    for kind, changed in steps.items():
        relaxed = with_bounds(problem, replace(bounds, **changed)).problem
        best = least_f(relaxed, lambda _: True, stated=problem)
        assert limits[kind].relaxed.metrics.F == pytest.approx(best, abs=3e-6)
        everything = with_bounds(problem, replace(bounds, **dict.fromkeys(changed, 1e3))).problem
        without = least_f(everything, lambda _: True, stated=problem)
        assert limits[kind].without.metrics.F == pytest.approx(without, abs=3e-6)
        assert limits[kind].binds(base) == (base.F - without > 1e-6)


def test_a_bound_that_binds_is_seen_to_bind():
    document = chain_document() | {"weights": {"r": 1, "c": 0, "d": 0}}
    document["operators"][1]["mu"] = 110  # two replicas save 83 ms
    fastest = problem_from_json(document)
    spent = solve(fastest, method="exact").metrics.C
    result = explain(replace(fastest, bounds=replace(fastest.bounds, c=spent - 0.1)))
    limit = next(limit for limit in result.limits if limit.kind == "cost")
    assert limit.binds(result.outcome.metrics) is True
    assert limit.relaxed.gain(result.outcome.metrics) > 0.001


def test_one_more_unit_on_a_node_gains_what_looking_at_everything_says(explained):
    problem = explained.problem
    capacities = {limit.where: limit for limit in explained.limits if limit.kind == "capacity"}
    assert set(capacities) == set(problem.node_index)
    for node, limit in capacities.items():
        nodes = tuple(replace(n, res=n.res + 1) if n.id == node else n for n in problem.nodes)
        best = least_f(replace(problem, nodes=nodes), lambda _: True, stated=problem)
        assert limit.relaxed.metrics.F == pytest.approx(best, abs=3e-6)


def test_without_a_pin_and_with_a_greater_k(explained):
    problem = explained.problem
    for limit in explained.limits:
        if limit.kind == "nodes":
            changed = {limit.where: {"allowed": None}}
        elif limit.kind == "replicas":
            changed = {limit.where: {"k": int(limit.limit) + 1}}
        else:
            continue
        operators = tuple(replace(op, **changed.get(op.id, {})) for op in problem.operators)
        best = least_f(replace(problem, operators=operators), lambda _: True, stated=problem)
        assert limit.relaxed.metrics.F == pytest.approx(best, abs=3e-6)


def test_without_time_nothing_is_asked_and_that_is_said():
    ticks = iter(range(10_000))
    result = explain(braid(), time_limit_s=10.0, clock=lambda: 100.0 * next(ticks))
    assert {a.answer.status for a in result.alternatives if a.others == "solved anew"} <= {"not asked", "infeasible"}
    assert {limit.relaxed.status for limit in result.limits if limit.kind == "response"} == {"not asked"}
    assert all(limit.binds(result.outcome.metrics) is None for limit in result.limits if limit.kind == "cost")


def test_an_infeasible_problem_is_returned_as_such():
    problem = braid()
    assert isinstance(explain(replace(problem, bounds=replace(problem.bounds, r=0.001))), Infeasible)


@pytest.mark.parametrize("prefix", ["b-", "c-", "d-"])
def test_the_facts_of_the_stored_optima_add_up(prefix):
    document = instance_document(prefix)
    problem = problem_from_json(document)
    optimum = document["optimum"]
    facts = facts_of(problem, optimum["deployment"])
    assert sum(hop.seconds for hop in facts.path) == pytest.approx(optimum["R"])
    assert sum(x.cost for x in (*facts.operators, *facts.streams)) == pytest.approx(optimum["C"])
    assert max(op.downtime_s for op in facts.operators) == pytest.approx(optimum["T_D"])
