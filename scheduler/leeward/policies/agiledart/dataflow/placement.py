"""Operators along the paths of JOIN messages (section IV of the paper).

The nodes that the JOINs passed, linked in reverse, are the dataflow graph.  An operator is laid on a node that was
passed by the JOINs of all sources it reads from and of all sinks it sends to; if they share no node, on the way of the
first one.  Operators of one way are divided evenly over its nodes, in topological order: the first of a node's share
stays there, the others go to the least-loaded node of its leaf set, and so does the first if that node is full.

Our own part: where a whole leaf set is full, the leaf sets of its nodes follow.  An operator that may run on some nodes
only goes to the least loaded of these, before the others are placed.  Loads may be known as of an older heartbeat; the
operators of one application count at once.  A refused application leaves all loads as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.application import Application, Operator, Pair
from leeward.policies.agiledart.dataflow.joins import Join, join
from leeward.policies.agiledart.dataflow.nodes import Draft, Loads, Overlay


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An application in the overlay."""

    hosts: Mapping[str, int]  #: operator -> node
    deciders: Mapping[str, int]  #: operator -> the node of the path that chose its host
    joins: Mapping[Pair, Join]

    @property
    def links(self) -> frozenset[tuple[int, int]]:
        """The dataflow graph: (node, next node towards a sink)."""
        ways = (one.path for one in self.joins.values())
        return frozenset(link for way in ways for link in pairwise(way))


def place(application: Application, overlay: Overlay, loads: Loads) -> Placed:
    """Place all operators, and add them to the loads.

    Raises LeewardError, and changes no load, if the nodes cannot hold all operators or a pinned one, a node is
    unknown, or a sink cannot be reached.
    """
    count = len(application.operators)
    if count > loads.free:
        raise LeewardError(
            f"application {application.name!r} has {count} operators, and all nodes together hold {loads.free} more.",
            remedy="Add nodes, raise their capacity, or end an application.",
        )
    placing = _Placing(overlay, Draft(loads))
    try:
        for operator in application.operators:
            if operator.at is not None:
                placing.put(operator, operator.at, operator.at)
        joins = {
            (source, sink): join(overlay, placing.loads, application.node_of(source), application.node_of(sink))
            for source, sink in application.joins
        }
        shares = [share for way, some in by_way(application, joins).items() for share in divided(some, way)]
        for operator, node in sorted(shares, key=lambda share: _choice(share[0])):
            placing.lay(operator, node)
    except LeewardError as error:
        raise LeewardError(f"application {application.name!r}: {error.message}", remedy=error.remedy) from None
    placing.loads.commit()
    return Placed(hosts=placing.hosts, deciders=placing.deciders, joins=joins)


def by_way(application: Application, joins: Mapping[Pair, Join]) -> dict[tuple[int, ...], list[Operator]]:
    """The operators that no pin places, by the nodes that they are laid along; between neighbours the source's node."""
    ways: dict[tuple[int, ...], list[Operator]] = {}
    for operator in application.operators:
        if operator.at is not None:
            continue
        first, *others = (joins[pair] for pair in application.pairs[operator.name])
        shared = tuple(node for node in first.forwarders if all(node in other.forwarders for other in others))
        ways.setdefault(shared or first.forwarders or first.path[:1], []).append(operator)
    return ways


def divided(operators: Sequence[Operator], way: Sequence[int]) -> list[tuple[Operator, int]]:
    """Each with its node of the way."""
    return [(operator, way[number * len(way) // len(operators)]) for number, operator in enumerate(operators)]


def _choice(operator: Operator) -> float:
    """The number of nodes that may host it: those of few are placed before others fill these."""
    return len(operator.allowed) if operator.allowed is not None else inf


@dataclass(slots=True)
class _Placing:
    """One application under way."""

    overlay: Overlay
    loads: Draft
    hosts: dict[str, int] = field(default_factory=dict)
    deciders: dict[str, int] = field(default_factory=dict)

    def put(self, operator: Operator, host: int, decider: int) -> None:
        self.loads.add(host)
        self.hosts[operator.name], self.deciders[operator.name] = host, decider

    def lay(self, operator: Operator, node: int) -> None:
        """On a node of its way, or near it."""
        self.put(operator, self._host(operator, node), node)

    def _host(self, operator: Operator, node: int) -> int:
        """The node itself for one operator of an application, then its leaf set."""
        if operator.allowed is not None:
            host = self._least(operator.allowed, node)
            if host is None:
                raise LeewardError(
                    f"operator {operator.name!r} may run on {len(operator.allowed)} nodes, and they are full.",
                    remedy="Allow more nodes, raise their capacity, or end an application.",
                )
            return host
        if node not in self.hosts.values() and self.loads.room(node) > 0:
            return node
        return self._nearby(node)

    def _nearby(self, node: int) -> int:
        """The least loaded of its leaf set, or of the leaf sets of those if all are full."""
        seen, ring = {node}, [node]
        while ring:
            around = dict.fromkeys(other for one in ring for other in self.overlay.leaf_set(one) if other not in seen)
            host = self._least(around, node)
            if host is not None:
                return host
            if self.loads.room(node) > 0:
                return node
            seen.update(around)
            ring = list(around)
        raise LeewardError(
            f"node {node:032x} reaches {len(seen)} nodes by leaf sets, and they are full.",
            remedy="Let the overlay converge, add nodes or end an application.",
        )

    def _least(self, nodes: Iterable[int], node: int) -> int | None:
        """The least loaded with room, of several the nearest to `node`."""
        able = [other for other in nodes if self.loads.room(other) > 0]
        return min(
            able, key=lambda other: (self.loads.share(other), self.overlay.proximity(node, other), other), default=None
        )
