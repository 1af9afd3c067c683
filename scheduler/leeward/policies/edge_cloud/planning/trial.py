"""A trial: by how much the total makespan (8) would change if one query moved, without moving it.

Only dataflows that share the resource that the query leaves, or the one that it comes to, can change.  Each of these
is measured with the factors that the two resources would have, so a trial has nothing to undo.

The best of all resources is found without measuring most of them.  The makespan of a dataflow is the greatest of sums
that grow linearly with the factors of resources, so it is convex, and never below its tangent: the weight of its
critical path times the change of the factor.  These tangents, summed over all dataflows, are the board's `slope`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leeward.policies.edge_cloud.planning.active import Active
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats, Mask

#: A change that gains less than this is taken for rounding, s.
LEAST_GAIN_S = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One query goes from one resource to another."""

    name: str
    query: int
    before: int
    after: int
    #: Of the total makespan (8), s; negative for a gain.
    change_s: float


class Trial:
    """Questions about a query that is no source, on a board whose dataflows are all placed as a whole.

    The answers hold until the board changes.
    """

    def __init__(self, board: Board, name: str, v: int) -> None:
        ways, one = board.ways(name), board.active[name]
        query, r = one.dataflow.queries[v], _placed(one, v)
        assert query.kind != "source", f"query {v} of {name} is a source, and stays where its sensor is"
        self.name, self.query, self.before = name, v, r
        self._board, self._loads, self._one = board, board.loads, one
        self._kind, self._bytes, self._w_in = query.type, query.event_bytes, one.w_in[v]
        self._sink = query.kind == "sink"
        self._ways, self._limits = ways, board.limits.get(name)
        #: The factors after the query has left, and before it comes anywhere.
        self._factor = self._loads.factor.copy()
        self._factor[r] = self._loads.factor_without((name, v), r)
        #: By how much the factor of its resource grows when it leaves: 0 or less, if the overhead grows with m.
        self._freed = self._factor[r] - self._loads.factor[r]

    @cached_property
    def allowed(self) -> Mask:
        """The other resources that it could move to and break no constraint, its own and those of what runs there.

        A constraint that is broken already where the query is now bars no move.
        """
        if not self._may_leave:
            return np.zeros(len(self._factor), dtype=np.bool_)
        found = self._loads.allowed(self._kind, self._w_in, self._service_s)
        if self._sink:
            found &= ~self._loads.is_edge
        if self._limits is not None:
            found &= self._limits.mask(self.query, self._one.place, len(found))
        found[self.before] = False
        return found

    def allows(self, r: int) -> bool:
        """The same for one resource."""
        if r == self.before or (self._sink and self._loads.is_edge[r]):
            return False
        if self._limits is not None and not self._limits.allow(self.query, r, self._one.place):
            return False
        return self._may_leave and self._loads.allows(self._kind, self._w_in, r)

    @cached_property
    def _may_leave(self) -> bool:
        """False if a constraint holds where the query is now, and would not without it."""
        r, loads = self.before, self._loads
        held = float(loads.fastest[r]) * float(loads.service_s[r]) < 1
        return not held or loads.holds_without((self.name, self.query), r)

    def change_s(self, r: int) -> float:
        """By how much the total makespan (8) changes if the query moves to r, s, whatever the constraints say."""
        if r == self.before:
            return 0.0
        return self.own_s(r) - self._ways.makespan_s + self._leaving_s + self._joining_s(r)

    def to(self, r: int) -> Move | None:
        """The move to r; None if that breaks a constraint, or does not lower the total."""
        if not self.allows(r):
            return None
        growth = self._loads.factor_beside(self._kind, r) - self._factor[r]
        least = self.own_s(r) - self._ways.makespan_s + self._tangent_s + self._others_slope(r) * growth
        if least >= -LEAST_GAIN_S:
            return None
        change = self.change_s(r)
        return self._move(r, change) if change < -LEAST_GAIN_S else None

    def best(self) -> Move | None:
        """The move that breaks no constraint and lowers the total most, to the lower number of two; None if none does.

        Looks at resources by their bound until that is no better than the best found.
        """
        least = np.where(self.allowed, self.least_s, math.inf)
        if least.min() >= -LEAST_GAIN_S:
            return None
        least = np.where(self.allowed, self.closer_s, math.inf)
        best, change = -1, -LEAST_GAIN_S
        while least[r := int(least.argmin())] < change:
            least[r] = math.inf
            found = self.change_s(r)
            if found < change:
                best, change = r, found
        return None if best < 0 else self._move(best, change)

    def _move(self, r: int, change_s: float) -> Move:
        return Move(name=self.name, query=self.query, before=self.before, after=r, change_s=change_s)

    @cached_property
    def least_s(self) -> Floats:
        """By resource: no move there changes the total by less than this, s (but for rounding)."""
        growth = self._loads.factors_beside(self._service_s) - self._loads.factors
        slope = self._board.slope.copy()
        for r, weight in self._ways.bears.items():
            slope[r] -= weight  # of the others alone
        found = self._own_least(growth)
        found += self._tangent_s - self._ways.makespan_s
        found += slope * growth
        return found

    @cached_property
    def closer_s(self) -> Floats:
        """The same, nearer to the truth: with what the leaving really gains the others."""
        found = self.least_s + (self._leaving_s - self._tangent_s)
        for name, then in self._left.items():
            # so far above its tangent without the query; where that dataflow slows down again, it may be on the tangent
            above = then - self._board.makespan(name) - self._board.sharing[self.before][name] * self._freed
            found[list(self._board.active[name].on)] -= above
        return found

    def _others_slope(self, r: int) -> float:
        return float(self._board.slope[r]) - self._ways.bears.get(r, 0.0)

    @cached_property
    def _tangent_s(self) -> float:
        """By how much the others change at least if the query leaves, s."""
        return self._others_slope(self.before) * self._freed

    @cached_property
    def _service_s(self) -> Floats:
        return self._loads.service_with(self._kind)

    def _own_least(self, growth: Floats) -> Floats:
        """`own_s` of each resource; less where queries of the same dataflow run, which only become slower."""
        loads, one, queries = self._loads, self._one, self._one.dataflow.queries
        found = loads.latency_with(self._kind, self._service_s)
        ways = [
            self._heads[u] + loads.transfer_from(_placed(one, u), queries[u].event_bytes)
            for u in one.dataflow.parents[self.query]
        ]
        found = found + (ways[0] if len(ways) == 1 else np.maximum.reduce(ways))
        ways = [
            self._tails[w] + loads.transfer_to(_placed(one, w), self._bytes) for w in one.dataflow.children[self.query]
        ]
        if ways:
            found += ways[0] if len(ways) == 1 else np.maximum.reduce(ways)
        np.maximum(found, max(self._heads), out=found)
        for r in one.on:
            if growth[r] < 0:
                found[r] = self.own_s(r)
        return found

    def own_s(self, r: int) -> float:
        """The makespan of the query's own dataflow if the query were on r, s."""
        if r == self.before:
            return self._ways.makespan_s
        loads, one, queries = self._loads, self._one, self._one.dataflow.queries
        before, then = self._factor[r], loads.factor_beside(self._kind, r)
        if r in one.on and then != before:
            self._factor[r] = then
            heads, tails = one.heads(self._factor, self.query), one.tails(self._factor, self.query)
            self._factor[r] = before
        else:
            heads, tails = self._heads, self._tails
        arrival = max(
            heads[u] + loads.transfer_s(_placed(one, u), r, queries[u].event_bytes)
            for u in one.dataflow.parents[self.query]
        )
        onward = max(
            (tails[w] + loads.transfer_s(r, _placed(one, w), self._bytes) for w in one.dataflow.children[self.query]),
            default=0.0,
        )
        return max(arrival + loads.weight(self._kind, r) * then + onward, max(heads))

    @cached_property
    def _heads(self) -> list[float]:
        """The longest ways that avoid the query to the end of each other one, s."""
        return self._one.heads(self._factor, self.query)

    @cached_property
    def _tails(self) -> list[float]:
        """The same from the beginning of each other one to a sink."""
        return self._one.tails(self._factor, self.query)

    @cached_property
    def _left(self) -> dict[str, float]:
        """The makespans, s, of the other dataflows on the query's resource after it has left; no other one changes."""
        found = {}
        for name, weight in self._board.sharing[self.before].items():
            # a critical path elsewhere stays the longest when the others become shorter
            if name != self.name and (weight or self._freed > 0):
                found[name] = max(self._board.active[name].measure(self._factor))
        return found

    @cached_property
    def _leaving_s(self) -> float:
        """By how much the others change if the query leaves, s."""
        return math.fsum(then - self._board.makespan(name) for name, then in self._left.items())

    def _joining_s(self, r: int) -> float:
        """By how much the others change further if the query, having left, comes to r, s."""
        before, then = self._factor[r], self._loads.factor_beside(self._kind, r)
        if then == before:
            return 0.0
        self._factor[r] = then
        found = math.fsum(
            self._slowed_s(name, r, then - before) for name in self._board.sharing[r] if name != self.name
        )
        self._factor[r] = before
        return found

    def _slowed_s(self, name: str, r: int, growth: float) -> float:
        """By how much another dataflow changes when the factor of r, which is set already, has grown by so much, s."""
        one, left = self._board.active[name], self._left.get(name)
        if growth > 0 and one.on[r] == 1 and self.before not in one.on:
            # of its paths, only those through its one query there grow
            v = next(v for v, s in enumerate(one.place) if s == r and one.weight[v])
            ways = self._board.ways(name)
            return max(0.0, ways.through_s[v] + one.weight[v] * growth - ways.makespan_s)
        return max(one.measure(self._factor)) - (self._board.makespan(name) if left is None else left)


def _placed(one: Active, v: int) -> int:
    r = one.place[v]
    assert r is not None, f"query {v} of {one.dataflow.name} is not placed"
    return r
