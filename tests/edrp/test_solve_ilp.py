"""The literal programme: its size, its outcomes, the stored optima, and that no status is believed."""

# ruff: noqa: SIM300  (F, R and C are metrics, not constants)

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from leeward.core.fields import FieldError
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.milp import ilp
from leeward.policies.edrp.milp import programme as milp
from leeward.policies.edrp.problem.configurations import configuration_count, configurations_of, neighbours
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Effort, Feasible, Infeasible, Optimal, Unknown
from leeward.policies.edrp.problem.problem import Problem
from tests.helpers.solve_builders import chain_document, instance_document, reference_document


def paper_variables(n: int, k: int) -> int:
    """The closed form of the specification, section 2."""
    p = configuration_count(n, k)
    return 4 * p * p + 4 * p * n + n * n + 5 * p + 3 * n


@pytest.mark.parametrize("n", [8, 12, 16, 20, 24])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_variable_count_is_the_papers(n, k):
    assert ilp.variable_count(problem_from_json(reference_document(n, k))) == paper_variables(n, k)


@pytest.mark.parametrize(
    ("n", "k", "thousands"), [(8, 2, 9.4), (12, 2, 37.3), (16, 2, 103.2), (20, 2, 231.6), (24, 2, 453.3),
                              (8, 3, 113.7), (12, 3, 848.7), (8, 4, 994.5)]
)  # fmt: skip
def test_the_closed_form_gives_table_iv(n, k, thousands):
    assert paper_variables(n, k) / 1000 == pytest.approx(thousands, abs=0.1)


def test_the_built_model_has_as_many():
    problem = problem_from_json(reference_document(4, 2))
    model = ilp.make_model(problem, configurations_of(problem))
    assert model.variables == paper_variables(4, 2) == ilp.variable_count(problem)


@pytest.mark.parametrize("name", ["a-", "d-"])  # the others: tests/edrp/test_solve_random_agree.py, slow
def test_the_stored_optima(name):
    document = instance_document(name)
    problem = problem_from_json(document)
    outcome = solve(problem, method="ilp")
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)
    assert outcome.gap < 3e-6
    assert verify(problem, outcome.deployment) == ()


def test_the_stored_infeasible_instance():
    assert isinstance(solve(problem_from_json(instance_document("e-")), method="ilp"), Infeasible)


@pytest.mark.parametrize("name", ["b-", "c-", "d-"])
def test_the_stored_restricted_optima(name):
    document = instance_document(name)
    outcome = solve(problem_from_json(document), method="restricted")
    assert isinstance(outcome, Feasible)
    assert outcome.metrics.F == pytest.approx(document["optimum"]["redrp"]["F"], abs=3e-6)


@pytest.mark.parametrize(("name", "variables"), [("g-", 34_359_950), ("h-", 400_090_088_802)])
def test_the_large_instances_cannot_be_built_and_say_so(name, variables):
    outcome = solve(problem_from_json(instance_document(name) | {"current": None}), method="ilp")
    assert isinstance(outcome, Unknown)
    assert str(variables) in outcome.why
    assert outcome.effort.variables == variables


def test_many_paths_are_written_with_finish_times(monkeypatch):
    document = instance_document("d-")
    monkeypatch.setattr(ilp, "PATH_LIMIT", 2)
    problem = problem_from_json(document)
    assert ilp.source_to_sink_paths(problem, 2) is None
    assert len(ilp.source_to_sink_paths(problem, 100)) == 6
    assert solve(problem, method="ilp").metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)


def model_with_values(document: dict, values: list) -> ilp.Model:
    problem = problem_from_json(document)
    made = ilp.make_model(problem, configurations_of(problem))
    for x, value in zip(made.x, values, strict=True):
        x.value = value
    return made


def conclude(model: ilp.Model, answer: milp.Answer):
    return milp.conclude(model.problem, ilp.decode(model), answer, Effort(method="ilp", seconds=1.0), 0.0)


