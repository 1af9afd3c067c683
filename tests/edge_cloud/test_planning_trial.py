"""Trials of moves against the formulas: what a move changes, what it breaks, and which is the best."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Edge
from leeward.policies.edge_cloud.planning.trial import LEAST_GAIN_S, Trial
from tests.helpers.edge_cloud_builders import board_with, case_document, crowds, instances, placed, placements, snapshot
from tests.helpers.edge_cloud_by_hand import keeps

near = pytest.approx
FEW = settings(max_examples=60)
#: Sums of a few makespans, s, are exact to this.
ROUNDING_S = 1e-12


def movable(instance: Instance) -> list[tuple[int, int]]:
    return [
        (d, v)
        for d, dataflow in enumerate(instance.dataflows)
        for v, query in enumerate(dataflow.queries)
        if query.kind != "source"
    ]


def moved(rows, d: int, v: int, r: int) -> list[list[int]]:
    """The placement after one move."""
    found = [list(row) for row in rows]
    found[d][v] = r
    return found


def grown(instance: Instance, rows, d: int, v: int, r: int) -> float:
    """By how much the total grows with a move, by the formulas."""
    return evaluate(instance, moved(rows, d, v, r)).total - evaluate(instance, rows).total


def breaks(instance: Instance, rows, d: int, v: int, r: int) -> bool | None:
    """Whether a move breaks a constraint, by the formulas; None if the last digit of a sum decides."""
    spread = {(e, w): s for e, row in enumerate(rows) for w, s in enumerate(row)}
    here, there = spread[d, v], spread | {(d, v): r}
    (held, close), (holds, near_there), (still, near_here) = (
        keeps(instance, spread, here), keeps(instance, there, r), keeps(instance, there, here)
    )  # fmt: skip
    if close or near_there or near_here:
        return None
    at_edge = instance.dataflows[d].queries[v].kind == "sink" and isinstance(instance.fabric.resources[r], Edge)
    return at_edge or not holds or (held and not still)


@FEW
@given(placed() | crowds(), st.data())
def test_a_trial_says_what_the_formulas_say_and_leaves_the_board_alone(case, data):
    instance, rows = case
    board = board_with(instance, rows)
    before = snapshot(board)
    for d, v in movable(instance):
        trial = Trial(board, instance.dataflows[d].name, v)
        everywhere = range(len(instance.fabric.resources))
        # in any order: what was asked before must not show
        for r in data.draw(st.permutations(everywhere)):
            change = grown(instance, rows, d, v, r)
            assert trial.change_s(r) == near(change, rel=1e-9, abs=ROUNDING_S)
            if r != rows[d][v]:
                assert trial.least_s[r] <= trial.closer_s[r] + ROUNDING_S
                assert trial.closer_s[r] <= change + ROUNDING_S
                broken = breaks(instance, rows, d, v, r)
                assert broken is None or (trial.allowed[r], trial.allows(r)) == (not broken, not broken)
                move = trial.to(r)
                if move is not None:
                    assert trial.allowed[r] and move.change_s == near(change, rel=1e-9, abs=ROUNDING_S)
                elif trial.allowed[r]:
                    assert change >= -LEAST_GAIN_S - ROUNDING_S
            else:
                assert not trial.allowed[r] and not trial.allows(r)
        trial.best()
    assert snapshot(board) == before


@FEW
@given(placed() | crowds())
def test_the_best_move_is_the_best_of_all(case):
    instance, rows = case
    board = board_with(instance, rows)
    for d, v in movable(instance):
        trial = Trial(board, instance.dataflows[d].name, v)
        changes = [grown(instance, rows, d, v, r) for r in range(len(instance.fabric.resources)) if trial.allowed[r]]
        best = trial.best()
        if best is None:
            assert min(changes, default=0.0) >= -LEAST_GAIN_S - ROUNDING_S
        else:
            assert (best.name, best.query, best.before) == (instance.dataflows[d].name, v, rows[d][v])
            assert trial.allowed[best.after]
            assert best.change_s == near(min(changes), rel=1e-9, abs=ROUNDING_S)
            assert best.change_s == near(grown(instance, rows, d, v, best.after), rel=1e-9, abs=ROUNDING_S)


@FEW
@given(placed() | crowds(), st.data())
def test_trials_hold_after_moves_departures_and_arrivals(case, data):
    instance, rows = case
    board = board_with(instance, rows)
    for _ in range(data.draw(st.integers(1, 5))):
        d, v = data.draw(st.sampled_from(movable(instance)))
        r = data.draw(st.integers(0, len(instance.fabric.resources) - 1))
        change, total = Trial(board, instance.dataflows[d].name, v).change_s(r), board.total()
        board.move(instance.dataflows[d].name, v, r)
        rows = moved(rows, d, v, r)
        assert board.total() - total == near(change, rel=1e-9, abs=ROUNDING_S)
        if data.draw(st.booleans()):
            position = data.draw(st.integers(0, len(instance.dataflows) - 1))
            again = instance.dataflows[position]
            board.remove(again.name)
            board.add(again)
            for w, s in enumerate(rows[position]):
                board.place(again.name, w, s)
        assert board.total() == near(evaluate(instance, rows).total, rel=1e-12)


@FEW
@given(instances(), st.data())
def test_the_critical_path_is_a_longest_path(instance, data):
    rows = data.draw(placements(instance))
    board = board_with(instance, rows)
    for d, dataflow in enumerate(instance.dataflows):
        ways, lengths = board.ways(dataflow.name), evaluate(instance, rows).lengths[d]
        path = ways.critical
        assert ways.makespan_s == near(max(lengths), rel=1e-12)
        assert dataflow.queries[path[0]].kind == "source" and dataflow.queries[path[-1]].kind == "sink"
        assert all(edge in dataflow.edges for edge in pairwise(path))
        assert all(ways.through_s[v] == near(ways.makespan_s, rel=1e-12) for v in path)
        assert max(ways.through_s) == near(ways.makespan_s, rel=1e-12)
        beyond = [length for v, length in enumerate(lengths) if ways.through_s[v] < length - ROUNDING_S]
        assert beyond == [], "a path through a query is no shorter than the way to it"


def test_a_move_by_hand():
    """Work goes from the edge to the cloud machine: 0.75 ms less, and 8 x 500 bits less on the way; all else stays."""
    instance = instance_from_json(case_document()["instance"])
    board = board_with(instance, [[0, 0, 2]])
    trial = Trial(board, "chain", 1)
    # before: 1 + (5 + 0.4) + 0.25 ms; after: (5 + 0.8) + two queries together on the machine, twice
    assert board.total() == near(0.00665)
    both = 1.02 * (0.00025 + 0.00025)
    assert trial.change_s(2) == near(0.0058 + 2 * both - 0.00665)
    assert trial.change_s(1) == near(0.0058 + 0.001 + 0.0054 + 0.00025 - 0.00665)
    best = trial.best()
    assert best is None or best.after == 2
    assert trial.allowed.tolist() == [False, True, True]


def test_a_source_is_never_tried():
    board = board_with(instance_from_json(case_document()["instance"]), [[0, 0, 2]])
    with pytest.raises(AssertionError, match="is a source"):
        Trial(board, "chain", 0)


def test_leaving_may_break_a_constraint_where_fewer_queries_have_the_greater_overhead():
    """Three queries fit on the edge only because pi(3) < pi(2): none may leave."""
    document = case_document()["instance"]
    document["pi_edge"] = [0.0, 0.0, 6.0, 0.0]
    document["dataflows"] += [document["dataflows"][0] | {"name": name} for name in ("b", "c")]
    instance = instance_from_json(document)
    rows = [[0, 0, 2]] * 3
    assert evaluate(instance, rows).violations == ()
    assert not Trial(board_with(instance, rows), "b", 1).allowed.any()
    assert not Trial(board_with(instance, rows), "b", 1).allows(1)
    # two of them break it already, and one may leave
    rows = [[0, 0, 2], [0, 0, 2], [0, 1, 2]]
    assert ("throughput", 0, 1) in evaluate(instance, rows).violations
    assert Trial(board_with(instance, rows), "b", 1).allows(2)


def test_a_bound_does_not_count_a_gain_that_the_new_neighbour_undoes():
    """The longest path of "two" is on both edges of the move: what it gains on the one it loses on the other.

    Its second path, 0.2 ms shorter, is on neither, and so bounds the gain of leaving alone.
    """
    document = case_document(edges=5)["instance"]
    source, work, sink = document["dataflows"][0]["queries"]
    queries = [source, dict(work, delta=6500.0), work, work, work, sink]
    document["dataflows"].append(
        {"name": "two", "queries": queries, "edges": [[0, 1], [1, 2], [2, 5], [0, 3], [3, 4], [4, 5]]}
    )
    board = board_with(instance_from_json(document), [[0, 0, 5], [0, 0, 1, 2, 3, 5]])
    assert board.ways("two").critical == (0, 1, 2, 5)
    board.move("chain", 1, 1)
    assert board.ways("two").critical == (0, 1, 2, 5)
    board.move("chain", 1, 4)
    assert board.ways("two").critical == (0, 3, 4, 5)
    board.move("chain", 1, 0)
    trial = Trial(board, "chain", 1)
    assert trial.closer_s[1] <= trial.change_s(1)
    assert trial.closer_s[4] == near(trial.change_s(4)), "nobody is there"
