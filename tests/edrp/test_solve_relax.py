"""Sentences that say why there is no solution."""

from __future__ import annotations

import pytest

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.outcome import Infeasible
from tests.helpers.solve_builders import chain_document, instance_document

pytestmark = pytest.mark.timeout(600)  # the first call on a machine compiles


def reasons(method: str = "exact", **changes: object) -> Infeasible:
    outcome = solve(problem_from_json(chain_document() | changes), method=method)
    assert isinstance(outcome, Infeasible)
    return outcome


@pytest.mark.parametrize("method", ["exact", "ilp", "compact"])
def test_every_method_says_which_bound_and_by_how_much(method):
    # 5 + 20 + 10 ms and one hop of 10 ms, as a node holds two; a second replica of work saves as much as it costs
    found = reasons(method, bounds={"r": 0.04, "c": 20, "d": 10})
    (change,) = found.relaxations[0].changes
    assert change.field == "bounds.r"
    assert change.needed == pytest.approx(0.045, rel=1e-6)
    assert found.why == ("R_max would have to be 0.045 s; it is 0.04: raise it by 0.005 s",)


def test_one_way_out_for_each_bound_that_suffices_alone():
    # all on n0: one replica each costs 3 $/h and takes 35 ms, two of work cost 4 $/h and take 25 ms
    document = chain_document(nodes=2)
    document["nodes"][0]["res"] = 4
    found = reasons(nodes=document["nodes"], delay=document["delay"], bounds={"r": 0.032, "c": 3.5, "d": 10})
    fields = [[change.field for change in relaxation.changes] for relaxation in found.relaxations]
    assert fields == [["bounds.r"], ["bounds.c"]]
    assert "R_max would have to be 0.035 s; it is 0.032" in found.why[0]
    assert "C_max would have to be 4 $/h; it is 3.5: raise it by 0.5 $/h" in found.why[1]


def test_two_bounds_that_both_must_be_raised():
    found = reasons(bounds={"r": 0.02, "c": 2.5, "d": 10})
    (relaxation,) = found.relaxations
    assert [change.field for change in relaxation.changes] == ["bounds.r", "bounds.c"]
    assert ", and C_max" in found.why[0]


def test_an_operator_that_cannot_keep_up_is_named_with_the_replicas_it_needs():
    document = chain_document(k=1)
    document["operators"][1]["mu"] = 45
    found = reasons(operators=document["operators"])
    assert found.relaxations[0].changes[0].field == "operators.work.k"
    assert "k of work would have to be 3 replicas; it is 1" in found.why[0]


def test_an_operator_that_never_keeps_up_is_named():
    document = chain_document()
    del document["operators"][1]["mu"]
    document["operators"][1]["latency"] = [None, None]
    found = reasons(operators=document["operators"])
    assert found.why[0].startswith("work cannot keep up with 100 tuples/s")


def test_capacity_is_counted_in_units_and_place():
    document = chain_document(nodes=2, k=2)
    document["operators"][1]["mu"] = 60  # two replicas at least: 2 + 3 + 2 units
    for operator, units in zip(document["operators"], (2, 1.5, 2), strict=True):
        operator["res"] = units
    nodes = [{"id": "n0", "res": 4}, {"id": "n1", "res": 2}]
    found = reasons(nodes=nodes, operators=document["operators"], delay=document["delay"])
    extra = {c.field: c.needed - c.now for c in found.relaxations[0].changes}
    assert sum(extra.values()) == pytest.approx(1.0)
    assert "capacity" in found.why[0] and "work" in found.why[0]


def test_the_stored_infeasible_instance():
    outcome = solve(problem_from_json(instance_document("e-")), method="exact")
    assert isinstance(outcome, Infeasible)
    assert outcome.relaxations and "would have to be" in outcome.why[0]
    print(outcome.why)
