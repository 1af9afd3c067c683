"""An overlay of a cluster's machines in which all have joined, in one process: tables are made when they are asked for.

A machine joins as several logical nodes, and its capacity is divided among them.  Each node has the leaf set of its
true neighbours, and in each place of its routing table the nearest candidate by proximity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.nodes import Loads
from leeward.policies.agiledart.overlay.ids import logical_ids
from leeward.policies.agiledart.overlay.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One of them."""

    name: str
    capacity: int  #: operators that it can hold
    logical: int = 1  #: nodes as which it joins


class Members:
    """See the module. `proximity`: of two machines by name, less is nearer; of one machine's nodes it is 0.

    Raises LeewardError if there is no machine, two have one name, or one joins as no node.
    """

    def __init__(self, machines: Sequence[Machine], proximity: Callable[[str, str], float]) -> None:
        if not machines:
            raise LeewardError("overlay: no machine can host an operator.", remedy="Add a supervisor with a free slot.")
        known = {one.name: one for one in machines}
        if len(known) < len(machines):
            raise LeewardError("overlay: two machines have one name.", remedy="Name each machine once.")
        self._proximity = proximity
        self.nodes = {name: logical_ids(name, one.logical) for name, one in known.items()}  #: of each machine
        self._machine = {node: name for name, nodes in self.nodes.items() for node in nodes}
        self.ids = tuple(sorted(self._machine))
        self._capacity = {
            node: one.capacity // one.logical + (number < one.capacity % one.logical)
            for name, one in known.items()
            for number, node in enumerate(self.nodes[name])
        }
        self._tables: dict[int, Tables] = {}

    def loads(self) -> Loads:
        """Of nodes that host nothing yet."""
        return Loads(self._capacity)

    def machine(self, node: int) -> str:
        """The machine that joined as this node."""
        return self._machine[node]

    def proximity(self, a: int, b: int) -> float:
        """Of two nodes."""
        here, there = self._machine[a], self._machine[b]
        return 0.0 if here == there else self._proximity(here, there)

    def tables(self, node: int) -> Tables:
        """Of one node."""
        if node not in self._tables:
            tables = Tables(node)
            tables.leaves.enter_ring(self.ids)
            for other in self.ids:
                if other != node:
                    tables.routes.offer(other, self.proximity(node, other))
            self._tables[node] = tables
        return self._tables[node]
