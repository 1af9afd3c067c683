"""The kernels against the formulas, and the polished placement: valid, and never worse than TopSet/P."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.polished import polished
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.planning.arrays import Devices, Flows, Scratch, State, devices, scratch_of, state_of
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.kernel_groups import move_group
from leeward.policies.edge_cloud.planning.kernel_moves import fill_lists, fill_overheads, fits, gain_s, move
from leeward.policies.edge_cloud.planning.kernel_paths import fill_tails, makespan_s
from leeward.policies.edge_cloud.planning.packed import Packed
from tests.helpers.edge_cloud_builders import case_document, instances
from tests.helpers.edge_cloud_by_hand import Placed as Places
from tests.helpers.edge_cloud_by_hand import board_of, keeps

near = pytest.approx
FEW = settings(max_examples=40)


def place_all(data: st.DataObject, instance: Instance) -> tuple[Board, Places]:
    """Every query somewhere, whatever the constraints say."""
    board, placed = board_of(instance), {}
    for d, dataflow in enumerate(instance.dataflows):
        for v in range(len(dataflow.queries)):
            placed[d, v] = data.draw(st.integers(0, len(instance.fabric.resources) - 1))
            board.place(dataflow.name, v, placed[d, v])
    return board, placed


def kernel_facts(board: Board) -> tuple[Flows, Devices, State, Scratch]:
    """With lists, overheads and makespans filled in, as the moves need them."""
    flows, machines, state = board.packed.flows(), devices(board.loads), state_of(board.loads, board.packed.place)
    fill_lists(flows, state)
    fill_overheads(machines, state)
    scratch = scratch_of(flows, machines)
    for f in range(len(flows.start)):
        scratch.makespans[f] = makespan_s(flows, machines, state, f, scratch.length)
    return flows, machines, state, scratch


def rows(instance: Instance, placed: Places) -> list[list[int]]:
    return [[placed[d, v] for v in range(len(flow.queries))] for d, flow in enumerate(instance.dataflows)]


@given(instances(), st.data())
@FEW
def test_kernels_give_lengths_makespans_and_tails_of_the_formulas(instance, data):
    board, placed = place_all(data, instance)
    flows, machines, state = board.packed.flows(), devices(board.loads), state_of(board.loads, board.packed.place)
    fill_overheads(machines, state)
    expected = evaluate(instance, rows(instance, placed))
    length, tail = np.zeros(len(state.place)), np.zeros(len(state.place))
    for d, dataflow in enumerate(instance.dataflows):
        f, at = board.packed.number(dataflow.name), board.packed.positions(dataflow.name)
        assert makespan_s(flows, machines, state, f, length) == near(expected.makespans[d])
        assert [length[q] for q in at] == near(list(expected.lengths[d]))
        fill_tails(flows, machines, state, f, tail)
        ways = [length[q] + tail[q] for q in at]
        assert max(ways) == near(expected.makespans[d])
        assert all(tail[q] == 0 for q, one in zip(at, dataflow.queries, strict=True) if one.kind == "sink")


@given(instances(), st.data())
@FEW
def test_a_move_is_priced_as_the_formulas_do_and_leaves_no_trace(instance, data):
    board, placed = place_all(data, instance)
    flows, machines, state, scratch = kernel_facts(board)
    movable = [key for key in placed if instance.dataflows[key[0]].queries[key[1]].kind != "source"]
    d, v = data.draw(st.sampled_from(movable))
    s = data.draw(st.integers(0, len(instance.fabric.resources) - 1))
    if s == placed[d, v]:
        return
    name = instance.dataflows[d].name
    q = board.packed.positions(name)[v]
    kept = [array.copy() for array in state[:6]]
    fitting = fits(flows, machines, state, q, s)
    grown = gain_s(flows, machines, state, scratch, q, s)
    assert all((old == new).all() for old, new in zip(kept, state[:6], strict=True))

    before = evaluate(instance, rows(instance, placed)).total
    placed[d, v] = s
    after = evaluate(instance, rows(instance, placed))
    assert grown == near(after.total - before, abs=1e-12)
    held, close = keeps(instance, placed, s)
    wrong = instance.dataflows[d].queries[v].kind == "sink" and s in instance.fabric.edges
    assert close or fitting == (held and not wrong)
    move(flows, machines, state, q, s)
    board.take(name, v)
    board.place(name, v, s)
    assert state.service_s == near(board.loads.service_s) and state.drain_mah_s == near(board.loads.drain_mah_s)


@given(instances(), st.data())
@FEW
def test_a_group_of_queries_moves_only_where_that_gains_by_the_formulas(instance, data):
    board, placed = place_all(data, instance)
    flows, machines, state, scratch = kernel_facts(board)
    d = data.draw(st.integers(0, len(instance.dataflows) - 1))
    name = instance.dataflows[d].name
    kept = [array.copy() for array in state[:6]]
    number, at = board.packed.number(name), board.packed.positions(name)
    gained = move_group(flows, machines, state, scratch, number)
    now = [int(state.place[q]) for q in at]
    moved = [v for v, r in enumerate(now) if r != placed[d, v]]
    before = evaluate(instance, rows(instance, placed)).total
    if not gained:
        assert not moved and all((old == new).all() for old, new in zip(kept, state[:6], strict=True))
        return
    (old,), (new,) = {placed[d, v] for v in moved}, {now[v] for v in moved}
    assert len(moved) >= 2 and old != new
    for v in moved:
        board.move(name, v, new)
        placed[d, v] = new
    assert evaluate(instance, rows(instance, placed)).total < before
    assert state.service_s == near(board.loads.service_s) and state.drain_mah_s == near(board.loads.drain_mah_s)
    held, close = keeps(instance, placed, new)
    assert held or close


def test_queries_that_exchange_events_go_to_a_faster_edge_together():
    document = case_document(edges=3)["instance"]
    document["lam"] = [[0.002, 0.002, 0.0001, 0.002]] * 2
    document["latency"] = [[0.0 if r == s else 0.003 for s in range(4)] for r in range(4)]
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [source, dict(work, sigma=1.0), dict(work, sigma=1.0), sink],
        "edges": [[0, 1], [1, 2], [2, 3]],
    }
    instance = instance_from_json(document)
    found = polished(Board(instance.fabric), instance.dataflows[0], random.Random(0))
    assert found == Placed(placement=(0, 2, 2, 3))


@given(instances(most=4))
@FEW
def test_a_polished_dataflow_breaks_nothing_and_is_no_worse_than_topset_p(instance):
    board, plain = Board(instance.fabric), Board(instance.fabric)
    running: list[int] = []
    for d, dataflow in enumerate(instance.dataflows):
        found = polished(board, dataflow, random.Random(0))
        if d == 0:  # later ones meet other boards
            assert isinstance(topset(plain, dataflow, penalty=True), Refused) == isinstance(found, Refused)
        if isinstance(found, Refused):
            assert dataflow.name not in board.active
            return
        running.append(d)
        now = Instance(fabric=instance.fabric, dataflows=tuple(instance.dataflows[e] for e in running))
        placement = [board.active[one.name].place for one in now.dataflows]
        evaluation = evaluate(now, placement)
        # an edge whose base load alone empties its battery is no fault of a placement that leaves it empty
        broken = [one for one in evaluation.violations if one[0] != "energy" or evaluation.service_time[int(one[1])]]
        assert not broken
        assert evaluation.total == near(board.total())
        assert isinstance(found, Placed) and list(found.placement) == board.active[dataflow.name].place
        if d == 0:
            assert board.total() <= plain.total() + 1e-12


@given(instances(most=3), st.data())
@FEW
def test_arrays_without_gaps_are_those_of_the_dataflows_that_are_there(instance, data):
    packed, known, places = Packed(), {}, {}
    for step in range(data.draw(st.integers(1, 25))):
        if known and data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(known)))
            del known[name], places[name]
            packed.remove(name)
            continue
        dataflow, name = data.draw(st.sampled_from(instance.dataflows)), f"d{step}"
        known[name] = type(dataflow)(name=name, queries=dataflow.queries, edges=dataflow.edges, rate=dataflow.rate)
        places[name] = [data.draw(st.integers(-1, 3)) for _ in dataflow.queries]
        packed.add(known[name], tuple(float(v) for v in range(len(dataflow.queries))))
        for v, r in enumerate(places[name]):
            packed.put(name, v, r)
    flows = packed.flows()
    assert sum(flows.size) == sum(len(dataflow.queries) for dataflow in known.values())
    assert len(packed.place) <= 2 * sum(flows.size) or not known
    for name, dataflow in known.items():
        f, at = packed.number(name), packed.positions(name)
        assert sorted(at) == list(range(flows.start[f], flows.start[f] + flows.size[f]))
        for v, (q, query) in enumerate(zip(at, dataflow.queries, strict=True)):
            assert packed.place[q] == places[name][v] and flows.owner[q] == f and flows.w_in[q] == v
            assert (flows.kind[q], flows.source[q], flows.sink[q]) == (
                query.type,
                query.kind == "source",
                query.kind == "sink",
            )
            assert [at[u] for u in dataflow.parents[v]] == list(
                flows.parent[flows.parent_at[q] : flows.parent_at[q + 1]]
            )
            assert [at[c] for c in dataflow.children[v]] == list(flows.child[flows.child_at[q] : flows.child_at[q + 1]])
