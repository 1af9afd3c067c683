"""Orders of the subtasks that wait for a node. Standard library only, as bolts import it.

The same objects order the simulator's queues.  It calls `key` with arrays in place of numbers, so that may use
arithmetic alone; of `Salvage` it has a compiled twin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Dated(Protocol):
    """Facts of a waiting subtask by which it has its place; times in s on one clock."""

    @property
    def arrived(self) -> Any:
        """When its query came."""

    @property
    def rank(self) -> Any:
        """Of its class; the lower one goes first."""

    @property
    def due(self) -> Any:
        """When its query is to be answered: arrival and objective, less known delays beside the queue."""

    @property
    def unloaded(self) -> Any:
        """x_u: the time that its task takes on idle nodes, at its percentile."""


class Item(Dated, Protocol):
    """And those of its class and its node."""

    @property
    def weight(self) -> Any:
        """Of its class: so much a late query counts, above 0 and at most 1."""

    @property
    def execution(self) -> Any:
        """Mean execution time of its node."""

    @property
    def stages(self) -> Any:
        """Of that time's distribution, 1 or more: an Erlang one of so many stages is as variable (1: exponential)."""


class Ordered:
    """By a key, the least first; ties go to the older one."""

    #: It goes by the classes' weights, which providers learn (model/weights.py).
    weighs = False

    def key(self, item: Dated) -> Any:
        """Its place in the order."""
        raise NotImplementedError

    def next_item(self, waiting: Sequence[Item], *, now: float) -> int:
        """The position of the item to process (`core.policy.Discipline`)."""
        return min(range(len(waiting)), key=lambda position: (self.key(waiting[position]), position))


class Fifo(Ordered):
    """First in, first out."""

    def key(self, item: Dated) -> Any:
        return item.arrived


@dataclass(frozen=True)
class StrictPriority(Ordered):
    """SPR: by class, within one first in, first out."""

    #: More than any time, s.
    apart_s: float = 1e9

    def key(self, item: Dated) -> Any:
        return item.rank * self.apart_s + item.arrived


class EarliestDeadline(Ordered):
    """EDF: by the time at which the query is to be answered."""

    def key(self, item: Dated) -> Any:
        return item.due


class QueueingDeadline(Ordered):
    """EDFQ, the paper's: by t_D, the time by which the subtask has to start (model/budgets.py)."""

    def key(self, item: Dated) -> Any:
        return item.due - item.unloaded


class Salvage(EarliestDeadline):
    """Ours: earliest deadline first, with allowance for weights, but an item is passed over if that saves more.

    Served now, an item is in time with the probability that one execution fits into what it has left.  Those behind it
    wait for one execution more: the j-th of them is lost by that if exactly j executions fit into what it has left.  If
    these probabilities, by weight, are together greater, its turn comes when that is no longer so; nothing is dropped.
    A query is late with its first late subtask, and an objective lets 1 % of the queries be late: a few are given up
    early, where earliest deadline first makes all late that stand behind.

    The chance that an execution does not fit falls with the time left as exp(-stages x left / execution), so an item of
    half the weight is as urgent as one of the full weight that has ln 2 x execution / stages more.
    """

    weighs = True

    def place(self, item: Item) -> float:
        """Its place in the order: its deadline, later for a lighter one."""
        return float(item.due - item.execution * (math.log(item.weight) / item.stages))

    def next_item(self, waiting: Sequence[Item], *, now: float) -> int:
        """The first in the order that is worth its turn; the first of all if none is."""
        order = sorted(range(len(waiting)), key=lambda position: (self.place(waiting[position]), position))
        for place, position in enumerate(order):
            if self._worth([waiting[at] for at in order[place : place + LOOK + 1]], now):
                return position
        return order[0]

    def _worth(self, line: Sequence[Item], now: float) -> bool:
        first = line[0]
        left = (first.due - now) / first.execution
        if left <= 0:
            return False
        if left >= CERTAIN or len(line) == 1:
            return True
        saved, lost = first.weight * (1.0 - fitting(0, left, first.stages)), 0.0
        for count, item in enumerate(line[1:], 1):
            lost += item.weight * fitting(count, (item.due - now) / first.execution, first.stages)
            if lost > saved:
                return False
        return True


#: With so many mean executions left an item is served in its turn, whatever is behind it.
CERTAIN = 4.0
#: Items behind it that are looked at.
LOOK = 60


def fitting(count: int, left: float, stages: int) -> float:
    """P(exactly `count` executions fit into `left` mean ones); each is `stages` exponential stages.

    That is P(stages * count <= N < stages * (count + 1)) of a Poisson N with mean stages * left.
    """
    mean, first = stages * left, stages * count
    if mean <= 0:
        return 0.0 if count else 1.0
    term = math.exp(first * math.log(mean) - mean - math.lgamma(first + 1.0))
    total = term
    for number in range(first + 1, first + stages):
        term *= mean / number
        total += term
    return total


DISCIPLINES: dict[str, Ordered] = {
    "FIFO": Fifo(), "SPR": StrictPriority(), "EDF": EarliestDeadline(), "EDFQ": QueueingDeadline(), "ours": Salvage(),
}  # fmt: skip
