"""An overlay in which everybody has joined and nobody has left since, without a message.

Each node has the leaf set of its true neighbours, and in each place of its routing table the nearest candidate by
proximity.  Built for all nodes at once: 10,000 take a few seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from random import Random

import numpy as np
import numpy.typing as npt

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import BITS, common_prefix, digit, nearness
from leeward.policies.agiledart.overlay.tables import Tables

#: Rows of distances that are computed at once: 2,000 x 625 in a network of 10,000.
BLOCK = 2000
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Converged:
    """Nodes by id. `places`: their positions, [nodes, 2]; the distance of two is their proximity.

    Raises LeewardError if two ids are equal, or there is none.
    """

    def __init__(self, ids: Sequence[int], places: Floats) -> None:
        order = sorted(range(len(ids)), key=lambda at: ids[at])
        self.ids: tuple[int, ...] = tuple(ids[at] for at in order)
        if not ids or len(set(ids)) < len(ids):
            raise LeewardError("ids: none, or two are equal.", remedy="Give each node an id of its own.")
        self.places: Floats = np.asarray(places, dtype=float)[order]
        self._at = {node: at for at, node in enumerate(self.ids)}
        self._routes: list[list[int]] = [[] for _ in self.ids]  #: of each node the numbers of those in its table
        self._fill(0, len(self.ids), 0)
        self._tables: dict[int, Tables] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def tables(self, node: int) -> Tables:
        """Of one node; the caller may change them."""
        if node not in self._tables:
            self._tables[node] = self._tables_of(self._at[node])
        return self._tables[node]

    def proximity(self, a: int, b: int) -> float:
        """Of two nodes."""
        x, y = self.places[self._at[a]] - self.places[self._at[b]]
        return float(np.hypot(x, y))

    def root(self, key: int) -> int:
        """The node that is nearest to a key."""
        at = bisect_left(self.ids, key)
        around = (self.ids[at - 1], self.ids[at % len(self.ids)], self.ids[(at + 1) % len(self.ids)])
        return min(around, key=lambda node: nearness(node, key))

    def route(self, source: int, key: int) -> tuple[int, ...]:
        """The nodes that a message passes, from its source to the key's root, both included."""
        path, hop = [source], self.tables(source).next_hop(key)
        while hop is not None:
            path.append(hop)
            hop = self.tables(hop).next_hop(key, path)
        return tuple(path)

    def _tables_of(self, at: int) -> Tables:
        tables = Tables(self.ids[at])
        tables.leaves.enter_ring(self.ids)
        for other in self._routes[at]:
            tables.routes.offer(self.ids[other], self.proximity(self.ids[at], self.ids[other]))
        return tables

    def _fill(self, begin: int, end: int, row: int) -> None:
        """The rows from `row` on of the nodes begin..end - 1, which share that many digits."""
        if end - begin < 2:
            return
        row = common_prefix(self.ids[begin], self.ids[end - 1])  # rows where all have the same digit stay empty
        digits = [digit(node, row) for node in self.ids[begin:end]]
        cuts = [begin, *(begin + at for at in range(1, end - begin) if digits[at] != digits[at - 1])]
        for low, high in zip(cuts, (*cuts[1:], end), strict=True):
            others = np.concatenate((np.arange(begin, low), np.arange(high, end)))
            for node, entry in zip(others.tolist(), self._nearest(others, low, high).tolist(), strict=True):
                self._routes[node].append(entry)
            self._fill(low, high, row + 1)

    def _nearest(self, nodes: Integers, low: int, high: int) -> Integers:
        """Of low..high - 1 the one of least proximity to each node; the smallest id of several."""
        found = np.empty(len(nodes), dtype=np.int64)
        for block in range(0, len(nodes), BLOCK):
            some = self.places[nodes[block : block + BLOCK]]
            squares = ((some[:, None, :] - self.places[None, low:high, :]) ** 2).sum(axis=2)
            found[block : block + BLOCK] = low + squares.argmin(axis=1)
        return found


def drawn(nodes: int, rng: Random, *, side: float = 1.0) -> Converged:
    """An overlay of random ids, on random places of a square."""
    ids = [rng.getrandbits(BITS) for _ in range(nodes)]
    places = np.array([(rng.random() * side, rng.random() * side) for _ in ids])
    return Converged(ids, places)
