"""The arrays for planning against the formulas, after random sequences of placing and removing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model import formulas
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Edge
from leeward.policies.edge_cloud.planning.board import Board
from tests.helpers.edge_cloud_builders import case_document, instances
from tests.helpers.edge_cloud_by_hand import Placed, board_of, hosted, keeps, queries

near = pytest.approx
FEW = settings(max_examples=40)


def shuffle(data: st.DataObject, instance: Instance, board: Board) -> Placed:
    """Random steps: a query is placed anywhere, or removed."""
    placed: Placed = {}
    everywhere = st.integers(0, len(instance.fabric.resources) - 1)
    for d, v in data.draw(st.lists(st.sampled_from(queries(instance)), max_size=40)):
        name = instance.dataflows[d].name
        if (d, v) in placed:
            assert board.take(name, v) == placed.pop((d, v))
        else:
            placed[d, v] = data.draw(everywhere)
            board.place(name, v, placed[d, v])
        if data.draw(st.booleans()):
            board.total()  # so that some lengths are fresh, and some are not, when the next step comes
    return placed


def lengths(instance: Instance, placed: Placed, d: int) -> list[float]:
    """By the formulas, for a dataflow that is placed as a whole."""
    dataflow, fabric = instance.dataflows[d], instance.fabric
    where = [placed[d, v] for v in range(len(dataflow.queries))]
    types = [[kind for kind, _ in hosted(instance, placed, r)] for r in range(len(fabric.resources))]
    lam = [
        0.0 if query.kind == "source" else formulas.effective_latency_s(fabric, r, query.type, types[r])
        for query, r in zip(dataflow.queries, where, strict=True)
    ]
    return list(formulas.critical_lengths_s(fabric, dataflow, where, lam))


def whole(instance: Instance, placed: Placed, d: int) -> bool:
    return all((d, v) in placed for v in range(len(instance.dataflows[d].queries)))


@FEW
@given(instances(), st.data())
def test_loads_and_lengths_equal_the_formulas_after_any_steps(instance, data):
    board = board_of(instance)
    placed = shuffle(data, instance, board)
    energy, broken = board.loads.energy_mah(), board.loads.broken()
    for r, resource in enumerate(instance.fabric.resources):
        load = hosted(instance, placed, r)
        assert board.loads.count[r] == len(load)
        service = formulas.service_time_s(instance.fabric, r, [kind for kind, _ in load])
        assert board.loads.service_s[r] == near(service, rel=1e-12)
        if isinstance(resource, Edge):
            assert energy[r] == near(formulas.energy_mah(instance.fabric, r, load), rel=1e-12)
        held, close = keeps(instance, placed, r)
        assert close or broken[r] == (not held)
    for d, dataflow in enumerate(instance.dataflows):
        if whole(instance, placed, d):
            expected = lengths(instance, placed, d)
            assert board.lengths(dataflow.name) == near(expected, rel=1e-12, abs=1e-18)
            assert board.makespan(dataflow.name) == near(max(expected), rel=1e-12)
        else:
            assert math.isnan(board.makespan(dataflow.name))


@FEW
@given(instances(), st.data())
def test_a_board_that_is_cleared_has_nothing_left(instance, data):
    board = board_of(instance)
    shuffle(data, instance, board)
    for dataflow in instance.dataflows:
        board.remove(dataflow.name)
    assert board.total() == 0 and not board.active
    for left in (board.loads.count, board.loads.service_s, board.loads.drain_mah_s, board.loads.fastest):
        assert not left.any()


def test_a_dataflow_comes_once_and_only_to_its_fabric():
    board = board_of(instance := instance_from_json(case_document()["instance"]))
    with pytest.raises(FieldError, match="another dataflow has this name"):
        board.add(instance.dataflows[0])
    small = instance_from_json(case_document(edges=1)["instance"])
    document = case_document(edges=4)["instance"]
    document["dataflows"][0]["queries"][0]["pin"] = 3
    with pytest.raises(FieldError, match=r"queries\[0\].pin = 3: there is no such resource"):
        Board(small.fabric).add(instance_from_json(document).dataflows[0])


def test_placing_leaves_the_lengths_of_others_alone():
    document = case_document(edges=2, clouds=2)["instance"]
    document["dataflows"] += [document["dataflows"][0] | {"name": name} for name in ("beside", "apart")]
    board = board_of(instance_from_json(document))
    for name, places in (("beside", (0, 0, 2)), ("apart", (0, 1, 3))):
        for v, r in enumerate(places):
            board.place(name, v, r)
    board.total()
    board.place("chain", 0, 0)
    board.place("chain", 1, 0)
    assert board.active["beside"].lengths is None
    assert board.active["apart"].lengths is not None
    assert board.makespan("beside") == near(0.0022 + 0.005 + 8 * 500 / 1e7 + 0.00025)
