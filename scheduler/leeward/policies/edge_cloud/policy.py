"""The policy for edge and cloud (spec of edge and cloud; the paper's section 4): all dataflows are placed together.

Paper -> here: dataflow G -> a topology; query v -> a component with one replica; resource r -> a node whose meta says
its class; mu -> the node of the component's replica; the active dataflows -> the views of `decide_all`.  A dataflow
arrives with a view that has no plan of ours yet, and departs when its view is no longer shown.

Our own part: a topology that was placed by an earlier process of the service is taken as it runs; nodes that come, go
or drain make a new board, on which a dataflow with a query on a lost node arrives again; a dataflow that fits nowhere
is refused with its query and the reason, and is tried again after a departure; pins of queries and `leeward.apart` hold
(`planning/seating.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leeward.core.errors import LeewardError
from leeward.core.model import ClusterView, Node
from leeward.core.network import Network
from leeward.core.placing import carry
from leeward.core.plan import Estimate, Plan, Refusal
from leeward.core.table import replicas
from leeward.policies.edge_cloud.facts import dataflow_of, fabric_of, limits_of
from leeward.policies.edge_cloud.methods.outcome import Refused
from leeward.policies.edge_cloud.methods.strategy import strategy
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.instance import check_on_fabric
from leeward.policies.edge_cloud.model.values import Kind, Query
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.seating import seat
from leeward.policies.edge_cloud.settings import UNBOUNDED, EdgeCloudSettings

MS = 1e3
_ANY_EDGE = {"class": "edge", "battery_mAh": "10000", "base_mA": "0", "recharge_s": "86400"}
#: The resource of each query.
Places = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The facts that a board is made of."""

    nodes: tuple[Node, ...]
    network: Network | None


@dataclass(slots=True, kw_only=True)
class _Known:
    """A topology that is on the board, or was refused."""

    view: ClusterView
    #: Where its queries run by the newest view; None: not placed by us yet.
    present: Places | None
    refused: str = ""