def test_a_vector_of_zeros_is_not_a_solution():
    model = model_with_values(chain_document(), [np.zeros(3), np.zeros(9), np.zeros(3)])
    for status in ("optimal", "user_limit", "optimal_inaccurate"):
        outcome = conclude(model, milp.Answer(status=status, bound=0.0))
        assert isinstance(outcome, Unknown)


def test_a_deployment_that_breaks_a_constraint_is_not_a_solution():
    first = np.eye(9)[0]
    model = model_with_values(chain_document(), [np.eye(3)[0], first, np.eye(3)[0]])  # three on n0, capacity 2
    outcome = conclude(model, milp.Answer(status="optimal", bound=0.1))
    assert isinstance(outcome, Unknown)


def test_optimal_needs_a_bound_that_proves_it():
    model = model_with_values(chain_document(), [np.eye(3)[0], np.eye(9)[0], np.eye(3)[1]])
    value = evaluate(model.problem, ilp.decode(model)).F
    for bound, kind in ((value, Optimal), (value * 0.9, Feasible), (None, Feasible)):
        outcome = conclude(model, milp.Answer(status="optimal", bound=bound))
        assert type(outcome) is kind
    assert outcome.gap is None


def with_present(**changes: object) -> Problem:
    present = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}
    return problem_from_json(chain_document() | {"current": present} | changes)


def test_without_a_solution_the_present_deployment_is_kept(monkeypatch):
    nothing = SimpleNamespace(status="user_limit", bound=None)
    monkeypatch.setattr(ilp, "run", lambda *_, **__: nothing)
    problem = with_present()
    outcome = solve(problem, method="ilp", time_limit_s=1)
    assert isinstance(outcome, Feasible)
    assert outcome.deployment == problem.current
    assert outcome.bound is None and outcome.gap is None
    assert "present deployment" in outcome.why


def test_a_present_deployment_that_breaks_a_bound_is_not_kept(monkeypatch):
    monkeypatch.setattr(ilp, "run", lambda *_, **__: SimpleNamespace(status="user_limit", bound=None))
    outcome = solve(with_present(bounds={"r": 0.001, "c": 20, "d": 10}), method="ilp", time_limit_s=1)
    assert isinstance(outcome, Unknown)


def test_a_change_must_be_worth_its_downtime():
    # moving the sink to n0's neighbour-free place saves 10 ms, which is little beside the downtime
    apart = {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n2": 1}}
    costly = with_present(current=apart, weights={"r": 0.1, "c": 0.1, "d": 0.8}, bounds={"r": 0.2, "c": 20, "d": 1})
    free = with_present(current=apart, weights={"r": 0.5, "c": 0.5, "d": 0})
    assert solve(costly, method="ilp").deployment == apart
    assert solve(free, method="ilp").deployment != apart


def test_neighbours_add_remove_or_move_one_replica():
    found = neighbours((0, 1), (0, 1, 2), 3)
    assert set(found) == {
        (0,), (1,),
        (0, 1), (0, 0), (1, 1), (0, 2), (1, 2),
        (0, 0, 1), (0, 1, 1), (0, 1, 2),
    }  # fmt: skip
    assert neighbours((0, 1), (0, 1), 2) == [(0,), (1,), (0, 0), (0, 1), (1, 1)]
    assert neighbours((0,), (1, 2), 1) == [(1,), (2,)]
    assert neighbours((0, 0, 0), (1,), 1) == []


def test_the_restricted_problem_needs_a_present_deployment():
    with pytest.raises(FieldError, match="present deployment"):
        solve(problem_from_json(chain_document()), method="restricted")


def test_the_restricted_problem_without_any_neighbour_is_unknown():
    document = chain_document()
    document["operators"][1] |= {"allowed": ["n2"], "k": 1}
    document["current"] = {"source": {"n0": 1}, "work": {"n0": 3}, "sink": {"n1": 1}}
    outcome = solve(problem_from_json(document), method="restricted")
    assert isinstance(outcome, Unknown)


def test_an_unknown_method_is_refused():
    with pytest.raises(FieldError, match="is not a method"):
        solve(problem_from_json(chain_document()), method="guess")
