# ruff: noqa: SIM300  (F is a metric, not a constant)
"""What the exact search needs for large problems: a local search, time limits within a step, one compilation."""

from __future__ import annotations

import ast
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leeward.policies.edrp.exact import bounds
from leeward.policies.edrp.exact import search as exact
from leeward.policies.edrp.exact.arrays import arrays_of
from leeward.policies.edrp.exact.bounds import lay_out
from leeward.policies.edrp.exact.kernel_improve import draft_of, improve, refresh, settle, worth
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Optimal
from leeward.policies.edrp.problem.problem import Problem
from tests.helpers.solve_builders import chain_document, instance_document, reference_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)


def positions(problem: Problem, deployment) -> tuple[np.ndarray, np.ndarray]:
    nodes = np.zeros((len(problem.operators), max(op.k for op in problem.operators)), dtype=np.int64)
    size = np.zeros(len(problem.operators), dtype=np.int64)
    for i, op in enumerate(problem.operators):
        placed = sorted(problem.node_index[u] for u, count in deployment[op.id].items() for _ in range(count))
        nodes[i, : len(placed)], size[i] = placed, len(placed)
    return nodes, size


def deployment_of(problem: Problem, nodes: np.ndarray, size: np.ndarray):
    names = [node.id for node in problem.nodes]
    chosen = [[names[u] for u in nodes[i, : size[i]]] for i in range(len(size))]
    return {op.id: {u: chosen[i].count(u) for u in chosen[i]} for i, op in enumerate(problem.operators)}


def wide_document(nodes: int = 40, *, traffic: float = 0.02) -> dict:
    """The reference application on random spots, three replicas of each operator at most."""
    document = reference_document(nodes, 3)
    spots = np.random.default_rng(3).random((nodes, 2)) * 0.06
    document["delay"] = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1)).tolist()
    return document | {"link_cost": traffic, "bounds": {"r": 0.3, "c": 40, "d": 10}}


@pytest.mark.parametrize("name", ["a-", "b-", "c-", "f-", "g-", "h-"])
def test_the_compiled_value_of_a_deployment_is_that_of_the_definitions(name):
    document = instance_document(name)
    problem = problem_from_json(document)
    for deployment in (document["optimum"]["deployment"], document.get("current")):
        if deployment is None or verify(problem, deployment):
            continue
        p = arrays_of(problem)
        draft = draft_of(p, *positions(problem, deployment), 10)
        for i in range(len(problem.operators)):
            settle(p, draft, i)
            refresh(p, draft, i)  # again for each edge; the last one counts
        assert worth(p, draft) == pytest.approx(evaluate(problem, deployment).F, abs=1e-12)


@pytest.mark.parametrize("model", ["generic", "storm"])
def test_the_local_search_ends_no_worse_and_within_every_constraint(model):
    document = wide_document(12) | {"downtime_model": model, "weights": {"r": 0.4, "c": 0.4, "d": 0.2}}
    names = [op["id"] for op in document["operators"]]
    document["current"] = {name: {f"n{at}": 1} for at, name in enumerate(names)}
    problem = problem_from_json(document)
    p = arrays_of(problem)
    draft = draft_of(p, *positions(problem, problem.current), 100_000)
    improve(p, draft)
    found = deployment_of(problem, draft.nodes, draft.size)
    assert verify(problem, found) == ()
    assert evaluate(problem, found).F == pytest.approx(float(draft.value[0]), abs=1e-12)
    assert draft.value[0] < evaluate(problem, problem.current).F
    assert draft.budget[0] > 0  # it ended by itself: nothing close is better


def test_the_local_search_stops_when_its_budget_is_gone():
    problem = problem_from_json(wide_document(12))
    p = arrays_of(problem)
    spread = {op.id: {f"n{at}": 1} for at, op in enumerate(problem.operators)}
    draft = draft_of(p, *positions(problem, spread), 5)
    improve(p, draft)
    assert draft.budget[0] > -20
    assert verify(problem, deployment_of(problem, draft.nodes, draft.size)) == ()


def test_a_search_without_budget_leaves_its_rest_in_the_bound():
    document = wide_document()
    problem = problem_from_json(document)
    whole = solve(problem, method="exact")
    assert isinstance(whole, Optimal)
    ticks = itertools.count()
    cut = exact.solve_exact(problem, time_limit_s=12.5, clock=lambda: next(ticks) * 1.0)
    assert isinstance(cut, Feasible | Optimal)
    assert verify(problem, cut.deployment) == ()
    assert 0 < cut.bound <= whole.metrics.F + 1e-9 <= cut.metrics.F + 2e-9


