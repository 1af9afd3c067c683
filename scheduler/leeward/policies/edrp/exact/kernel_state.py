"""Arrays of the compiled branch and bound: tables of bounds, the operators fixed so far, children, the incumbent.

All are NamedTuples of arrays, because numba takes those as arguments; their contents change, they do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays
from leeward.policies.edrp.exact.compiled import kernel
from leeward.policies.edrp.exact.kernel_bound import Reach
from leeward.policies.edrp.exact.tree import Tree


class Tables(NamedTuple):
    """Bounds, first axis: the table.  A table with a `limit` bounds a metric, the others bound F."""

    keep: np.ndarray  # [T, G, n, levels + 1, kmax + 1, most + 2]
    A: np.ndarray  # [T] weight of response time
    B: np.ndarray  # [T] weight of cost
    mu: np.ndarray  # [T, n] price of a unit
    constant: np.ndarray  # [T] what the multipliers of R_max and C_max take off
    limit: np.ndarray  # [T] infinite for tables that bound F
    root: np.ndarray  # [T, G + 1] what the operators without tree parent add that are not fixed at a level
    hang: np.ndarray  # [G + 1, G] first unfixed children of fixed operators, by level
    hang_count: np.ndarray  # [G + 1]


class State(NamedTuple):
    """The operators fixed so far; scalars by level, so that going back needs no arithmetic."""

    nodes: np.ndarray  # [G, kmax] ascending
    size: np.ndarray  # [G]
    finish: np.ndarray  # [G] longest path up to and with an operator when it was fixed
    rest: np.ndarray  # [n] capacity left
    units: np.ndarray  # [n] the same in units of the bound
    cost: np.ndarray  # [G + 1]
    downtime: np.ndarray  # [G + 1]
    response: np.ndarray  # [G + 1]
    price: np.ndarray  # [T] sum of mu_u times what is left on u
    head: np.ndarray  # [G] longest path up to and with an operator
    tail: np.ndarray  # [G] longest path from and with an operator
    join: np.ndarray  # [G] the same, to the last fixed operator of the spine; -inf if it does not lead there
    fixed: np.ndarray  # [G] whether an operator is fixed


class Children(NamedTuple):
    """Configurations to try at each level."""

    nodes: np.ndarray  # [G, cap, kmax]
    size: np.ndarray  # [G, cap]
    bound: np.ndarray  # [G, cap]
    values: np.ndarray  # [G, cap, 4] finish, cost, downtime, response
    order: np.ndarray  # [G, cap] by bound
    count: np.ndarray  # type: ignore[assignment]  # [G]; hides the method of tuples
    at: np.ndarray  # [G] how many were tried


class Incumbent(NamedTuple):
    """The best deployment found, what follows from it, and how far the search may go and has gone."""

    best: np.ndarray  # [1] F of the incumbent, or more than any feasible deployment is worth
    best_nodes: np.ndarray  # [G, kmax]
    best_size: np.ndarray  # [G]
    dropped: np.ndarray  # [1] least bound of children dropped for want of space or time
    budget: np.ndarray  # [1] bounds that may still be computed before the search has to stop where it is
    depth: np.ndarray  # [1] of the search; -2 before the root is branched on, -1 when nothing is open
    slack: np.ndarray  # [2] absolute and relative: nodes not better by more are pruned
    floor: np.ndarray  # [2] downtime that every configuration in question has at least, and at most


class Scratch(NamedTuple):
    """Working space of `branch`, by node unless said otherwise."""

    ready: np.ndarray  # when the input is there
    onward: np.ndarray  # longest way on among fixed operators
    joined: np.ndarray  # the same to the last fixed operator of the spine
    traffic: np.ndarray  # $/h of the streams to fixed operators
    bound: np.ndarray  # of a configuration with a replica there and another elsewhere
    whole: np.ndarray  # of the configuration with all replicas there
    base: np.ndarray  # [T] what the tables add for what hangs below other operators
    nodes: np.ndarray  # [kmax] the configuration at hand
    sorted: np.ndarray  # [kmax] the same, ascending
    pick: np.ndarray  # [kmax] positions in the list of survivors


class Search(NamedTuple):
    """All that one branch and bound needs."""

    p: Arrays
    t: Tree
    x: Reach
    b: Tables
    s: State
    h: Incumbent
    c: Children
    scratch: Scratch


class Branching(NamedTuple):
    """The operator that the search branches on, and the number of replicas in question."""

    level: int
    i: int
    size: int
    least_traffic: float  # $/h to the fixed operators that a replica has at least, wherever it goes


@kernel
def cutoff(h: Incumbent) -> float:
    """A node with at least this bound is pruned: it cannot lead to anything worth having."""
    return h.best[0] - h.slack[0] - h.slack[1] * h.best[0]
