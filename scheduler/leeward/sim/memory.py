"""In-memory twins of the ports: for tests, and to run the service without a cluster.

A `World` is what ZooKeeper, Redis and Nimbus hold; every twin is a client of it, so that two coordinators, or a
killed one and its successor, meet in the same world.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.control.errors import LostLeadershipError
from leeward.control.ports import Claim, Clock, EventSink, Ports, StreamFacts, Structure, TopologyPorts, Wake
from leeward.control.report.history import appended, entries
from leeward.core.control import ControlRecord, Loss, Report
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.journal import Journal
from leeward.core.leftovers import Leftover
from leeward.core.outcome import Outcome
from leeward.core.plan import Placement, Slot
from leeward.core.standing import Standing


@dataclass
class World:
    """All that outlives a coordinator."""

    record: ControlRecord | None = None
    told: ControlRecord | None = None  #: the newest that every task watches
    journal: Journal | None = None
    placement: Placement | None = None
    standing: Standing | None = None
    learnt: str | None = None
    placements: dict[str, Placement] = field(default_factory=dict)  #: of other topologies, by name
    claims: int = 0
    barriers: dict[str, dict[int, Report]] = field(default_factory=dict)
    recoveries: dict[int, Loss] = field(default_factory=dict)
    snapshot: str | None = None
    draining: set[str] = field(default_factory=set)
    fences: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)  #: topology id -> newest base that sinks may write under
    cuts: dict[str, set[int]] = field(default_factory=dict)  #: topology id -> numbers with keys in Redis
    metrics: dict[str, dict[int, str]] = field(default_factory=dict)
    beats: dict[str, dict[int, str]] = field(default_factory=dict)
    streams: StreamFacts = field(default_factory=StreamFacts)
    leader: object | None = None
    history: bytes = b""
    requests: dict[str, Mapping[str, object]] = field(default_factory=dict)
    answers: dict[str, Outcome] = field(default_factory=dict)
    structures: dict[str, Structure] = field(default_factory=dict)  #: by name
    rebalances: list[tuple[str, int, dict[str, int]]] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)  #: "redis", "nimbus": these do not answer
    wakes: list[Wake] = field(default_factory=list)

    def changed(self) -> None:
        """Call the watchers, once, as ZooKeeper does."""
        wakes, self.wakes = self.wakes, []
        for wake in wakes:
            wake()

    def check(self, name: str) -> None:
        """Raise ClusterRefusedError if `name` shall not answer."""
        if name in self.refuse:
            raise ClusterRefusedError(f"{name} does not answer.", remedy=f"Start {name}.")


class MemoryControlStore:
    """ControlStore."""

    def __init__(self, world: World) -> None:
        self._world, self._claim = world, -1

    def claim(self) -> Claim:
        self._world.claims += 1
        self._claim = self._world.claims
        return Claim(record=self._world.record, journal=self._world.journal)

    def write_record(
        self, record: ControlRecord, *, told: bool = True, journal: Journal | None = None, barrier: str = ""
    ) -> None:
        if journal is not None:
            self.write_journal(journal)
        self._check()
        self._world.record = record
        if barrier:
            self._world.barriers.setdefault(barrier, {})
        if told:
            self._world.told = record
        self._world.changed()

    def write_journal(self, journal: Journal) -> None:
        self._check()
        self._world.journal = Journal.from_json(journal.to_json())
        if journal.answers and journal.result and journal.request in self._world.requests:
            MemoryRequests(self._world).answer(journal.request, journal.result)

    def write_placement(self, placement: Placement | None) -> None:
        self._check()
        self._world.placement = placement
        self._world.changed()

    def write_standing(self, standing: Standing) -> None:
        self._check()
        self._world.standing = Standing.from_json(standing.to_json())

    def write_learnt(self, text: str) -> None:
        self._check()
        self._world.learnt = text

    def read_learnt(self) -> str | None:
        return self._world.learnt

    def read_standing(self) -> Standing | None:
        return self._world.standing

    def read_record(self) -> ControlRecord | None:
        return self._world.record

    def read_journal(self) -> Journal | None:
        return self._world.journal

    def read_placement(self) -> Placement | None:
        return self._world.placement

    def _check(self) -> None:
        if self._claim != self._world.claims:
            raise LostLeadershipError("another coordinator has claimed this topology.", remedy="Stop this one.")


class MemoryBarriers:
    """BarrierStore."""

    def __init__(self, world: World) -> None:
        self._world = world

    def reports(
        self, barrier: str, known: Iterable[int], wake: Wake, *, likely: Iterable[int] = ()
    ) -> Mapping[int, Report]:
        self._world.wakes.append(wake)
        skip = set(known)
        there = self._world.barriers.get(barrier, {})
        return {task: report for task, report in there.items() if task not in skip}

    def recoveries(self, wake: Wake) -> Mapping[int, Loss]:
        self._world.wakes.append(wake)
        return dict(self._world.recoveries)

    def drop(self, *, below: int, epoch: int) -> None:
        for name in list(self._world.barriers):
            kind, number = name.split("-")
            if int(number) < (below if kind == "cut" else epoch):
                del self._world.barriers[name]
        self._world.recoveries = {e: why for e, why in self._world.recoveries.items() if e >= epoch}


class MemoryClusterStore:
    """ClusterStore."""

    def __init__(self, world: World) -> None:
        self._world = world

    def snapshot(self, wake: Wake) -> str | None:
        self._world.wakes.append(wake)
        return self._world.snapshot

    def placements(self) -> Mapping[str, Placement]:
        return dict(self._world.placements)

    def draining(self) -> frozenset[str]:
        return frozenset(self._world.draining)

    def set_draining(self, node: str, draining: bool) -> None:
        (self._world.draining.add if draining else self._world.draining.discard)(node)


class MemoryRequests:
    """RequestStore."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ask(self, body: Mapping[str, object]) -> str:
        name = f"request-{len(self._world.answers) + len(self._world.requests) + 1}"
        self._world.requests[name] = body
        self._world.changed()
        return name

    def pending(self, wake: Wake) -> Mapping[str, object] | None:
        self._world.wakes.append(wake)
        return next(({"id": name, **body} for name, body in self._world.requests.items()), None)

    def answer(self, name: str, result: Outcome) -> None:
        self._world.requests.pop(name, None)
        self._world.answers[name] = result
        self._world.changed()

    def answer_to(self, name: str, wake: Wake | None = None) -> Outcome | None:
        if wake:
            self._world.wakes.append(wake)
        return self._world.answers.get(name)


