"""Many topologies on one simulated cluster, behind the ports of the service: its size is real, its tasks are not.

Snapshot, draining nodes, placements and Nimbus are one for all topologies, record, journal and barriers are each
topology's own, as in ZooKeeper. The plugin places a plan whose slots exist and are no other topology's, at a rebalance
and when the plan's placement is written, as Storm's next pass would. Rates, queues and counts are those of `flows.py`,
and each task publishes the line that it would write. Two things are stand-ins: tasks report at each barrier at once, as
none has anything to save or to start, and counts go on at the moment in which somebody reads them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from leeward.control.ports import Clock, EventSink, Ports, StreamFacts, Structure, TopologyPorts, Wake
from leeward.core.control import Phase, Report
from leeward.core.coordinates import Coordinate
from leeward.core.keys import GROUPS
from leeward.core.plan import Placement, Slot, restarting
from leeward.core.table import Table, first_tables, owned
from leeward.sim.memory import (
    MemoryBarriers,
    MemoryClusterStore,
    MemoryControlStore,
    MemoryHistory,
    MemoryLeftovers,
    MemoryLock,
    MemoryNimbus,
    MemoryRequests,
    MemorySnapshots,
    World,
    supervisor_entries,
    topology_entry,
)
from leeward.sim.world.cluster import structure_of
from leeward.sim.world.counts import Counts
from leeward.sim.world.description import WorldFile
from leeward.sim.world.flows import Flows, Layout
from leeward.sim.world.lines import Line


class Tenant:
    """One topology of the cluster: its world, its slots, the counts of its tasks."""

    def __init__(self, world: WorldFile, slots: Mapping[int, Slot], tasks: Mapping[int, str], now: float) -> None:
        self.file, self.name, self.id = world, world.name, f"{world.name}-1-1"
        self.world, self.tasks, self.slots = World(), dict(tasks), dict(slots)
        self.load = 0.0  #: tuples/s, all sources together
        self._first = first_tables(self.tasks, None)
        self._stateful = {component.id for component in world.components if component.kind == "stateful"}
        self._bytes = {component.id: component.state_bytes for component in world.components}
        self._flows, self._counts = Flows(world), Counts(world, self.tasks)
        self._processes: dict[int, object] = {}  # task -> its process, from its first restart on
        self._now, self._response_s = now, 0.0
        self._laid_out: tuple[object, object] = (None, None)
        self._owned: dict[int, tuple[int, ...]] = {}
        self._lines: dict[int, Line] = {}  # of the layout
        self._lock = threading.Lock()  # its service and the API read at the same time

    def place(self, slots: Mapping[int, Slot]) -> None:
        """Storm has placed it so: a worker whose tasks change starts anew."""
        with self._lock:
            self._processes |= {task: object() for task in restarting(self.slots, slots)}
            self.slots = dict(slots)

    def lines(self, now: float, places: Mapping[str, Coordinate]) -> dict[int, str]:
        """Task -> the line that it publishes at `now`."""
        with self._lock:
            self._pass(now)
            self._layout()  # may have changed since the last step, if this one has no length
            return {task: self._line(task, name, now, places) for task, name in self.tasks.items()}

    def facts(self, now: float) -> StreamFacts:
        """The ends of its streams."""
        with self._lock:
            last, done = round(self._flows.offered), round(self._flows.taken)
            return StreamFacts(last=last, done=done, results=((now - self._response_s, now),))

    def report(self, task: int) -> Report:
        """At any barrier."""
        name = self.tasks[task]
        return Report(task=task, component=name, bytes=self._state(task, name), waited=0.01)

    def _pass(self, now: float) -> None:
        layout, seconds = self._layout(), now - self._now
        if seconds <= 0:
            return
        sources = self.file.sources
        offered = {name: self.load * seconds / len(sources) for name in sources}
        runs = self.world.record is None or self.world.record.phase is Phase.RUN
        passed = self._flows.step(seconds, offered, layout, runs=runs)
        self._now, self._response_s = now, passed.response_s
        if runs:
            self._counts.add(passed, layout, seconds)

    def _layout(self) -> Layout:
        record = self.world.record
        tables: Mapping[str, Table] = record.tables if record and record.tables else self._first
        if self._laid_out[0] is not tables or self._laid_out[1] is not self.slots:
            self._laid_out = (tables, self.slots)
            self._layout_now = Layout.of(self.file, tables, {task: slot.node for task, slot in self.slots.items()})
            self._owned = {task: owned(tables[name], task) for task, name in self.tasks.items()}
            self._lines.clear()
        return self._layout_now

    def _line(self, task: int, name: str, now: float, places: Mapping[str, Coordinate]) -> str:
        counters = self._counts.of(task, self._processes.get(task))
        if task not in self._lines:
            self._lines[task] = self._begun(task, name, now, places)
        return self._lines[task].at(now, counters)

    def _begun(self, task: int, name: str, now: float, places: Mapping[str, Coordinate]) -> Line:
        node, source = self.slots[task].node, name in self.file.sources
        published = self._counts.metrics(
            task, name, now, self._processes.get(task), mode="running", state_bytes=self._state(task, name),
            place=places[node], reads=f"{self.name}.in" if source else "",
            more={"task": task, "node": node, "epoch": 0, "state_keys": 0, "counters": {}},
        )  # fmt: skip
        return Line(published, self._owned[task], looks=name in self._stateful, times=not source)

    def _state(self, task: int, name: str) -> int:
        return self._bytes[name] * len(self._owned.get(task, ())) // GROUPS


class SharedCluster:
    """See the module. Safe to use from several threads."""

    def __init__(
        self, worlds: Sequence[WorldFile], *, nodes: Mapping[str, Iterable[int]],
        places: Mapping[str, Coordinate] | None = None, clock: Clock,
    ) -> None:  # fmt: skip
        """`nodes`: node -> ports; `places`: where each is in the network. Topologies get slots one after the other,
        as many as each has `workers`, first ports first, as Storm deals them."""
        self.nodes = {node: tuple(ports) for node, ports in sorted(nodes.items())}
        self._places = {node: Coordinate() for node in self.nodes} | dict(places or {})
        self._clock, self._lock = clock, threading.RLock()
        self._all = World()  # of Nimbus, and all that is one for all topologies
        self._watchers: dict[Wake, None] = {}
        self.spent_s = 0.0  #: processor time that threads of the service have spent in this stand-in
        self.tenants: dict[str, Tenant] = {}
        order = [Slot(node, port) for node, port in self._dealt()]
        for world in worlds:
            mine, order = order[: world.workers], order[world.workers :]
            tasks = _tasks(world)
            slots = {task: mine[at % len(mine)] for at, task in enumerate(tasks)}
            self.tenants[world.name] = Tenant(world, slots, tasks, clock.now())
            self._all.structures[world.name] = structure_of(world, self.tenants[world.name].id)
        self._by_id = {tenant.id: tenant for tenant in self.tenants.values()}
        self._supervisors = json.dumps(supervisor_entries(self.nodes))
        self._entries = {name: _entry(tenant, "no plan") for name, tenant in self.tenants.items()}
        self._publish()

    def _dealt(self) -> Iterator[tuple[str, int]]:
        for at in range(max(map(len, self.nodes.values()))):
            for node, ports in self.nodes.items():
                if at < len(ports):
                    yield node, ports[at]

    @property
    def nimbus(self) -> MemoryNimbus:
        """Nimbus, and behind it the plugin."""
        return MemoryNimbus(self._all, place=lambda _, name: self._scheduled(name))

    def ports(self, name: str, sink: EventSink) -> Ports:
        """The ports that the service of this topology gets."""
        tenant = self.tenants[name]
        world = tenant.world

        def open_topology(_: Structure) -> TopologyPorts:
            return TopologyPorts(
                control=_Control(self, tenant), barriers=_Prompt(tenant), requests=MemoryRequests(world),
                lock=MemoryLock(world), history=MemoryHistory(world),
            )  # fmt: skip

        return Ports(
            nimbus=self.nimbus, snapshots=_Published(self, world), cluster=_Board(self), clock=self._clock,
            sink=sink, open_topology=open_topology, leftovers=MemoryLeftovers(world),
        )  # fmt: skip

    # --- the plugin

    def _scheduled(self, name: str) -> None:
        with self.spending(), self._lock:
            tenant = self.tenants[name]
            wanted = tenant.world.placement
            reason = self._misfit(tenant, wanted)
            if wanted is not None and not reason:
                tenant.place(wanted.slots)
            self._entries[name] = _entry(tenant, reason, wanted)
            self._publish()

    def _misfit(self, tenant: Tenant, wanted: Placement | None) -> str:
        if wanted is None:
            return "no plan"
        slots = set(wanted.slots.values())
        for slot in sorted(slots):
            if slot.port not in self.nodes.get(slot.node, ()):
                return f"plan names unknown slot {slot.node}:{slot.port}"
        for other in self.tenants.values():
            taken = slots.intersection(other.slots.values()) if other is not tenant else ()
            if taken:
                return f"slot {min(taken).node}:{min(taken).port} is used by topology {other.name!r}"
        return ""

    def _publish(self) -> None:
        topologies = ", ".join(self._entries.values())
        self._all.snapshot = f'{{"version": 1, "supervisors": {self._supervisors}, "topologies": [{topologies}]}}'
        watchers, self._watchers = self._watchers, {}
        for wake in watchers:
            wake()

    # --- its parts read and write

    @contextmanager
    def spending(self) -> Iterator[None]:
        """The processor time within is this stand-in's."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.spent_s += time.thread_time() - began

    def lines(self, topology_id: str) -> dict[int, str]:
        """Task -> the line that it published last."""
        with self.spending():
            return self._by_id[topology_id].lines(self._clock.now(), self._places)

    def beats(self, topology_id: str) -> dict[int, str]:
        """Task -> a sign of life."""
        return dict.fromkeys(self._by_id[topology_id].tasks, str(self._clock.now()))

    def facts(self, topology_id: str) -> StreamFacts:
        """The ends of a topology's streams."""
        return self._by_id[topology_id].facts(self._clock.now())

    def snapshot(self, wake: Wake) -> str | None:
        """The plugin's newest snapshot; `wake` is called when it publishes again."""
        with self._lock:
            self._watchers[wake] = None
            return self._all.snapshot

    def wants(self, name: str, placement: Placement | None) -> None:
        """A coordinator has written its placement, or taken it away."""
        with self._lock:
            others = {other: wanted for other, wanted in self._all.placements.items() if other != name}
            self._all.placements = others | ({name: placement} if placement is not None else {})
        if placement is not None:
            self._scheduled(name)

    @property
    def shared(self) -> World:
        """Of Nimbus and of all that is one for all topologies."""
        return self._all


