"""The local search for problems that are too large for a proof."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings

from leeward.policies.edrp.exact import search
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.methods.near import is_large, serving, solve_near
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Optimal, Unknown
from tests.helpers.solve_builders import chain_document, problems, reference_document

LOADED = {"current": {"source": {"n0": 1}, "work": {"n1": 1}, "sink": {"n2": 1}}}


@settings(max_examples=40)
@given(problems())
def test_it_finds_nothing_better_than_the_optimum_and_nothing_worse_than_the_present_one(problem):
    found, best = solve_near(problem), solve(problem, method="exact", reasons=False)
    if isinstance(found, Unknown):
        assert problem.current is None or verify(problem, problem.current)
        return
    assert isinstance(found, Feasible) and found.bound is None and not verify(problem, found.deployment)
    assert isinstance(best, Optimal) and found.metrics.F >= best.metrics.F - 1e-9
    if problem.current is not None and not verify(problem, problem.current):
        assert found.metrics.F <= evaluate(problem, problem.current).F
    assert solve_near(problem) == found or solve_near(problem).deployment == found.deployment


def test_operators_that_cannot_serve_their_load_get_replicas_first():
    document = chain_document(nodes=3, k=4) | LOADED
    document["operators"][0]["source_rate"] = 290
    document["streams"] = [{**stream, "rate": 290} for stream in document["streams"]]
    document["operators"][2] |= {"k": 2}
    document["bounds"] = {"r": 5.0, "c": 20, "d": 1000}
    problem = problem_from_json(document)
    assert {name: sum(counts.values()) for name, counts in serving(problem, problem.current).items()} == {
        "source": 1, "work": 2, "sink": 2,
    }  # fmt: skip
    found = solve_near(problem)
    assert isinstance(found, Feasible) and found.metrics.R <= 5.0


def test_where_no_room_is_left_there_is_no_answer():
    document = chain_document(nodes=1, k=4)
    document["streams"] = [{**stream, "rate": 500} for stream in document["streams"]]
    document["nodes"] = [{"id": "n0", "res": 3}]
    assert isinstance(solve_near(problem_from_json(document)), Unknown)


def test_the_services_method_takes_it_where_the_programme_would_be_too_large():
    small, large = (problem_from_json(reference_document(nodes, k)) for nodes, k in ((4, 2), (60, 4)))
    assert not is_large(small) and is_large(large)
    assert solve(large, method="both", time_limit_s=2.0).effort.method == "near"
    assert solve(small, method="both", time_limit_s=2.0).effort.method == "both"


def test_searches_beside_each_other_find_what_they_find_alone():
    some = [problem_from_json(reference_document(nodes, 2)) for nodes in (4, 4, 5, 5)]
    alone = [solve(problem, method="exact", time_limit_s=30.0, gap=0.05) for problem in some]
    with ThreadPoolExecutor(4) as threads:
        beside = list(threads.map(lambda problem: solve(problem, method="exact", time_limit_s=30.0, gap=0.05), some))
    assert [one.metrics.F for one in beside] == [one.metrics.F for one in alone]


def test_of_threads_that_begin_at_once_one_compiles(monkeypatch):
    compiled = []
    monkeypatch.setattr(search, "improve", lambda *_: (time.sleep(0.05), compiled.append(True)))
    search._compile_proof.cache_clear()
    search._compile_near.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: search.warm_up(), range(4)))
    assert compiled == [True]


def test_its_time_is_limited():
    problem = problem_from_json(reference_document(60, 4))
    now = iter(float(number) for number in range(1000))
    found = solve_near(problem, time_limit_s=1.0, clock=lambda: next(now))
    assert isinstance(found, Feasible | Unknown)