class EdgeCloud:
    """See the module. Keeps the board between two questions, so that one arrival costs the planning of one dataflow."""

    Settings = EdgeCloudSettings
    #: It plans from the facts of an application, not from measured rates.
    at_once = True

    def __init__(self, settings: EdgeCloudSettings) -> None:
        self._settings = settings
        self._strategy = strategy(settings.method, settings.rebalance)
        self._bounded = settings.method not in UNBOUNDED
        self._cluster: _Cluster | None = None
        self._board: Board | None = None
        self._names: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}
        self._known: dict[str, _Known] = {}
        #: Those that may run elsewhere than the board says, or not at all.
        self._open: dict[str, _Known] = {}

    def prepare(self) -> None:
        """Places a dataflow on a board that is thrown away, so that all compiled code is ready."""
        fabric = fabric_of(
            [
                Node(id="edge", ports=(), capacity=0, meta=_ANY_EDGE),
                Node(id="cloud", ports=(), capacity=0, meta={"class": "cloud"}),
            ],
            None,
            self._settings,
        )
        chain = (_query("source", rate=1.0, pin=0), _query("query"), _query("sink"))
        board, rng = Board(fabric), random.Random(0)
        self._strategy.arrive(board, Dataflow(name="any", queries=chain, edges=((0, 1), (1, 2))), rng)
        if self._strategy.settle is not None:
            self._strategy.settle(board, rng)

    def decide_all(
        self, views: Sequence[ClusterView], *, now: float, rng: random.Random
    ) -> Mapping[str, Plan | Refusal]:
        """A plan for each topology that has to move, and a refusal for each that fits nowhere.

        Raises `FieldError` for facts of the nodes or the network that are missing or wrong.  A dataflow whose own facts
        are wrong is refused with that reason, and the others go on.
        """
        if not views:
            self._forget_all()
            self._board = None
            return {}
        board = self._board_for(views[0])
        departed = self._depart(board, views)
        arrived = [view for view in views if self._look(board, view, again=departed)]
        for view in arrived:
            self._arrive(board, view, rng)
        if (arrived or departed) and self._strategy.settle is not None:
            self._settle(board, self._strategy.settle, rng)
            self._open = dict(self._known)
        return dict(self._answers(board))

    def _board_for(self, view: ClusterView) -> Board:
        """The board, or a new one if nodes or network are others than before."""
        cluster, known = _Cluster(nodes=view.nodes, network=view.network), self._cluster
        if self._board is not None and known is not None and _same(cluster, known):
            self._cluster = cluster
            return self._board
        usable = [node for node in view.nodes if not node.draining]
        self._board = Board(fabric_of(usable, view.network, self._settings))
        self._cluster = cluster
        self._names = tuple(node.id for node in usable)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._forget_all()
        return self._board

    def _forget_all(self) -> None:
        self._known.clear()
        self._open.clear()

    def _depart(self, board: Board, views: Sequence[ClusterView]) -> bool:
        """Topologies that are no longer shown, or were submitted anew, leave the board; whether any had run."""
        shown = {view.topology: view.topology_id for view in views}
        gone = [name for name, known in self._known.items() if shown.get(name) != known.view.topology_id]
        running = [name for name in gone if name in board.active]
        for name in running:
            board.remove(name)
        for name in gone:
            del self._known[name]
            self._open.pop(name, None)
            board.limits.pop(name, None)
        return bool(running)

    def _look(self, board: Board, view: ClusterView, *, again: bool) -> bool:
        """Notes the newest view of a topology; whether it has to be placed."""
        known = self._known.get(view.topology)
        if known is not None:
            if known.view is not view:
                known.view, known.present = view, self._places(view)
                self._open[view.topology] = known
            return bool(known.refused) and again
        present = None if view.first else self._places(view)
        known = self._known[view.topology] = self._open[view.topology] = _Known(view=view, present=present)
        if present is None:
            return True
        dataflow = self._dataflow(view)
        if dataflow is None:
            return False
        limits = limits_of(view, self._numbers)
        if not limits.hold(present):
            return True
        if limits.queries:
            board.limits[view.topology] = limits
        board.enter(dataflow, present)
        return False

    def _places(self, view: ClusterView) -> Places | None:
        """The resource of each component's only replica; None if one has none, or has it on no known node."""
        found = []
        for component in view.components:
            owners = replicas(view.tables.get(component.id, ()))
            slot = view.assignment.get(owners[0]) if len(owners) == 1 else None
            if slot is None or slot.node not in self._numbers:
                return None
            found.append(self._numbers[slot.node])
        return found

    def _dataflow(self, view: ClusterView) -> Dataflow | None:
        """None if its facts are wrong: then it is refused with that reason."""
        assert self._board is not None
        try:
            dataflow = dataflow_of(view.topology, view.components, view.streams, self._numbers)
            check_on_fabric(self._board.fabric, dataflow)
            return dataflow
        except LeewardError as error:
            self._known[view.topology].refused = str(error)
            return None

    def _arrive(self, board: Board, view: ClusterView, rng: random.Random) -> None:
        known, name = self._known[view.topology], view.topology
        known.refused = ""
        dataflow = self._dataflow(view)
        if dataflow is None:
            return
        before = _placements(board)
        placed = self._strategy.arrive(board, dataflow, rng)
        if isinstance(placed, Refused):
            known.refused = f"{view.components[placed.query].id}: {placed.reason}"
            return
        limits = limits_of(view, self._numbers)
        if limits.queries:
            board.limits[name] = limits
        stuck = self._seat_all(board)
        if stuck is not None:
            board.remove(name)
            board.limits.pop(name, None)
            _restore(board, before)
            topology, query = stuck
            component = self._known[topology].view.components[query].id
            known.refused = (
                f"{topology}, {component}: no node that its pin and leeward.apart allow has room for it within the "
                "constraints."
            )

    def _settle(self, board: Board, settle: Callable[[Board, random.Random], None], rng: random.Random) -> None:
        """As the strategy does; where limits cannot hold then, all stays as it was."""
        before = _placements(board)
        settle(board, rng)
        if self._seat_all(board) is not None:
            _restore(board, before)

    def _seat_all(self, board: Board) -> tuple[str, int] | None:
        """The first dataflow and query of which limits cannot hold; None if all hold."""
        for name in board.active:
            stuck = seat(board, name, bounded=self._bounded)
            if stuck is not None:
                return name, stuck
        return None

    def _answers(self, board: Board) -> dict[str, Plan | Refusal]:
        found: dict[str, Plan | Refusal] = {}
        for name, known in tuple(self._open.items()):
            if known.refused:
                found[name] = Refusal(reason=known.refused)
                continue
            wanted = board.active[name].place
            if wanted == known.present:
                del self._open[name]
            else:
                found[name] = self._plan_or_why(board, known, [r for r in wanted if r is not None])
        return found

    def _plan_or_why(self, board: Board, known: _Known, wanted: Places) -> Plan | Refusal:
        """A node without a slot for this topology is no reason to leave the others without a plan."""
        try:
            return self._plan(board, known, wanted)
        except LeewardError as error:
            return Refusal(reason=str(error))

    def _plan(self, board: Board, known: _Known, wanted: Places) -> Plan:
        view = known.view
        makespan = board.makespan(view.topology)
        edges = sum(bool(board.loads.is_edge[r]) for r in wanted)
        before = known.present or wanted
        moved = sum(old != new for old, new in zip(before, wanted, strict=True))
        change = f"{moved} moved" if known.present is not None else "arrived"
        reason = f"{change}: makespan {makespan * MS:.1f} ms, {edges} on edges, {len(wanted) - edges} in the cloud"
        return carry(
            view,
            {component.id: {self._names[r]: 1} for component, r in zip(view.components, wanted, strict=True)},
            reason=reason,
            estimate=Estimate(response_s=makespan),
        )


def _query(kind: Kind, *, rate: float | None = None, pin: int | None = None) -> Query:
    return Query(type=0, selectivity=1.0, event_bytes=1.0, kind=kind, rate=rate, pin=pin)


def _placements(board: Board) -> dict[str, tuple[int, ...]]:
    return {name: board.placement(name) for name in board.active}


def _restore(board: Board, placements: Mapping[str, tuple[int, ...]]) -> None:
    for name, placement in placements.items():
        board.rearrange(name, placement)


def _same(a: _Cluster, b: _Cluster) -> bool:
    """Free slots come and go with topologies, and are no other cluster."""
    if a.nodes is b.nodes and a.network is b.network:
        return True
    facts = [[(node.id, node.draining, node.meta) for node in one.nodes] for one in (a, b)]
    return facts[0] == facts[1] and a.network == b.network
