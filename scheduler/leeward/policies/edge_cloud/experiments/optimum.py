"""How far arrivals of small dataflows are from the proven optimum, on the boards that a run came by."""

from __future__ import annotations

from collections.abc import Iterator

from leeward.core.experiment import Played, Setting
from leeward.policies.edge_cloud.exact.outcome import Optimal
from leeward.policies.edge_cloud.exact.solve import best_placement
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.values import Placement
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.workload.generated import Generated

#: Queries of the dataflows that are looked at.
MOST = 8


def gaps_percent(setting: Setting, played: Played) -> list[float]:
    """For each arrival of at most 8 queries: by how much its cost is over the optimum's, %.

    The cost is the growth of the objective (8), which counts what the others slow down; the others stay.
    """
    made = Generated(nodes=setting.nodes, seed=setting.seed)
    board = Board(made.fabric)
    return [gap for arrival in _arrivals(made, board, played) if (gap := _gap(board, *arrival)) is not None]


def _arrivals(made: Generated, board: Board, played: Played) -> Iterator[tuple[Dataflow, Placement]]:
    """Each dataflow that was placed, with its placement; the board is then as the policy found it."""
    for row in played.intervals:
        for name in row.departed:
            if name in board.active:
                board.remove(name)
        for name in (name for name in row.arrived if name in row.placed):
            one = played.topologies[name]
            dataflow = made.dataflow(name, one)
            placement = made.placement(one, {component: slot.node for component, slot in row.placed[name].items()})
            yield dataflow, placement
            board.enter(dataflow, placement)


def _gap(board: Board, dataflow: Dataflow, placement: Placement) -> float | None:
    if len(dataflow.queries) > MOST:
        return None
    best = best_placement(board, dataflow)
    assert isinstance(best, Optimal), "it was placed, and no time limit ends the proof"
    before = board.total()
    board.enter(dataflow, placement)
    cost = board.total() - before
    board.remove(dataflow.name)
    return 100 * (cost / (best.total - before) - 1)
