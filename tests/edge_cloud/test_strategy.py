"""Strategies by name: each places and settles by its own method, and random numbers come from the argument alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.rebalance import rebalance
from leeward.policies.edge_cloud.methods.strategy import strategy
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.settings import METHODS, REBALANCES, EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import at_sensors, catalogue
from leeward.policies.edge_cloud.workload.setup import REF, cluster
from tests.helpers.edge_cloud_builders import instances, snapshot

FEW = settings(max_examples=8)
BOUNDLESS = ("edge-only", "cloud-only")
PAIRS = [(method, kind) for method in METHODS for kind in REBALANCES if method != "gag" or kind == "none"]


def violations(board: Board) -> tuple[object, ...]:
    flows = tuple(one.dataflow for one in board.active.values())
    found = evaluate(Instance(fabric=board.fabric, dataflows=flows), [board.placement(name) for name in board.active])
    return tuple(one for one in found.violations if one[0] != "energy" or found.service_time[int(one[1])] > 0)


@pytest.mark.parametrize(("method", "kind"), PAIRS)
@FEW
@given(instances(), st.integers(0, 3))
def test_dataflows_come_and_go_and_no_constraint_breaks(method: str, kind: str, instance, seed: int):
    """Every placement is valid but of the baselines that know no constraint; a refusal leaves the board as it was."""
    board, rng, chosen = Board(instance.fabric), random.Random(seed), strategy(method, kind)
    for dataflow in instance.dataflows:
        before = snapshot(board)
        outcome = chosen.arrive(board, dataflow, rng)
        if isinstance(outcome, Refused):
            assert snapshot(board) == before
        else:
            assert board.placement(dataflow.name) == outcome.placement
        settle(chosen, board, rng)
        assert method in BOUNDLESS or violations(board) == ()
    for name in list(board.active):
        board.remove(name)
        slower = set(violations(board))  # by the departure alone: some tables have less overhead for three than for two
        settle(chosen, board, rng)
        assert method in BOUNDLESS or set(violations(board)) <= slower
    assert not board.loads.count.any()


def settle(chosen, board: Board, rng: random.Random) -> None:
    """A rebalance raises no total, and sources stay."""
    sources = {
        (name, v): one.place[v]
        for name, one in board.active.items()
        for v, query in enumerate(one.dataflow.queries)
        if query.pin is not None
    }
    total = board.total()
    if chosen.settle is not None:
        chosen.settle(board, rng)
        if not hasattr(chosen.settle, "__self__"):  # GA-Global is no rebalance
            assert board.total() <= total + 1e-12
    assert all(board.active[name].place[v] == r for (name, v), r in sources.items())


def walk(method: str, seed: int) -> tuple[list[str], list[object]]:
    """Arrivals and a departure on a small generated cluster; the board at the end, and the outcomes."""
    rng = random.Random(1)
    nodes, network = cluster(25, REF, rng)
    board = Board(fabric_of(nodes, network, EdgeCloudSettings()))
    flows = [one for one in catalogue(REF, rng) if len(one.queries) <= 12][:5]
    flows = [at_sensors(flow, flow.name, len(board.fabric.edges), rng) for flow in flows]
    chosen, chance, outcomes = strategy(method, "none"), random.Random(seed), []
    for flow in flows:
        outcomes.append(chosen.arrive(board, flow, chance))
        if chosen.settle is not None:
            chosen.settle(board, chance)
    board.remove(next(iter(board.active)))
    if chosen.settle is not None:
        chosen.settle(board, chance)
    return snapshot(board), outcomes


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_boards(method: str):
    assert walk(method, 3) == walk(method, 3)


@pytest.mark.parametrize("method", METHODS)
def test_only_the_genetic_algorithms_draw_random_numbers(method: str):
    rng = random.Random(3)
    state, board = rng.getstate(), loaded()
    flow = at_sensors(catalogue(REF, random.Random(5))[2], "new", 20, random.Random(0))
    strategy(method, "none").arrive(board, flow, rng)
    assert (rng.getstate() != state) == (method in ("gai", "gag"))


def test_topset_with_and_without_penalty_is_named_so():
    rng = random.Random(2)
    nodes, network = cluster(25, REF, rng)
    fabric = fabric_of(nodes, network, EdgeCloudSettings())
    flow = at_sensors(catalogue(REF, rng)[30], "one", len(fabric.edges), rng)
    found = {}
    for method, penalty in (("topset", False), ("topset-p", True)):
        found[method] = strategy(method, "none").arrive(Board(fabric), flow, rng)
        assert found[method] == topset(Board(fabric), flow, penalty=penalty)
    assert found["topset"] != found["topset-p"], "the case tells them apart"
    for method, where in (("edge-only", fabric.edges), ("cloud-only", fabric.clouds)):
        outcome = strategy(method, "none").arrive(Board(fabric), flow, rng)
        assert isinstance(outcome, Placed)
        inner = [r for r, query in zip(outcome.placement, flow.queries, strict=True) if query.kind == "query"]
        assert set(inner) <= set(where)


@pytest.mark.parametrize("kind", [kind for kind in REBALANCES if kind != "none"])
def test_settling_is_one_pass_of_the_rebalance_named(kind: str):
    board, again, chosen = loaded(), loaded(), strategy("topset", kind)
    assert chosen.settle is not None
    chosen.settle(board, random.Random(0))
    assert rebalance(again, kind), "the case has something to move"
    assert snapshot(board) == snapshot(again)


def loaded() -> Board:
    """Nine dataflows as TopSet places them."""
    rng = random.Random(5)
    nodes, network = cluster(60, REF, rng)
    board = Board(fabric_of(nodes, network, EdgeCloudSettings()))
    for number, flow in enumerate(catalogue(REF, rng)[10:28:2]):
        topset(board, at_sensors(flow, f"d{number}", len(board.fabric.edges), rng), penalty=False)
    return board


def test_global_settles_after_a_departure_alone():
    """Its arrivals place everything already: to settle then draws no number and moves nothing."""
    board, rng, chosen = loaded(), random.Random(0), strategy("gag", "none")
    assert chosen.settle is not None
    flow = catalogue(REF, random.Random(5))[2]
    assert isinstance(chosen.arrive(board, at_sensors(flow, "new", 20, random.Random(0)), rng), Placed)
    state, before = rng.getstate(), snapshot(board)
    chosen.settle(board, rng)
    assert rng.getstate() == state and snapshot(board) == before
    board.remove("new")
    chosen.settle(board, rng)
    assert rng.getstate() != state and snapshot(board) != before


@pytest.mark.parametrize(
    ("method", "kind", "said"),
    [
        ("greedy", "none", "method = 'greedy': is unknown"),
        ("topset", "both", "rebalance = 'both': is unknown"),
        ("gag", "vertex", "rebalance = 'vertex': GA-Global places all dataflows anew"),
    ],
)
def test_unknown_names_and_pairs_are_refused(method: str, kind: str, said: str):
    with pytest.raises(FieldError) as told:
        strategy(method, kind)
    assert said in str(told.value)