class MemorySnapshots:
    """SnapshotStore."""

    def __init__(self, world: World) -> None:
        self._world = world

    def raise_fence(self, topology_id: str, epoch: int, base: int = 0) -> None:
        self._world.check("redis")
        self._world.bases[topology_id] = max(base, self._world.bases.get(topology_id, 0))
        self._world.fences[topology_id] = max(epoch, self._world.fences.get(topology_id, 0))

    def delete_cuts(self, topology_id: str, *, below: int) -> int:
        self._world.check("redis")
        cuts = self._world.cuts.setdefault(topology_id, set())
        gone = {cut for cut in cuts if cut < below}
        cuts -= gone
        return len(gone)

    def metrics(self, topology_id: str) -> Mapping[int, str]:
        self._world.check("redis")
        return dict(self._world.metrics.get(topology_id, {}))

    def beats(self, topology_id: str) -> Mapping[int, str]:
        self._world.check("redis")
        return dict(self._world.beats.get(topology_id, {}))

    def streams(self, source: str, results: str) -> StreamFacts:
        self._world.check("redis")
        return self._world.streams

    def close(self) -> None:
        pass


def _kept(world: World) -> tuple[dict[str, Any], ...]:
    """Redis' keys, by topology id."""
    return world.cuts, world.metrics, world.fences, world.bases, world.beats


class MemoryLeftovers:
    """LeftoverStore: a world's record and journal are those of the topology that is deleted."""

    def __init__(self, world: World) -> None:
        self._world = world

    def found(self) -> Mapping[str, Leftover]:
        world = self._world
        ids = {*world.cuts, *world.metrics, *world.fences, *world.bases, *world.beats}
        placed = {world.placement.topology_id} if world.placement else set()
        return {
            topology_id: Leftover(
                placement=topology_id.rsplit("-", 2)[0] if topology_id in placed else "",
                keys=sum(topology_id in kept for kept in _kept(world)),
            )
            for topology_id in ids | placed
        }

    def delete(self, topology_id: str) -> Leftover:
        world = self._world
        world.check("redis")
        deleted = self.found().get(topology_id, Leftover())
        znodes = sum(text is not None for text in (world.record, world.told, world.journal))
        for kept in _kept(world):
            kept.pop(topology_id, None)
        world.record = world.told = world.journal = world.standing = world.learnt = None
        world.barriers.clear()
        world.recoveries.clear()
        if deleted.placement:
            world.placement = None
        return deleted + Leftover(znodes=znodes)


