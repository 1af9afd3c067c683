"""The nodes of a view, kept while nothing changes of which they are made. Pure.

A view is built each second, to tell what is measured, and most seconds the thousand nodes of a large cluster are those
of the second before. A plan takes slots of a few of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from leeward.control.snapshot import ClusterSnapshot, Supervisor
from leeward.core.learnt import StoreLink
from leeward.core.model import Node
from leeward.core.plan import Slot

#: Views whose nodes are kept: one is for plans, in which slots are taken that nobody uses yet, and one for all else.
KEPT = 2
#: Of a node whose way to the DataStore was not measured.
UNKNOWN = StoreLink()


class _Sources(NamedTuple):
    """Of which nodes are made."""

    rest: tuple[object, ...]  #: seldom changing: supervisors, draining, eps_max, stores
    taken: frozenset[Slot]
    crowded: frozenset[tuple[str, int]]

    def changed(self, other: _Sources) -> set[str]:
        """The nodes whose slots or room differ, where all else is the same."""
        return {slot.node for slot in self.taken ^ other.taken} | {node for node, _ in self.crowded ^ other.crowded}


class NodesSeen:
    """Remembers the nodes of the newest views. Not for several threads."""

    def __init__(self) -> None:
        self._made: list[tuple[_Sources, tuple[Node, ...]]] = []  # newest last

    def of(
        self, cluster: ClusterSnapshot, draining: Set[str], eps_max: int, stores: Mapping[str, StoreLink]
    ) -> tuple[Node, ...]:
        """Supervisors as nodes, with the slots and the room that no other topology has. Equal ones give the same tuple.

        `stores`: by node, its link to the datastore, where one is known.
        """
        rest = cluster.supervisors, frozenset(draining), eps_max, tuple(sorted(stores.items()))
        sources = _Sources(rest, cluster.taken, frozenset(cluster.crowded.items()))
        for entry in self._made:
            if entry[0] == sources:
                self._made.remove(entry)
                self._made.append(entry)
                return entry[1]
        near = next((entry for entry in reversed(self._made) if entry[0].rest == rest), None)
        changed = None if near is None else near[0].changed(sources)
        made = {
            supervisor.node: _node(supervisor, ports, cluster.crowded, draining, eps_max, stores)
            for supervisor, ports in _free(cluster, changed)
        }
        nodes = tuple(made.values()) if near is None else tuple(made.get(node.id, node) for node in near[1])
        self._made = [*self._made, (sources, nodes)][-KEPT:]
        return nodes


def _free(cluster: ClusterSnapshot, only: Collection[str] | None) -> Iterable[tuple[Supervisor, tuple[int, ...]]]:
    """Supervisors that may have work, and their ports that no other topology has. `only`: these; None: all."""
    gone: dict[str, set[int]] = {}
    for slot in cluster.taken:
        if only is None or slot.node in only:
            gone.setdefault(slot.node, set()).add(slot.port)
    for supervisor in cluster.supervisors:
        if supervisor.blacklisted or (only is not None and supervisor.node not in only):
            continue
        taken = gone.get(supervisor.node)
        yield supervisor, tuple(p for p in supervisor.ports if p not in taken) if taken else supervisor.ports


def _node(
    supervisor: Supervisor, ports: tuple[int, ...], crowded: Mapping[str, int], draining: Set[str], eps_max: int,
    stores: Mapping[str, StoreLink],
) -> Node:  # fmt: skip
    return Node(
        id=supervisor.node,
        ports=ports,
        capacity=max(0, len(ports) * eps_max - crowded.get(supervisor.node, 0)),
        draining=supervisor.node in draining,
        meta=supervisor.meta,
        store=stores.get(supervisor.node, UNKNOWN),
    )
