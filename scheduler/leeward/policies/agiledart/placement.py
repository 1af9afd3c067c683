"""A topology that has no plan yet, placed by the dataflow over an overlay of the view's nodes (the paper's section IV).

Paper -> here: an edge node -> a node of Storm, joined as one logical node for each free slot; an operator -> a replica;
the node of a sensor or an actuator -> one of the nodes that a source or a sink is pinned to.

Our own part: a source or a sink without a pin goes to the root of its name, as hash tables place.  Proximity is the
delay between nodes where it is known.  In a circle of components one of the streams counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from leeward.core.apart import seated
from leeward.core.errors import LeewardError, PlanError
from leeward.core.model import ClusterView, Component, Node
from leeward.core.network import Network
from leeward.core.table import replicas
from leeward.policies.agiledart.dataflow.application import Application, Operator
from leeward.policies.agiledart.dataflow.members import Machine, Members
from leeward.policies.agiledart.dataflow.nodes import ByTables, Loads
from leeward.policies.agiledart.dataflow.pins import matched
from leeward.policies.agiledart.dataflow.placement import Placed, place
from leeward.policies.agiledart.overlay.ids import id_of, nearness

#: Replicas by component and node, as `core.placing.carry` takes them.
Deployment = dict[str, dict[str, int]]


def by_dataflow(view: ClusterView) -> tuple[Deployment, str]:
    """As many replicas as each component has now, and why they are where they are.

    Raises LeewardError if the nodes cannot hold them all, or a pin cannot be kept.
    """
    machines = [
        Machine(name=node.id, capacity=node.capacity, logical=len(node.ports)) for node in view.nodes if usable(node)
    ]
    members = Members(machines, _proximity(view))
    operators, overlay = _Operators(view, members), ByTables(members)
    try:
        placed = place(operators.application(), overlay, members.loads())
    except LeewardError:  # pinned operators took each other's room; where all have a room of their own it ends
        placed = place(operators.application(fixed=True), overlay, members.loads())
    wanted: Deployment = {component.id: {} for component in view.components}
    for operator, node in placed.hosts.items():
        counts, machine = wanted[operator.rpartition("#")[0]], members.machine(node)
        counts[machine] = counts.get(machine, 0) + 1
    return wanted, _reason(placed)


def usable(node: Node) -> bool:
    """It can host an operator that is not there yet."""
    return not node.draining and bool(node.ports) and node.capacity > 0


def keep_apart(view: ClusterView, hosts: Mapping[str, Mapping[str, int]]) -> Deployment:
    """Those of the replicas that share no node with a rival, and one at least of each that has rivals.

    Raises PlanError if there are no nodes for them.
    """
    capacity = {node.id: node.capacity for node in view.nodes if not node.draining}
    allowed = {one.id: [node for node in capacity if not one.pinned or node in one.pinned] for one in view.components}
    return seated(view.apart, hosts, allowed, capacity)


def _reason(placed: Placed) -> str:
    joins, used = placed.joins.values(), len(set(placed.hosts.values()))
    hops = max((join.hops for join in joins), default=0)
    return f"placed by dataflow: {used} nodes of an overlay, JOINs of at most {hops} hops"


def _proximity(view: ClusterView) -> Callable[[str, str], float]:
    """Of two nodes, s."""
    known = {node.id for node in view.network.nodes} if view.network else set()

    def proximity(network: Network | None, a: str, b: str) -> float:
        if (a, b) in view.delay_s or network is None or not known.issuperset((a, b)):
            return view.delay_s.get((a, b), 0.0)
        return network.pair(a, b).delay_ms / 1_000

    return partial(proximity, view.network)


class _Operators:
    """The operators of a view. Those that are pinned have a room for each, before any other is placed."""

    def __init__(self, view: ClusterView, members: Members) -> None:
        self._view, self._members = view, members
        self._parts = {component.id: component for component in view.components}
        self._upstream = without_circles(view)
        self._names = {name: names_of(view, component) for name, component in self._parts.items()}
        loads = members.loads()
        choices = {
            operator: sorted(self._pins(name), key=partial(nearness, key=self._key(operator)))
            for name, component in self._parts.items() if component.pinned
            for operator in self._names[name]
        }  # fmt: skip
        self._rooms = matched(choices, {node: loads.room(node) for node in members.ids})
        for node in self._rooms.values():
            loads.add(node)
        self._roots = {operator: self._root(operator, loads) for operator in self._ends() if operator not in choices}

    def application(self, *, fixed: bool = False) -> Application:
        """`fixed`: operators between the ends that are pinned stay in their rooms, not on any node of their pins."""
        at = {operator: self._rooms[operator] for operator in self._ends() if operator in self._rooms} | self._roots
        allowed = {
            operator: frozenset((room,) if fixed else self._pins(operator.rpartition("#")[0]))
            for operator, room in self._rooms.items()
        }
        return Application(
            self._view.topology,
            (
                Operator(
                    name=operator, upstream=tuple(up for before in upstream for up in self._names[before]),
                    at=at.get(operator), allowed=None if operator in at else allowed.get(operator),
                )
                for name, upstream in self._upstream.items()
                for operator in self._names[name]
            ),
        )  # fmt: skip

    def _ends(self) -> list[str]:
        """Operators without an upstream or without a downstream."""
        read = {name for before in self._upstream.values() for name in before}
        ends = [name for name, before in self._upstream.items() if not before or name not in read]
        return [operator for name in ends for operator in self._names[name]]

    def _root(self, operator: str, loads: Loads) -> int:
        """The nearest to its key of those that have room for it beside the pinned ones."""
        free = [node for node in self._members.ids if loads.room(node) > 0]
        if not free:
            raise PlanError(
                f"operator {operator!r} finds no room on any node.", remedy="Add nodes, or end an application."
            )
        node = min(free, key=partial(nearness, key=self._key(operator)))
        loads.add(node)
        return node

    def _key(self, operator: str) -> int:
        return id_of(f"{self._view.topology}/{operator}")

    def _pins(self, component: str) -> list[int]:
        """Nodes of the overlay that it may run on."""
        return [node for name in self._parts[component].pinned for node in self._members.nodes.get(name, ())]


def names_of(view: ClusterView, component: Component) -> list[str]:
    """Names of a component's operators, one for each replica: `component#number`."""
    count = min(len(replicas(view.tables[component.id])), component.max_replicas)
    return [f"{component.id}#{number}" for number in range(count)]


def without_circles(view: ClusterView) -> dict[str, tuple[str, ...]]:
    """Component -> those it reads from, in topological order; of several that could be next the first by name."""
    left = {c.id: {a for a, b in view.streams if b == c.id and a != c.id} for c in view.components}
    order: dict[str, tuple[str, ...]] = {}
    while left:
        ready = [name for name, before in left.items() if before <= order.keys()]
        name = min(ready or left)
        order[name] = tuple(sorted(left.pop(name) & order.keys()))
    return order
