"""How far arrivals of small dataflows are from the proven optimum, on the boards that a run came by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leeward.core.experiment import Played, Setting
from leeward.policies.edge_cloud.exact.outcome import Optimal
from leeward.policies.edge_cloud.exact.solve import best_placement
from leeward.policies.edge_cloud.facts import dataflow_of, fabric_of
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.generated import Generated

#: Queries of the dataflows that are looked at.
MOST = 8


def gaps_percent(setting: Setting, played: Played) -> list[float]:
    """For each arrival of at most 8 queries: by how much its cost is over the optimum's, %.

    The cost is the growth of the objective (8), which counts what the others slow down; the others stay.
    """
    made = Generated(nodes=setting.nodes, seed=setting.seed)
    numbers = {node.id: number for number, node in enumerate(made.nodes)}
    board = Board(fabric_of(made.nodes, made.network, EdgeCloudSettings()))
    return [gap for arrival in _arrivals(board, played, numbers) if (gap := _gap(board, *arrival)) is not None]


def _arrivals(board: Board, played: Played, numbers: Mapping[str, int]) -> Iterator[tuple[Dataflow, list[int]]]:
    """Each dataflow that was placed, with its placement; the board is then as the policy found it."""
    for row in played.intervals:
        for name in row.departed:
            if name in board.active:
                board.remove(name)
        for name in (name for name in row.arrived if name in row.placed):
            one, slots = played.topologies[name], row.placed[name]
            dataflow = dataflow_of(name, one.components, one.streams, numbers)
            placement = [numbers[slots[component.id].node] for component in one.components]
            yield dataflow, placement
            _put(board, dataflow, placement)


def _put(board: Board, dataflow: Dataflow, placement: list[int]) -> None:
    board.add(dataflow)
    for v, r in enumerate(placement):
        board.place(dataflow.name, v, r)


def _gap(board: Board, dataflow: Dataflow, placement: list[int]) -> float | None:
    if len(dataflow.queries) > MOST:
        return None
    best = best_placement(board, dataflow)
    assert isinstance(best, Optimal), "it was placed, and no time limit ends the proof"
    before = board.total()
    _put(board, dataflow, placement)
    cost = board.total() - before
    board.remove(dataflow.name)
    return 100 * (cost / (best.total - before) - 1)
