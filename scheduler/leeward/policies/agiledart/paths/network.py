"""Directed networks with one source and one sink, and the least costs over their paths.  Standard library only."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from leeward.core.errors import ConfigError


@dataclass(frozen=True)
class Network:
    """Nodes 0 (the source) to `nodes - 1` (the sink), and links (tail, head) in order of their tails."""

    nodes: int
    links: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for tail, head in self.links:
            if not (0 <= tail < self.nodes and 0 <= head < self.nodes and tail != head):
                raise ConfigError(f"Link ({tail}, {head}) is not between two of {self.nodes} nodes.")
        if list(self.links) != sorted(set(self.links)):
            raise ConfigError("Links are not in order.", remedy="Sort them by tail and head, each once.")
        if math.inf in self.to_sink([1.0] * len(self.links)):
            raise ConfigError("Some node has no path to the sink.", remedy="Add links, or leave such nodes out.")

    @property
    def sink(self) -> int:
        """The last node."""
        return self.nodes - 1

    @cached_property
    def out(self) -> tuple[tuple[int, ...], ...]:
        """Node -> positions of its links."""
        found: list[list[int]] = [[] for _ in range(self.nodes)]
        for position, (tail, _) in enumerate(self.links):
            found[tail].append(position)
        return tuple(map(tuple, found))

    def to_sink(self, costs: Sequence[float]) -> list[float]:
        """J of each node (paper, section V-B): the least cost of its loop-free paths to the sink, by Dijkstra."""
        into: list[list[int]] = [[] for _ in range(self.nodes)]
        for position, (_, head) in enumerate(self.links):
            into[head].append(position)
        ahead = [math.inf] * self.nodes
        ahead[self.sink] = 0.0
        waiting = [(0.0, self.sink)]
        while waiting:
            cost, node = heapq.heappop(waiting)
            if cost > ahead[node]:
                continue
            for position in into[node]:
                tail = self.links[position][0]
                if (found := costs[position] + cost) < ahead[tail]:
                    ahead[tail] = found
                    heapq.heappush(waiting, (found, tail))
        return ahead

    def over_hops(self, costs: Sequence[float], hops: int) -> list[float]:
        """J of each node over its next `hops` links alone (paper, section VII-G)."""
        ahead = [0.0] * self.nodes
        for _ in range(hops):
            ahead = [
                0.0 if node == self.sink else min(costs[link] + ahead[self.links[link][1]] for link in self.out[node])
                for node in range(self.nodes)
            ]
        return ahead

    def paths(self) -> list[tuple[int, ...]]:
        """All loop-free paths from source to sink as positions of links, those of fewer links first."""
        return sorted(self._from(0, frozenset({0})), key=len)

    def _from(self, node: int, seen: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if node == self.sink:
            yield ()
            return
        for position in self.out[node]:
            head = self.links[position][1]
            if head not in seen:
                for rest in self._from(head, seen | {head}):
                    yield (position, *rest)


def grid(side: int, links: int, rng: Random) -> Network:
    """A grid of side x side nodes with one-way links to the right and down, from corner to corner.

    As the paper's numbers of links are not those of grids, links are taken away at random where there are too many, so
    that each node still is on a path, or added as diagonals of random squares.  Raises ConfigError if no such is left.
    """
    nodes = side * side
    right = [(node, node + 1) for node in range(nodes) if (node + 1) % side]
    found = right + [(node, node + side) for node in range(nodes - side)]
    squares = [(node, node + side + 1) for node in range(nodes - side) if (node + 1) % side]
    if not nodes - 1 <= links <= len(found) + len(squares):
        raise ConfigError(f"A grid of {side} x {side} nodes cannot have {links} links.")
    if links > len(found):
        found += rng.sample(squares, links - len(found))
    while len(found) > links:
        spare = [one for one in found if _spare(one, found)]
        if not spare:
            raise ConfigError(f"No link of {len(found)} can be taken away.", remedy="Ask for more links.")
        found.remove(rng.choice(spare))
    return Network(nodes, tuple(sorted(found)))


def _spare(one: tuple[int, int], links: list[tuple[int, int]]) -> bool:
    return sum(one[0] == tail for tail, _ in links) > 1 and sum(one[1] == head for _, head in links) > 1
