"""`auto`, the default: never worse than keeping, always with a proven bound, within its time."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import pytest

from leeward.core.fields import FieldError
from leeward.policies.edrp.exact import search as exact
from leeward.policies.edrp.methods import auto, solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal
from leeward.policies.edrp.problem.values import Weights
from tests.helpers.solve_builders import chain_document, instance_document, reference_document, settled_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)


def ticking(step_s: float):
    """A clock that goes on by a fixed step at each look."""
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def test_it_is_the_default():
    assert inspect.signature(solve).parameters["method"].default == "auto"
    outcome = solve(problem_from_json(chain_document()))
    assert isinstance(outcome, Optimal) and outcome.effort.method == "auto"


def test_it_keeps_the_present_deployment_when_nothing_is_worth_a_change():
    document = settled_document()
    outcome = solve(problem_from_json(document))
    assert isinstance(outcome, Optimal)
    assert outcome.deployment == document["current"] and outcome.metrics.T_D == 0


@pytest.mark.parametrize("name", ["b-", "c-", "g-"])
def test_out_of_time_at_once_it_is_no_worse_than_keeping(name):
    document = instance_document(name)
    problem = problem_from_json(document)
    outcome = auto.solve_auto(problem, time_limit_s=1e-9, clock=ticking(1.0))
    assert isinstance(outcome, Feasible | Optimal)
    assert verify(problem, outcome.deployment) == ()
    if not verify(problem, problem.current):
        assert outcome.metrics.F <= evaluate(problem, problem.current).F
    assert 0 < outcome.bound <= document["optimum"]["F"] + 1e-9
    assert outcome.gap == pytest.approx((outcome.metrics.F - outcome.bound) / outcome.metrics.F)


def test_a_gap_ends_the_search_early():
    problem = problem_from_json(instance_document("f-"))
    wide, whole = solve(problem, gap=0.2), solve(problem)
    assert isinstance(wide, Optimal) and isinstance(whole, Optimal)
    assert whole.metrics.F <= wide.metrics.F <= whole.metrics.F / (1 - 0.2)
    assert wide.bound < whole.bound and wide.gap <= 0.2 + 1e-6


def test_the_same_problem_gives_the_same_deployment():
    problem = problem_from_json(instance_document("g-"))
    first, second = solve(problem), solve(problem)
    assert first.deployment == second.deployment and first.bound == second.bound


def test_infeasible_is_infeasible():
    assert isinstance(solve(problem_from_json(instance_document("e-"))), Infeasible)


def test_an_interrupt_is_not_swallowed(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    exact.warm_up()
    monkeypatch.setattr(exact, "beam", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(problem_from_json(reference_document(5, 2)))


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(FieldError, match="auto"):
        solve(problem_from_json(chain_document()), method="guess")


def test_a_deployment_to_start_with_is_never_lost():
    problem = problem_from_json(instance_document("h-"))
    known = solve(problem, time_limit_s=20.0).deployment
    hasty = replace(problem, weights=Weights(r=1.0, c=0.0, d=0.0))
    outcome = auto.solve_auto(hasty, time_limit_s=1e-9, start=known, clock=ticking(1.0))
    assert isinstance(outcome, Feasible | Optimal)
    assert outcome.metrics.R <= evaluate(problem, known).R
    tight = replace(hasty, bounds=replace(problem.bounds, c=evaluate(problem, known).C / 2))
    outcome = auto.solve_auto(tight, time_limit_s=1e-9, start=known, clock=ticking(1.0))
    assert not isinstance(outcome, Feasible | Optimal) or verify(tight, outcome.deployment) == ()
