"""The strategies by their names: how an arriving dataflow is placed, and what moves after an arrival or departure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.polished import polished
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board

Arrive = Callable[[Board, Dataflow, random.Random], Placed | Refused]
Settle = Callable[[Board, random.Random], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to place, and to rebalance."""

    arrive: Arrive
    #: After each arrival and each departure; may move queries of every dataflow.
    settle: Settle | None = None


def _topset(board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    return topset(board, dataflow, penalty=False)


def _topset_p(board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    return topset(board, dataflow, penalty=True)


_ARRIVE: dict[str, Arrive] = {"polished": polished, "topset-p": _topset_p, "topset": _topset}


def strategy(method: str, rebalance: str) -> Strategy:
    """Raises `FieldError` for a name that is unknown."""
    if method not in _ARRIVE:
        raise FieldError("method", method, "is unknown", remedy=f"choose one of {', '.join(_ARRIVE)}")
    return Strategy(arrive=_ARRIVE[method])