class MemoryNimbus:
    """Nimbus, and behind it the plugin: `rebalance` applies the placement if it fits and publishes a snapshot."""

    def __init__(self, world: World, *, place: Callable[[World, str], None] | None = None) -> None:
        self._world, self._place = world, place

    def topologies(self) -> Mapping[str, str]:
        self._world.check("nimbus")
        return {name: structure.id for name, structure in self._world.structures.items()}

    def structure(self, name: str) -> Structure:
        self._world.check("nimbus")
        if name not in self._world.structures:
            raise ConfigError(
                f"topology {name!r} does not run; running: {sorted(self._world.structures)}.",
                remedy="Submit it first.",
            )
        return self._world.structures[name]

    def rebalance(self, name: str, *, workers: int, executors: Mapping[str, int]) -> None:
        self._world.check("nimbus")
        self._world.rebalances.append((name, workers, dict(executors)))
        if self._place:
            self._place(self._world, name)

    def close(self) -> None:
        pass


class MemoryHistory:
    """HistoryStore."""

    _adding = threading.Lock()  #: two writers may be on two threads; ZooKeeper's versions do this for the real one

    def __init__(self, world: World) -> None:
        self._world = world

    def add(self, entry: Mapping[str, object]) -> None:
        self._world.check("zookeeper")
        with self._adding:
            self._world.history = appended(self._world.history, entry)

    def read(self) -> list[Mapping[str, Any]]:
        self._world.check("zookeeper")
        return entries(self._world.history)


class MemoryLock:
    """LeaderLock; `steal` is what a lost session looks like."""

    def __init__(self, world: World) -> None:
        self._world = world

    def acquire(self, timeout_s: float) -> bool:
        if self._world.leader is None:
            self._world.leader = self
        return self._world.leader is self

    def held(self) -> bool:
        return self._world.leader is self

    def release(self) -> None:
        if self._world.leader is self:
            self._world.leader = None


class ManualClock:
    """Clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def patience(self, seconds: float) -> float:
        self.time += seconds
        return 0.0


class ListSink:
    """EventSink that keeps everything."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        self.events.append((action, dict(fields)))

    def of(self, action: str) -> list[dict[str, object]]:
        """The fields of every event of this action."""
        return [fields for name, fields in self.events if name == action]


def topology_entry(
    *,
    topology_id: str,
    name: str,
    tasks: Mapping[int, str],
    slots: Mapping[int, Slot],
    managed: bool = False,
    epoch: int | None = None,
    reason: str = "no plan",
    waiting: bool = False,
) -> dict[str, object]:
    """A topology as the plugin's snapshot has it. `tasks`: task -> component; `waiting`: its first plan is."""
    executors = [
        {
            "component": tasks[task],
            "tasks": [task, task],
            "node": slots[task].node if task in slots else None,
            "port": slots[task].port if task in slots else None,
        }
        for task in sorted(tasks)
    ]
    return {
        "id": topology_id,
        "name": name,
        "managed": managed,
        "epoch": epoch if managed else None,
        "reason": "" if managed else reason,
        **({"waiting": True} if waiting else {}),
        "executors": executors,
    }


def supervisor_entries(nodes: Mapping[str, Iterable[int]]) -> list[dict[str, object]]:
    """The supervisors as the plugin's snapshot has them. `nodes`: node -> ports."""
    return [{"id": f"sup-{node}", "node": node, "ports": sorted(nodes[node]), "meta": {}} for node in sorted(nodes)]


def snapshot_text(*, nodes: Mapping[str, Iterable[int]], **topology: Any) -> str:
    """The plugin's snapshot of a cluster with one topology. `nodes`: node -> ports; the rest as of `topology_entry`."""
    document = {"version": 1, "supervisors": supervisor_entries(nodes), "topologies": [topology_entry(**topology)]}
    return json.dumps(document)


def memory_ports(
    world: World, *, clock: Clock, sink: EventSink, place: Callable[[World, str], None] | None = None
) -> Ports:
    """The ports of a service in this world. `place`: Nimbus' answer to a rebalance."""

    def open_topology(_: Structure) -> TopologyPorts:
        return TopologyPorts(
            control=MemoryControlStore(world), barriers=MemoryBarriers(world), requests=MemoryRequests(world),
            lock=MemoryLock(world), history=MemoryHistory(world),
        )  # fmt: skip

    return Ports(
        nimbus=MemoryNimbus(world, place=place), snapshots=MemorySnapshots(world), cluster=MemoryClusterStore(world),
        clock=clock, sink=sink, open_topology=open_topology, leftovers=MemoryLeftovers(world),
    )  # fmt: skip
