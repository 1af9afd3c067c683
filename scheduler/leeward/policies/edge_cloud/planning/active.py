"""A dataflow on the board, and the longest ways through it, as plain lists.

The latency of a query is its `weight` times the `factor` of its resource, which all queries there share; that factor is
all that other dataflows change.  So a question "how long would the ways be if the factor were another" is one pass over
the edges, with nothing to undo.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from leeward.policies.edge_cloud.model.dataflow import Dataflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The longest ways through a dataflow that is placed as a whole."""

    #: L_G (2), s.
    makespan_s: float
    #: A longest path, from its source to its sink; of several the one with the lower numbers.
    critical: tuple[int, ...]
    #: Resource -> the sum of the weights that the critical path has there.
    bears: dict[int, float]
    #: The longest path through each query, s.
    through_s: list[float]


@dataclass(slots=True)
class Active:
    """A dataflow on the board."""

    dataflow: Dataflow
    #: omega_in of each query, events/s.
    w_in: tuple[float, ...]
    #: The resource of each query; None: not placed.
    place: list[int | None]
    #: Of each query; 0 for sources.
    weight: list[float]
    #: Time of transfer from each parent, s, in the order of `Dataflow.parents`; NaN while one of both is not placed.
    hops: list[list[float]]
    #: L_i (10) of each query, s; NaN for a query that is not placed, or behind one.  None: to be measured.
    lengths: list[float] | None = None
    #: None: to be measured.
    ways: Ways | None = None
    #: Non-source queries on each resource.
    on: Counter[int] = field(default_factory=Counter)

    def fan_in(self, v: int) -> Iterator[tuple[int, float]]:
        """The parents of a query, with the time of transfer from each, s."""
        return zip(self.dataflow.parents[v], self.hops[v], strict=True)

    def measure(self, factor: Sequence[float]) -> list[float]:
        """L_i (10) of each query, s, for these factors of the resources."""
        place, weight, hops, parents = self.place, self.weight, self.hops, self.dataflow.parents
        found = [math.nan] * len(place)
        for v in self.dataflow.order:
            r = place[v]
            if r is None:
                continue
            arrival = 0.0
            for u, hop in zip(parents[v], hops[v], strict=False):
                length = found[u] + hop
                if length > arrival:
                    arrival = length
                elif length != length:
                    arrival = length  # NaN
                    break
            found[v] = arrival + weight[v] * factor[r]
        return found

    def heads(self, factor: Sequence[float], without: int) -> list[float]:
        """The same on the paths that avoid one query; -inf where no path to a query does."""
        place, weight, hops, parents = self.place, self.weight, self.hops, self.dataflow.parents
        found = [-math.inf] * len(place)
        for v in self.dataflow.order:
            if v == without:
                continue
            arrival = -math.inf if parents[v] else 0.0
            for u, hop in zip(parents[v], hops[v], strict=False):
                length = found[u] + hop
                if length > arrival:
                    arrival = length
            r = place[v]
            assert r is not None
            found[v] = arrival + weight[v] * factor[r]
        return found

    def tails(self, factor: Sequence[float], without: int = -1) -> list[float]:
        """The longest way from the input of each query to a sink, s, on the paths that avoid one query."""
        place, weight, hops, parents = self.place, self.weight, self.hops, self.dataflow.parents
        children = self.dataflow.children
        found = [-math.inf if some else 0.0 for some in children]
        for v in reversed(self.dataflow.order):
            if v == without:
                continue
            r = place[v]
            assert r is not None
            found[v] += weight[v] * factor[r]
            for u, hop in zip(parents[v], hops[v], strict=False):
                length = found[v] + hop
                if length > found[u]:
                    found[u] = length
        return found

    def find_ways(self, lengths: Sequence[float], factor: Sequence[float]) -> Ways:
        """For the lengths that `measure` gave for these factors."""
        makespan = max(lengths)
        v = lengths.index(makespan)
        path = [v]
        while self.dataflow.parents[v]:
            _, negative = max((lengths[u] + hop, -u) for u, hop in self.fan_in(v))
            v = -negative
            path.append(v)
        bears: dict[int, float] = {}
        for v in path:
            r = self.place[v]
            assert r is not None
            if self.weight[v]:
                bears[r] = bears.get(r, 0.0) + self.weight[v]
        tails = self.tails(factor)
        through = [
            length + tail - own for length, tail, own in zip(lengths, tails, self.latencies(factor), strict=True)
        ]
        return Ways(makespan_s=makespan, critical=tuple(reversed(path)), bears=bears, through_s=through)

    def latencies(self, factor: Sequence[float]) -> list[float]:
        """Lambda of each query, s; 0 for sources."""
        return [weight * factor[r or 0] for weight, r in zip(self.weight, self.place, strict=True)]
