# ruff: noqa: SIM300  (F, R and C are metrics, not constants)
"""The branch and bound: the stored optima, its outcomes, and the parts it is made of."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from leeward.policies.edrp.exact import search as exact
from leeward.policies.edrp.exact.arrays import arrays_of, units
from leeward.policies.edrp.exact.bounds import lay_out, prepare
from leeward.policies.edrp.exact.kernel_downtime import config_seconds, least_seconds
from leeward.policies.edrp.exact.tree import longest_paths, tree_along
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.downtime import downtime_of
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal, Unknown
from tests.helpers.solve_builders import chain_document, instance_document, reference_document, settled_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", ["a-", "b-", "c-", "d-", "f-", "g-", "h-"])
def test_the_stored_optima(name):
    document = instance_document(name)
    problem = problem_from_json(document)
    outcome = solve(problem, method="exact")
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)
    assert outcome.gap < 3e-6
    assert verify(problem, outcome.deployment) == ()


def test_the_stored_infeasible_instance():
    assert isinstance(solve(problem_from_json(instance_document("e-")), method="exact"), Infeasible)


def ticking(step_s: float):
    """A clock that goes on by a fixed step at each look."""
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def test_out_of_time_it_gives_the_best_so_far_and_an_honest_bound():
    document = instance_document("g-")
    outcome = exact.solve_exact(problem_from_json(document), time_limit_s=0.5, clock=ticking(1.0))
    assert isinstance(outcome, Feasible)
    assert 0 < outcome.bound <= document["optimum"]["F"] + 1e-9
    assert outcome.metrics.F >= document["optimum"]["F"] - 1e-9
    assert outcome.gap > 0


def test_out_of_time_without_a_deployment_it_knows_nothing_but_a_bound(monkeypatch):
    monkeypatch.setattr(exact, "beam", lambda *_: None)
    document = instance_document("a-")
    outcome = exact.solve_exact(problem_from_json(document), time_limit_s=0.5, clock=ticking(1.0))
    assert isinstance(outcome, Unknown)
    assert outcome.bound <= document["optimum"]["F"]


def test_the_place_of_a_pinned_operator_is_held_for_it():
    document = chain_document(nodes=4)
    document["nodes"][0]["res"] = 1
    document["operators"][2]["allowed"] = ["n0"]  # everybody would like to be there
    p = arrays_of(problem_from_json(document))
    assert p.room[0] == pytest.approx(0, abs=1e-6) and p.room_units[0] == 0
    assert p.full[0] == pytest.approx(1) and list(p.held) == [0, 0, 1]
    outcome = solve(problem_from_json(document), method="exact")
    assert isinstance(outcome, Optimal) and outcome.deployment["sink"] == {"n0": 1}


def test_a_gap_is_allowed_for():
    document = instance_document("f-")
    outcome = solve(problem_from_json(document), method="exact", gap=0.05)
    assert isinstance(outcome, Optimal)
    assert outcome.gap <= 0.05 + 1e-6
    assert outcome.bound <= document["optimum"]["F"] + 1e-9


def test_the_present_deployment_is_kept_when_nothing_is_worth_its_downtime():
    document = settled_document()
    outcome = solve(problem_from_json(document), method="exact")
    assert isinstance(outcome, Optimal)
    assert outcome.deployment == document["current"] and outcome.metrics.T_D == 0


@pytest.mark.parametrize("tasks", [None, {}, {"work": {"n0": 1, "n1": 2, "n2": 1}}], ids=["any", "none", "some"])
@pytest.mark.parametrize("model", ["generic", "storm", "live"])
def test_the_compiled_downtime_is_that_of_the_definitions(model, tasks):
    document = chain_document(nodes=4, k=3) | {
        "downtime_model": model,
        "current": {"source": {"n0": 1}, "work": {"n0": 1, "n1": 2}, "sink": {"n1": 1}},
        "live": {"constant": 0.02, "per_byte": 1e-8, "tasks": tasks},
    }
    document["nodes"][2] |= {"t_spawn": 0.1, "ds_up": 0.02, "r_up": 5e6, "r_down": 2e6}
    problem = problem_from_json(document)
    p, strategy = arrays_of(problem), downtime_of(problem)
    work = problem.operators[1]
    for size in (1, 2, 3):
        for chosen in itertools.combinations_with_replacement(range(4), size):
            after = {f"n{u}": chosen.count(u) for u in chosen}
            expected = strategy.seconds(work, problem.current["work"], after)
            assert config_seconds(p, 1, np.array(chosen), size) == pytest.approx(expected, abs=1e-12)
            for u in set(chosen):
                assert least_seconds(p, 1, u, chosen.count(u), size) <= expected + 1e-12


def test_units_are_exact_for_round_numbers_and_never_too_strict_else():
    document = chain_document()
    for node, res in zip(document["nodes"], (2, 2.5, 7), strict=True):
        node["res"] = res
    document["operators"][1]["res"] = 0.5
    rooms, demands = units(problem_from_json(document))
    assert list(rooms) == [4, 5, 6] and list(demands) == [2, 1, 2]  # no more than all could use
    document["operators"][1]["res"] = 0.123456
    rooms, demands = units(problem_from_json(document))
    assert max(rooms) <= 33
    measure = 3.0 / 32
    assert demands[1] <= 0.123456 / (0.9 * measure) and rooms[0] >= 2 / (1.1 * measure)


def test_the_tree_fixes_the_spine_first_and_side_operators_when_they_are_due():
    problem = problem_from_json(reference_document(5, 2))
    p = arrays_of(problem)
    names = [op.id for op in problem.operators]
    paths = [path.operators for path in longest_paths(p, 0.01, 4)]
    assert len(paths) == len(set(paths)) == 3
    tree = tree_along(p, next(path for path in paths if names.index("metronome") not in path))
    fixed = [names[i] for i in tree.order]
    assert fixed.index("metronome") == fixed.index("count_by_window") + 1
    for child, parent in enumerate(tree.parent):
        assert parent == -1 or tree.level[parent] < tree.level[child]


@pytest.mark.parametrize("name", ["a-", "f-", "h-"])
def test_the_root_bound_is_below_the_optimum_and_not_idle(name):
    document = instance_document(name)
    p = arrays_of(problem_from_json(document))
    least, alone = exact.downtime_bounds(p)
    some, all_there = np.isfinite(least), np.isfinite(alone)
    layout = lay_out(p, some, all_there)[0]
    root = prepare(p, layout, some, all_there).root(p)
    assert root >= layout.value
    assert 0.8 * document["optimum"]["F"] < root <= document["optimum"]["F"]


def test_intervals_of_downtime_cover_everything_once():
    p = arrays_of(problem_from_json(instance_document("c-")))
    least, alone = exact.downtime_bounds(p)
    found = list(exact.intervals(p, least, alone))
    assert len(found) > 1
    for before, after in itertools.pairwise(found):
        assert before.low <= before.high < after.low
    values = alone[np.isfinite(alone) & (alone > 0)]
    assert found[0].low <= values.min()
    assert found[-1].high >= p.d_max
    for value in values[values <= p.d_max]:
        assert sum(one.low <= value <= one.high for one in found) == 1


@pytest.mark.slow
def test_it_agrees_with_the_literal_programme_on_the_reference_application():
    rng = np.random.default_rng(7)
    for _ in range(2):
        document = reference_document(4, 2)
        for node in document["nodes"]:
            node["res"] = 3
        spots = rng.random((4, 2)) * 0.05
        document["delay"] = [[float(np.hypot(*(a - b))) if a is not b else 0.0 for b in spots] for a in spots]
        document["link_cost"] = 0.01
        problem = problem_from_json(document)
        expected, found = solve(problem, method="ilp"), solve(problem, method="exact")
        assert isinstance(found, Optimal) and isinstance(expected, Optimal)
        assert found.metrics.F == pytest.approx(expected.metrics.F, abs=3e-6)
        assert found.metrics == evaluate(problem, found.deployment)