def test_room_beside_spread_replicas_makes_the_bound_of_traffic_tighter(monkeypatch):
    document = wide_document(60)
    for op in document["operators"]:
        op["mu"] = min(op["mu"], 110) if op["k"] > 1 else op["mu"]  # a single replica is slow
    problem = problem_from_json(document)
    p = arrays_of(problem)
    least, alone = exact.downtime_bounds(p)
    counted = lay_out(p, least <= p.d_max, alone <= p.d_max)[0].value
    monkeypatch.setattr("leeward.policies.edrp.exact.bounds.SLOTS", 0)
    assert counted > lay_out(p, least <= p.d_max, alone <= p.d_max)[0].value + 1e-3
    monkeypatch.undo()
    assert counted <= solve(problem, method="exact").metrics.F


def test_classes_by_the_replicas_of_an_operator_beside_the_spine_make_the_bound_tighter(monkeypatch):
    document = wide_document(60, traffic=0.0) | {"bounds": {"r": 0.175, "c": 40, "d": 10}}
    document["streams"] = [s for s in document["streams"] if s["from"] != "data_source" or s["to"] != "metronome"]
    for op in document["operators"]:
        op["mu"] = 100 if op["id"] == "compute_route_id" else op["mu"]
        op["mu"] = 110 if op["id"] == "metronome" else op["mu"]
    problem = problem_from_json(document)
    p = arrays_of(problem)
    least, alone = exact.downtime_bounds(p)
    [whole] = lay_out(p, least <= p.d_max, alone <= p.d_max)
    expected = solve(problem, method="exact")
    monkeypatch.setattr("leeward.policies.edrp.exact.bounds.SPLIT_FROM", 1)
    first, second = lay_out(p, least <= p.d_max, alone <= p.d_max)
    assert whole.value < first.value <= second.value
    assert (first.sizes ^ second.sizes).sum() == p.k.max() + 1 and not (first.sizes & second.sizes).all()
    found = solve(problem, method="exact")
    assert isinstance(found, Optimal) and found.metrics.F == pytest.approx(expected.metrics.F, abs=1e-9)


def test_looking_for_classes_ends_when_its_time_is_up(monkeypatch):
    monkeypatch.setattr("leeward.policies.edrp.exact.bounds.SPLIT_FROM", 1)
    p = arrays_of(problem_from_json(wide_document(10)))
    least, alone = exact.downtime_bounds(p)
    looks = []
    [whole] = lay_out(p, least <= p.d_max, alone <= p.d_max, in_time=lambda: bool(looks.append(1)))
    assert len(looks) == 2 and whole.sizes.all()


def test_looking_for_spines_ends_with_a_bound_that_prunes_everything(monkeypatch):
    monkeypatch.setattr("leeward.policies.edrp.exact.bounds.SPLIT_FROM", 1)
    problem = problem_from_json(wide_document(10))
    p = arrays_of(problem)
    least, alone = exact.downtime_bounds(p)
    built = []
    tree_along = bounds.tree_along
    monkeypatch.setattr(bounds, "tree_along", lambda *about: built.append(about) or tree_along(*about))
    [first] = lay_out(p, least <= p.d_max, alone <= p.d_max, enough=0.0)
    assert len(built) == 1
    assert first.value <= max(layout.value for layout in lay_out(p, least <= p.d_max, alone <= p.d_max))
    assert len(built) > 2


SEARCHES = """
import importlib, json, pkgutil, sys
import leeward.policies.edrp.exact as rooms
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json
for document in json.load(sys.stdin):
    solve(problem_from_json(document), method="exact")
names = [m.name for m in pkgutil.iter_modules(rooms.__path__) if m.name.startswith("kernel_")]
functions = [f for name in names for f in vars(importlib.import_module("leeward.policies.edrp.exact." + name)).values()]
kernels = {f.py_func.__qualname__: f.stats for f in functions if hasattr(f, "signatures")}
print(len(kernels), {name: dict(stats.cache_misses) for name, stats in kernels.items() if stats.cache_misses})
"""


def test_no_function_of_the_exact_search_takes_more_than_eight_parameters():
    folder = Path(exact.__file__).parent
    functions = [
        node
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    counts = {node.name: len(node.args.args) + len(node.args.kwonlyargs) for node in functions}
    assert len(counts) > 60 and {name: count for name, count in counts.items() if count > 8} == {}


def test_after_warming_up_no_search_compiles():
    exact.warm_up()  # what set-up does; its code is on disk then
    lone = chain_document(nodes=1)
    lone["nodes"][0]["res"] = 4
    documents = [lone, wide_document(10), instance_document("c-"), instance_document("d-")]
    done = subprocess.run(
        [sys.executable, "-c", SEARCHES], input=json.dumps(documents), capture_output=True, text=True, check=True
    )
    count, _, compiled = done.stdout.partition(" ")
    assert int(count) > 20
    assert compiled.strip() == "{}"
