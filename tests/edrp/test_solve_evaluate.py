"""The metrics against the stored optima and against numbers worked out by hand."""

# ruff: noqa: SIM300  (F, R and C are metrics, not constants)

from __future__ import annotations

import pytest

from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.downtime import downtime_of, moved_share
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from tests.helpers.solve_builders import chain_document, instance_document

SOLVED = ("a-", "b-", "c-", "d-", "f-", "g-", "h-")


@pytest.mark.parametrize("name", SOLVED)
def test_the_stored_optima_have_the_stated_metrics(name):
    document = instance_document(name)
    optimum = document["optimum"]
    problem = problem_from_json(document)
    metrics = evaluate(problem, optimum["deployment"])
    for key in ("F", "R", "C", "T_D"):
        assert getattr(metrics, key) == pytest.approx(optimum[key], rel=1e-12, abs=1e-12)
    assert verify(problem, optimum["deployment"]) == ()


def test_the_infeasible_instance_breaks_its_bound_wherever_the_others_operators_lie():
    document = instance_document("e-")
    problem = problem_from_json(document)
    together = {op.id: {(op.allowed or ("n1",))[0]: 1} for op in problem.operators}
    kinds = {violation.kind for violation in verify(problem, together)}
    assert "response time" in kinds and "capacity" in kinds


def test_metrics_by_hand():
    document = chain_document() | {"link_cost": 0.01}
    document["operators"][1]["cost"] = 2
    problem = problem_from_json(document)
    metrics = evaluate(problem, {"source": {"n0": 1}, "work": {"n0": 1, "n2": 1}, "sink": {"n1": 1}})
    assert metrics.R == pytest.approx(1 / 200 + 0.02 + 1 / 100 + 0.01 + 1 / 100)
    assert metrics.C == pytest.approx(1 + 2 * 2 + 1 + 0.01 * (50 + 100))
    assert metrics.T_D == 0
    assert metrics.F == pytest.approx(0.5 * metrics.R / 0.2 + 0.5 * metrics.C / 20)
    assert metrics.parts.response + metrics.parts.cost + metrics.parts.downtime == pytest.approx(metrics.F)


def work_downtime(before: dict, after: dict, **changes: object) -> float:
    problem = problem_from_json(chain_document() | changes)
    return downtime_of(problem).seconds(problem.operators[1], before, after)


def test_generic_downtime_by_hand():
    trip, code = 0.01, 3e5 / 12.5e6
    assert work_downtime({"n0": 1}, {"n0": 1}) == 0
    # a move: the code and the state's upload in parallel, then the download and the start
    state = 1e6 / 12.5e6
    assert work_downtime({"n0": 1}, {"n1": 1}) == pytest.approx(0.25 + trip + state + trip + state + 0.5)
    # a second replica on the same node: no pair of different nodes
    assert work_downtime({"n0": 1}, {"n0": 2}) == 0.25
    # a scale-out gives half of the state to the new node
    assert work_downtime({"n0": 1}, {"n0": 1, "n1": 1}) == pytest.approx(
        0.25 + max(trip + code, trip + state / 2) + trip + state / 2 + 0.5
    )
    # a scale-in: the node that stays runs a replica already
    assert work_downtime({"n0": 1, "n1": 1}, {"n0": 1}) == pytest.approx(0.25 + trip + state / 2 + trip + state / 2)


def test_storm_downtime_by_hand():
    present = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}
    storm = {"downtime_model": "storm", "current": present}
    trip, code, state = 0.01, 9e5 / 12.5e6, 1e6 / 12.5e6
    assert work_downtime({"n0": 1}, {"n0": 1}, **storm) == 0
    # n1 holds the code already
    assert work_downtime({"n0": 1}, {"n1": 1}, **storm) == pytest.approx(0.25 + trip + state + trip + state + 0.5)
    # n2 must fetch it first, and starts two replicas one after the other
    assert work_downtime({"n0": 1}, {"n2": 2}, **storm) == pytest.approx(
        0.25 + trip + code + trip + state + trip + state + 2 * 0.5
    )
    # no pair of different nodes, but everybody restarts in place, and `work` has the most state to swap
    assert work_downtime({"n0": 1}, {"n0": 2}, **storm) == pytest.approx(0.25 + 2 * 0.01 + 0.5)


def test_live_downtime_counts_the_bytes_that_move_and_restarts_where_an_executor_does():
    live = {"downtime_model": "live", "live": {"constant": 0.02, "per_byte": 1e-8}}
    assert work_downtime({"n0": 1}, {"n0": 1}, **live) == 0
    assert work_downtime({"n0": 1}, {"n1": 1}, **live) == pytest.approx(0.02 + 0.01)
    assert work_downtime({"n0": 1}, {"n0": 1, "n1": 1}, **live) == pytest.approx(0.02 + 0.005)
    tasks = live | {"live": live["live"] | {"tasks": {"work": {"n0": 1, "n1": 1}}}}
    present = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}
    restart = tasks | {"downtime_model": "storm", "current": present}
    assert work_downtime({"n0": 1}, {"n0": 1, "n1": 1}, **tasks) == pytest.approx(0.02 + 0.005)
    for after in ({"n0": 2}, {"n2": 1}, {"n0": 1, "n1": 2}):  # an executor has to move there
        priced = work_downtime({"n0": 1}, after, **tasks | {"current": present})
        assert priced == work_downtime({"n0": 1}, after, **restart) > 0.25
    assert moved_share({"n0": 2, "n1": 1}, {"n0": 1, "n1": 2}) == pytest.approx(1 / 3)


def test_every_constraint_is_verified():
    problem = problem_from_json(chain_document())
    good = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}

    def kinds(**changes: dict) -> list[str]:
        return [violation.kind for violation in verify(problem, good | changes)]

    assert kinds() == []
    assert kinds(work={"n0": 2}) == ["capacity"]
    assert kinds(work={"n0": 1, "n1": 1, "n2": 1}) == ["replicas"]
    assert kinds(work={}) == ["replicas"]
    assert kinds(work={"n9": 1}) == ["node not allowed"]
    assert "count below one" in kinds(work={"n0": -1, "n1": 2})
    assert kinds(ghost={"n0": 1}) == ["unknown operator"]
    tight = problem_from_json(chain_document() | {"bounds": {"r": 0.01, "c": 1, "d": 1}})
    assert [violation.kind for violation in verify(tight, good)] == ["response time", "cost"]


def test_downtime_is_bounded_even_when_it_has_no_weight():
    present = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}
    problem = problem_from_json(chain_document() | {"current": present, "bounds": {"r": 0.2, "c": 20, "d": 0.1}})
    assert verify(problem, present) == ()
    assert [v.kind for v in verify(problem, present | {"work": {"n1": 1}})] == ["downtime"]


def test_a_replica_that_cannot_keep_up_is_a_violation():
    document = chain_document()
    document["operators"][1]["mu"] = 90
    problem = problem_from_json(document)
    assert [v.kind for v in verify(problem, {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}})] == [
        "response time"
    ]
