"""The nodes of a view, kept while nothing changes of which they are made. Pure.

A view is built each second, to tell what is measured, and most seconds the thousand nodes of a large cluster are those
of the second before.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from leeward.control.snapshot import ClusterSnapshot
from leeward.core.learnt import StoreLink
from leeward.core.model import Node

#: Views whose nodes are kept: one is for plans, in which slots are taken that nobody uses yet, and one for all else.
KEPT = 2


class NodesSeen:
    """Remembers the nodes of the newest views. Not for several threads."""

    def __init__(self) -> None:
        self._made: list[tuple[tuple[object, ...], tuple[Node, ...]]] = []  # newest last: sources, nodes

    def of(
        self, cluster: ClusterSnapshot, draining: Set[str], eps_max: int, stores: Mapping[str, StoreLink]
    ) -> tuple[Node, ...]:
        """Supervisors as nodes, with the slots and the room that no other topology has. Equal ones give the same tuple.

        `stores`: by node, its link to the datastore, where one is known.
        """
        crowded = tuple(sorted(cluster.crowded.items()))
        key = (cluster.supervisors, cluster.taken, crowded, frozenset(draining), eps_max, tuple(sorted(stores.items())))
        for entry in self._made:
            if entry[0] == key:
                self._made.remove(entry)
                self._made.append(entry)
                return entry[1]
        nodes = _nodes(cluster, draining, eps_max, stores)
        self._made = [*self._made, (key, nodes)][-KEPT:]
        return nodes


def _nodes(
    cluster: ClusterSnapshot, draining: Set[str], eps_max: int, stores: Mapping[str, StoreLink]
) -> tuple[Node, ...]:
    gone: dict[str, set[int]] = {}
    for slot in cluster.taken:
        gone.setdefault(slot.node, set()).add(slot.port)
    nodes = []
    for supervisor in cluster.supervisors:
        if supervisor.blacklisted:
            continue
        ports = supervisor.ports
        if supervisor.node in gone:
            ports = tuple(port for port in ports if port not in gone[supervisor.node])
        nodes.append(
            Node(
                id=supervisor.node,
                ports=ports,
                capacity=max(0, len(ports) * eps_max - cluster.crowded.get(supervisor.node, 0)),
                draining=supervisor.node in draining,
                meta=supervisor.meta,
                store=stores.get(supervisor.node, StoreLink()),
            )
        )
    return tuple(nodes)
