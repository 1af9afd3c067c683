"""A dataflow: a directed acyclic graph of queries, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from leeward.core.fields import FieldError, check_number
from leeward.policies.edge_cloud.model.values import KINDS, Query, check_one_of


@dataclass(frozen=True, kw_only=True)
class Dataflow:
    """An output is duplicated on every edge, inputs are interleaved.  Construction checks it (`FieldError`)."""

    name: str
    queries: tuple[Query, ...]
    #: Pairs of positions in `queries`.
    edges: tuple[tuple[int, int], ...]
    #: Events/s that the sources without a rate of their own share evenly.
    rate: float = 0.0

    def __post_init__(self) -> None:
        if not self.queries:
            raise FieldError(
                "queries", [], f"dataflow {self.name} has none", remedy="give at least a source and a sink"
            )
        for v, query in enumerate(self.queries):
            _check_query(f"queries[{v}]", query)
        check_number("rate", self.rate)
        _check_edges(self.edges, len(self.queries))
        try:
            _ = self.sets
        except CycleError as error:
            cycle = error.args[1]
            raise FieldError("edges", cycle, "the edges form a cycle", remedy="remove an edge of it") from None
        for v, query in enumerate(self.queries):
            self._check_ends(f"queries[{v}].kind", v, query)

    def _check_ends(self, field: str, v: int, query: Query) -> None:
        """Sources have no inputs, sinks no outputs, and all others have both."""
        if query.kind == "source" and self.parents[v]:
            raise FieldError(field, query.kind, f"it reads from {list(self.parents[v])}", remedy="remove these edges")
        if query.kind != "source" and not self.parents[v]:
            raise FieldError(field, query.kind, "no query sends to it", remedy="add an edge to it, or make it a source")
        if query.kind == "sink" and self.children[v]:
            raise FieldError(field, query.kind, f"it sends to {list(self.children[v])}", remedy="remove these edges")
        if query.kind != "sink" and not self.children[v]:
            raise FieldError(field, query.kind, "it sends to no query", remedy="add an edge from it, or make it a sink")

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The queries that each query reads from, ascending."""
        found: list[list[int]] = [[] for _ in self.queries]
        for u, v in sorted(self.edges):
            found[v].append(u)
        return tuple(map(tuple, found))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The queries that read from each query, ascending."""
        found: list[list[int]] = [[] for _ in self.queries]
        for u, v in sorted(self.edges):
            found[u].append(v)
        return tuple(map(tuple, found))

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The topological sets S_0, S_1, ... (9): each has the queries all of whose parents are in earlier ones.

        Raises CycleError.
        """
        sorter = TopologicalSorter(dict(enumerate(self.parents)))
        sorter.prepare()
        found = []
        while sorter.is_active():
            ready = sorter.get_ready()
            found.append(tuple(sorted(ready)))
            sorter.done(*ready)
        return tuple(found)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The queries, each after its parents."""
        return tuple(v for one in self.sets for v in one)


def _check_query(field: str, query: Query) -> None:
    check_one_of(f"{field}.kind", query.kind, KINDS)
    check_number(f"{field}.sigma", query.selectivity)
    check_number(f"{field}.delta", query.event_bytes)
    if query.rate is not None:
        check_number(f"{field}.rate", query.rate)
    for name, value in (("rate", query.rate), ("pin", query.pin)):
        if value is not None and query.kind != "source":
            raise FieldError(f"{field}.{name}", value, f"a {query.kind} has none", remedy="give it to sources alone")


def _check_edges(edges: Sequence[tuple[int, int]], queries: int) -> None:
    seen: set[tuple[int, int]] = set()
    for position, edge in enumerate(edges):
        field = f"edges[{position}]"
        for end in edge:
            if not 0 <= end < queries:
                remedy = f"give numbers from 0 to {queries - 1}"
                raise FieldError(field, list(edge), f"there is no query {end}", remedy=remedy)
        if edge in seen:
            raise FieldError(field, list(edge), "a second edge between these two", remedy="keep one of them")
        seen.add(edge)
