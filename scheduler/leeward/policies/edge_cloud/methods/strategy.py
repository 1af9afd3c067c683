"""A strategy: how an arriving dataflow is placed, and how all of them settle after an arrival or a departure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.genetic import Genetic, gag, gag_again, gai
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.polished import polished
from leeward.policies.edge_cloud.methods.rebalance import rebalance
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.methods.unbounded import Where, crowded
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.values import check_one_of
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.settings import METHODS, REBALANCES

Arrive = Callable[[Board, Dataflow, random.Random], Placed | Refused]
Settle = Callable[[Board, random.Random], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The two decisions at a control interval; random numbers come from the generator in the argument alone."""

    #: Puts an arriving dataflow on the board, or leaves the board as it was.
    arrive: Arrive
    #: After each arrival and each departure; may move queries of every dataflow.  None: nothing moves.
    settle: Settle | None = None


def strategy(method: str, rebalance: str) -> Strategy:
    """The strategy of these names; raises `FieldError` for an unknown one, and for GA-Global with a rebalance."""
    check_one_of("method", method, METHODS)
    check_one_of("rebalance", rebalance, REBALANCES)
    if method == "gag":
        if rebalance != "none":
            reason = "GA-Global places all dataflows anew, and leaves nothing to rebalance"
            raise FieldError("rebalance", rebalance, reason, remedy="set it to none, or choose another method")
        everything = _Global(Genetic())
        return Strategy(arrive=everything.arrive, settle=everything.settle)
    settle = None if rebalance == "none" else partial(_rebalance, rebalance)
    return Strategy(arrive=_ARRIVE[method], settle=settle)


def _topset(penalty: bool, board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    return topset(board, dataflow, penalty=penalty)


def _gai(board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    return gai(board, dataflow, _seeded(rng), Genetic())


def _crowded(where: Where, board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    return crowded(board, dataflow, where)


def _rebalance(kind: str, board: Board, rng: random.Random) -> None:
    rebalance(board, kind)


def _seeded(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


class _Global:
    """GA-Global: an arrival places all dataflows already, so there is nothing to settle but after a departure."""

    def __init__(self, numbers: Genetic) -> None:
        self._numbers = numbers
        #: The dataflows that were placed together.
        self._together: list[str] = []

    def arrive(self, board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
        outcome = gag(board, dataflow, _seeded(rng), self._numbers)
        if isinstance(outcome, Placed):
            self._together = list(board.active)
        return outcome

    def settle(self, board: Board, rng: random.Random) -> None:
        if list(board.active) != self._together:
            gag_again(board, _seeded(rng), self._numbers)
            self._together = list(board.active)


_ARRIVE: dict[str, Arrive] = {
    "topset": partial(_topset, False),
    "topset-p": partial(_topset, True),
    "polished": polished,
    "gai": _gai,
    "edge-only": partial(_crowded, "edge"),
    "cloud-only": partial(_crowded, "cloud"),
}
