"""The compact programme: its size, the stored optima, other solvers, limits."""

# ruff: noqa: SIM300  (F, R and C are metrics, not constants)

from __future__ import annotations

import pytest

from leeward.core.fields import FieldError
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.milp import compact
from leeward.policies.edrp.milp import programme as milp
from leeward.policies.edrp.milp.ilp import variable_count
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import verify
from leeward.policies.edrp.problem.latency import MM1, Table
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Node, Operator, Stream, Weights
from tests.helpers.solve_builders import chain_document, instance_document, reference_document


def test_its_binaries_grow_with_the_nodes_and_not_with_their_power():
    for n, most in ((8, 500), (24, 1_400), (50, 2_800)):
        problem = problem_from_json(reference_document(n, 4))
        placements = [compact.placements_of(problem, i) for i in range(len(problem.operators))]
        assert sum(p.length for p in placements) < most < variable_count(problem) / 1_000


def test_a_stored_optimum():
    document = instance_document("d-")
    outcome = solve(problem_from_json(document), method="compact")
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)


@pytest.mark.parametrize("solver", milp.milp_solvers())
@pytest.mark.parametrize("method", ["ilp", "compact"])
def test_every_installed_solver_finds_the_optimum(solver, method):
    document = chain_document() | {"link_cost": 0.01}
    outcome = solve(problem_from_json(document), method=method, solver=solver, time_limit_s=60)
    reference = solve(problem_from_json(document), method="exact")
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(reference.metrics.F, abs=3e-6)


def test_a_time_limit_that_is_too_short_is_not_a_proof():
    problem = problem_from_json(reference_document(8, 3) | {"bounds": {"r": 1, "c": 40, "d": 10}})
    outcome = solve(problem, method="compact", time_limit_s=0.01)
    assert isinstance(outcome, Unknown | Feasible)


def test_infeasible_and_too_large():
    assert isinstance(compact.solve_compact(problem_from_json(instance_document("e-"))), Infeasible)
    slow = chain_document() | {"bounds": {"r": 0.001, "c": 20, "d": 1}}
    assert "source" in compact.solve_compact(problem_from_json(slow)).why[0]


def test_rows_beyond_the_limit_are_not_built(monkeypatch):
    monkeypatch.setattr(compact, "ROW_LIMIT", 10)
    outcome = compact.solve_compact(problem_from_json(chain_document()))
    assert isinstance(outcome, Unknown) and "18 rows" in outcome.why


def test_without_the_coupling_it_is_still_exact(monkeypatch):
    document = instance_document("d-")
    monkeypatch.setattr(compact, "COUPLING_LIMIT", 0)
    outcome = solve(problem_from_json(document), method="compact")
    assert outcome.metrics.F == pytest.approx(document["optimum"]["F"], abs=3e-6)
    assert verify(problem_from_json(document), outcome.deployment) == ()


def test_a_solver_that_is_not_installed_is_refused_with_those_that_are():
    with pytest.raises(FieldError, match="HIGHS") as caught:
        solve(problem_from_json(chain_document()), method="compact", solver="ABACUS")
    assert caught.value.field == "solver"


def test_restricted_carries_a_bound_of_the_full_problem():
    document = instance_document("b-")
    outcome = solve(problem_from_json(document), method="restricted")
    assert isinstance(outcome, Feasible)
    assert 0 < outcome.bound <= document["optimum"]["F"] + 3e-6
    assert outcome.gap is not None


def test_a_programme_that_the_solvers_presolve_calls_infeasible():
    """Found by a random test: with its presolve HiGHS 1.15 finds no solution, without it the optimum."""

    def operator(name: str, **options) -> Operator:
        return Operator(id=name, **{"k": 2, "curve": MM1(mu=333.0)} | options)

    rows = ((0.0, 0.0, 0.0, 0.05), (0.012089044657546547, 0.0, 0.0, 0.0), (0.0,) * 4, (0.0,) * 4)
    rates = {("op0", "op1"): 0.0, ("op0", "op2"): 10.0, ("op1", "op3"): 0.0, ("op2", "op3"): 1.0}
    problem = Problem(
        nodes=tuple(
            Node(id=f"n{u}", res=res, speedup=0.5 if u == 3 else 1.0) for u, res in enumerate((3.0, 2.0, 4.0, 3.0))
        ),
        delay_s=rows,
        operators=(
            operator("op0", k=1, res=2.0, source_rate=10.0, allowed=("n2", "n3")),
            operator("op1", cost=0.0, allowed=("n0",)),
            operator("op2", cost=2.0, res=2.0, allowed=("n3", "n0", "n2")),
            operator("op3", curve=Table(values_s=(0.01328725664183153, 0.010368593245956716)), cost=0.0),
        ),
        streams=tuple(Stream(source=u, target=v, rate=rate) for (u, v), rate in rates.items()),
        weights=Weights(r=0.0, c=1.0, d=0.0),
        bounds=Bounds(r=0.08, c=10.0, d=0.8),
        link_cost=1.0,
        sync_s=0.25,
    )
    outcome = solve(problem, method="compact", reasons=False)
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(0.7, abs=3e-6)


@pytest.mark.parametrize(
    ("tasks", "bound", "placed"),
    [
        (None, 0.8, {"n0": 1, "n1": 1}),  # all of the state takes longer than the bound, half of it does not
        ({}, 1.5, {"n0": 2}),  # two nodes without a task make one restart, not two
        ({"work": {"n1": 1}}, 1.5, {"n0": 1, "n1": 1}),
    ],
)
def test_the_live_price_is_that_of_the_definitions(tasks, bound, placed):
    document = chain_document(k=2) | {
        "weights": {"r": 0.2, "c": 0.1, "d": 0.7},
        "bounds": {"r": 0.2, "c": 20, "d": bound},
        "downtime_model": "live",
        "live": {"constant": 0.05, "per_byte": 1e-6, "tasks": tasks},
        "current": {"source": {"n0": 1}, "work": placed, "sink": {"n0": 1}},
    }
    outcome = solve(problem_from_json(document), method="compact")
    reference = solve(problem_from_json(document), method="exact")
    assert isinstance(outcome, Optimal)
    assert outcome.metrics.F == pytest.approx(reference.metrics.F, abs=3e-6)
