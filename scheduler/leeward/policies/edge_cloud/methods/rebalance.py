"""Rebalance (paper, section 4.3): single queries on the critical paths of the active dataflows move to other resources.

A pass visits the dataflows by decreasing makespan, and moves at most one query of each.  A move must lower the total
makespan (8) and break no constraint.  The paper leaves open which query ends a path that a move has changed: each
dataflow is looked at as it is when its turn comes.  Sources stay where their sensors are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.trial import Move, Trial

#: The best move of a dataflow; None: it has none.
Pass = Callable[[Board, str], Move | None]


def rebalance(board: Board, kind: str) -> tuple[Move, ...]:
    """One pass of this kind, or of both one after the other; the moves made.

    All dataflows on the board are placed as a whole.  Raises `FieldError` for an unknown kind.
    """
    if kind not in PASSES:
        raise FieldError("rebalance", kind, "is unknown", remedy=f"choose one of {', '.join(PASSES)}")
    return tuple(move for one in PASSES[kind] for move in _pass(board, one))


def _pass(board: Board, find: Pass) -> list[Move]:
    made = []
    for name in sorted(board.active, key=lambda name: (-board.makespan(name), name)):
        move = find(board, name)
        if move is not None:
            board.move(name, move.query, move.after)
            made.append(move)
    return made


def vertex_move(board: Board, name: str) -> Move | None:
    """The slowest query of the critical path goes to the resource that lowers the total most."""
    one, path = board.active[name], board.ways(name).critical
    latency_s = one.latencies(board.loads.factor)
    slowest = max(path, key=lambda v: latency_s[v])
    return Trial(board, name, slowest).best()


def edge_move(board: Board, name: str) -> Move | None:
    """The ends of the costliest edge of the critical path meet on the resource of one of them, where it gains more."""
    one, path = board.active[name], board.ways(name).critical
    cost_s, u, v = max(((dict(one.fan_in(v))[u], u, v) for u, v in pairwise(path)), key=lambda edge: edge[0])
    if cost_s <= 0:
        return None
    best: Move | None = None
    for query, other in ((u, v), (v, u)):
        move = _meet(board, name, query, other)
        if move is not None and (best is None or move.change_s < best.change_s):
            best = move
    return best


def _meet(board: Board, name: str, query: int, other: int) -> Move | None:
    """A query goes to the resource of another, if that gains something and breaks nothing."""
    one = board.active[name]
    r, s = one.place[query], one.place[other]
    if one.dataflow.queries[query].kind == "source" or r == s or s is None:
        return None
    return Trial(board, name, query).to(s)


PASSES: dict[str, tuple[Pass, ...]] = {
    "vertex": (vertex_move,),
    "edge": (edge_move,),
    "vertex-edge": (vertex_move, edge_move),
}
