"""Ours: TopSet/P, and then, before the dataflow starts, its queries move one by one to where all dataflows gain.

TopSet/P visits a query once and looks back at its parents only.  A polished dataflow has seen its children, too, and
the dataflows that it shares resources with.  No query of another dataflow moves, and the dataflow does not run yet, so
there is nothing to migrate.
"""

from __future__ import annotations

import random

import numpy as np

from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.topset import commit, draft
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.kernel_polish import polish_starts

#: Resources on which a query is tried in a round.
CANDIDATES = 8
#: Rounds in which one query moves: a bound, hardly ever met.
MOST = 60
#: Dataflows of at most so many queries are tried in full, larger ones on their critical path.
SMALL = 24
#: Dataflows of at most so many queries are polished from several starts.
STARTS = 8


def polished(board: Board, dataflow: Dataflow, rng: random.Random) -> Placed | Refused:
    """Puts an arriving dataflow on the board; the others do not move."""
    found = draft(board, dataflow, penalty=True)
    if isinstance(found, Refused):
        return found
    small = len(dataflow.queries) <= SMALL
    order = np.array([found.at[v] for v in dataflow.order])
    cuts = np.cumsum([len(one) for one in dataflow.sets])[: -1 if len(dataflow.queries) <= STARTS else 0]
    facts = (found.flows, found.machines, found.state, found.scratch)
    polish_starts(*facts, found.number, order, cuts, CANDIDATES, small, MOST)
    return commit(board, dataflow, found)
