"""Rebalance: each pass by hand, and on random instances what no pass may do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.rebalance import PASSES, rebalance
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.trial import Move, Trial
from tests.helpers.edge_cloud_builders import board_with, case_document, crowds, placed, snapshot

near = pytest.approx
FEW = settings(max_examples=60)
ROUNDING_S = 1e-12


def rows_of(board: Board, instance: Instance) -> list[tuple[int, ...]]:
    return [board.placement(dataflow.name) for dataflow in instance.dataflows]


def resources_broken(instance: Instance, rows) -> dict[tuple[object, ...], int]:
    """Each broken constraint, with the resource on which it is broken."""
    found = {}
    for name, first, *rest in evaluate(instance, rows).violations:
        found[name, first, *rest] = rows[first][rest[0]] if rest else first
    return found


@FEW
@given(placed() | crowds())
def test_the_total_falls_by_what_the_moves_say(case):
    instance, rows = case
    for kind, passes in PASSES.items():
        board = board_with(instance, rows)
        total = board.total()
        made = rebalance(board, kind)
        after = rows_of(board, instance)
        assert evaluate(instance, after).total == near(total + sum(move.change_s for move in made), rel=1e-9)
        assert all(move.change_s < 0 for move in made)
        names = [move.name for move in made]
        assert max(map(names.count, names), default=0) <= len(passes)
        assert len(made) > 0 or snapshot(board) == snapshot(board_with(instance, rows))


@FEW
@given(placed() | crowds())
def test_moves_break_nothing_and_move_no_source(case):
    """The placement may break constraints at first: a pass adds none where it held."""
    instance, rows = case
    for kind in PASSES:
        board = board_with(instance, rows)
        made = rebalance(board, kind)
        after = rows_of(board, instance)
        for dataflow, before, then in zip(instance.dataflows, rows, after, strict=True):
            for query, r, s in zip(dataflow.queries, before, then, strict=True):
                assert query.kind != "source" or r == s
        was_broken = set(resources_broken(instance, rows).values())
        for violation, r in resources_broken(instance, after).items():
            assert r in was_broken, f"{violation} after {made}"


@FEW
@given(crowds())
def test_a_vertex_pass_makes_the_best_move_of_the_slowest_query(case):
    instance, rows = case
    board, expected = board_with(instance, rows), []
    for name in sorted(board.active, key=lambda name: (-board.makespan(name), name)):
        path, dataflow, place = board.ways(name).critical, board.active[name].dataflow, board.placement(name)
        own = {
            v: 0.0 if query.kind == "source" else board.loads.latency_on(query.type, place[v])
            for v, query in ((v, dataflow.queries[v]) for v in path)
        }
        slowest = max(own.values())
        move = Trial(board, name, next(v for v in path if own[v] == slowest)).best()
        if move is not None:
            board.move(name, move.query, move.after)
            expected.append(move)
    assert list(rebalance(board_with(instance, rows), "vertex")) == expected


def case(rows, **changes: object) -> tuple[Instance, Board]:
    """source -> work -> sink, with one row of resources."""
    instance = instance_from_json(case_document(clouds=2)["instance"] | changes)
    return instance, board_with(instance, rows)


def test_the_slowest_query_goes_where_the_total_is_least():
    """Machine 3 is faster than machine 2, and near nobody: 1 ms less on the way, 0.5 ms more."""
    lam = [[0.001, 0.001, 0.009, 0.002], [0.001, 0.001, 0.003, 0.003]]
    _, board = case([[0, 2, 3]], lam=lam)
    (move,) = rebalance(board, "vertex")
    assert (move.name, move.query, move.before) == ("chain", 1, 2)
    trial = Trial(case([[0, 2, 3]], lam=lam)[1], "chain", 1)
    assert move.change_s == min(trial.change_s(r) for r in (0, 1, 3))


def test_the_ends_of_the_costliest_edge_meet_where_it_gains_more():
    """work -> sink is the costliest: work goes to the sink's machine, as the sink may not go to work's edge."""
    document = case_document()["instance"]
    document["dataflows"][0]["queries"][1]["delta"] = 5000.0
    board = board_with(instance_from_json(document), [[0, 1, 2]])
    before = board.total()
    assert rebalance(board, "edge") == (
        Move(name="chain", query=1, before=1, after=2, change_s=near(board.total() - before)),
    )
    # source -> work is the costliest: the source stays, and work comes to it
    document["dataflows"][0]["queries"][0]["delta"] = 9000.0
    board = board_with(instance_from_json(document), [[0, 1, 2]])
    (move,) = rebalance(board, "edge")
    assert (move.query, move.after) == (1, 0)


@pytest.mark.parametrize(("faster", "query"), [(1, 2), (2, 1)])
def test_of_the_two_ends_the_one_moves_that_gains_more(faster: int, query: int):
    """Both ends could move; they meet on the faster edge."""
    document = case_document(edges=3)["instance"]
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {"queries": [source, dict(work, delta=9000.0), work, sink]}
    document["dataflows"][0]["edges"] = [[0, 1], [1, 2], [2, 3]]
    document["lam"] = [[0.001 if r == faster else 0.0015 for r in range(4)]] * 2
    board = board_with(instance_from_json(document), [[0, 1, 2, 3]])
    assert all(Trial(board, "chain", v).to(r) is not None for v, r in ((1, 2), (2, 1)))
    (move,) = rebalance(board, "edge")
    assert (move.query, move.after) == (query, faster)


def test_nothing_meets_that_is_together_or_pinned_at_both_ends():
    document = case_document()["instance"]
    document["dataflows"][0]["queries"] = [document["dataflows"][0]["queries"][k] for k in (0, 2)]
    document["dataflows"][0]["edges"] = [[0, 1]]
    board = board_with(instance_from_json(document), [[0, 2]])
    assert rebalance(board, "edge") == ()


def test_both_is_one_pass_after_the_other():
    instance, board = case([[0, 2, 3]])
    _, again = case([[0, 2, 3]])
    assert rebalance(board, "vertex-edge") == (*rebalance(again, "vertex"), *rebalance(again, "edge"))
    assert evaluate(instance, rows_of(board, instance)).violations == ()


def test_the_longest_dataflow_comes_first():
    """Both would go to the machine, which has room for one."""
    document = case_document()["instance"]
    document |= {"mode": "overhead", "lam": [[0.008, 0.008, 0.005], [0.001, 0.001, 0.0001]]}
    long = dict(document["dataflows"][0], name="long")
    long["queries"] = [dict(query) for query in long["queries"]]
    long["queries"][0]["delta"] = 3000.0
    document["dataflows"].append(long)
    board = board_with(instance_from_json(document), [[0, 0, 2], [0, 1, 2]])
    assert board.makespan("long") > board.makespan("chain")
    assert Trial(board, "chain", 1).best() is not None
    assert [(move.name, move.query, move.after) for move in rebalance(board, "vertex")] == [("long", 1, 2)]


def test_an_unknown_kind_is_refused():
    with pytest.raises(FieldError, match="rebalance = 'all': is unknown"):
        rebalance(case([[0, 0, 2]])[1], "all")


def test_an_empty_board_has_no_moves():
    assert rebalance(Board(instance_from_json(case_document()["instance"]).fabric), "vertex-edge") == ()