class _Board(MemoryClusterStore):
    """ClusterStore."""

    def __init__(self, cluster: SharedCluster) -> None:
        super().__init__(cluster.shared)
        self._cluster = cluster

    def snapshot(self, wake: Wake) -> str | None:
        return self._cluster.snapshot(wake)


class _Control(MemoryControlStore):
    """ControlStore whose placements all topologies see."""

    def __init__(self, cluster: SharedCluster, tenant: Tenant) -> None:
        super().__init__(tenant.world)
        self._cluster, self._name = cluster, tenant.name

    def write_placement(self, placement: Placement | None) -> None:
        super().write_placement(placement)
        self._cluster.wants(self._name, placement)


class _Prompt(MemoryBarriers):
    """BarrierStore at which all tasks report at once."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__(tenant.world)
        self._tenant = tenant

    def reports(
        self, barrier: str, known: Iterable[int], wake: Wake, *, likely: Iterable[int] = ()
    ) -> Mapping[int, Report]:
        there = set(known)
        return {task: self._tenant.report(task) for task in self._tenant.tasks if task not in there}


class _Published(MemorySnapshots):
    """SnapshotStore whose measurements are those of the moment in which they are asked for."""

    def __init__(self, cluster: SharedCluster, world: World) -> None:
        super().__init__(world)
        self._cluster = cluster

    def metrics(self, topology_id: str) -> Mapping[int, str]:
        return self._cluster.lines(topology_id)

    def beats(self, topology_id: str) -> Mapping[int, str]:
        return self._cluster.beats(topology_id)

    def streams(self, source: str, results: str) -> StreamFacts:
        return self._cluster.facts(source.removesuffix(".in") + "-1-1")


def _tasks(world: WorldFile) -> dict[int, str]:
    """Task -> component, counted through the components by name, as Storm does."""
    found: dict[int, str] = {}
    for component in sorted(world.components, key=lambda component: component.id):
        found |= {len(found) + number: component.id for number in range(1, component.tasks + 1)}
    return found


def _entry(tenant: Tenant, reason: str, wanted: Placement | None = None) -> str:
    """The topology in the plugin's snapshot, as JSON."""
    return json.dumps(
        topology_entry(
            topology_id=tenant.id, name=tenant.name, tasks=tenant.tasks, slots=tenant.slots,
            managed=not reason, epoch=wanted.epoch if wanted else None, reason=reason,
        )
    )  # fmt: skip
