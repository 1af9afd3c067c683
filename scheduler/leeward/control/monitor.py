"""Turns counters into rates, and facts into the one view that policies see."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.control.costs import PRIOR
from leeward.control.counted import Counted, emitted, packed
from leeward.control.lateness import LATE_S
from leeward.control.nodes_seen import NodesSeen
from leeward.control.ports import ComponentFacts, StreamFacts, Structure
from leeward.control.snapshot import ClusterSnapshot
from leeward.core.control import ControlRecord
from leeward.core.coordinates import Coordinate, Delays, surest
from leeward.core.errors import ConfigError
from leeward.core.learnt import Learnt
from leeward.core.metrics import TaskMetrics
from leeward.core.model import ClusterView, Component, HandoverCost, Measured
from leeward.core.network import Network
from leeward.core.plan import Placement, Slot
from leeward.core.settings import Settings
from leeward.core.topology_conf import APART, FACTS, MAX_REPLICAS, PINNED, PINS, check_conf, declared_rate

#: With fewer tuples looked at in a window key groups are not measured: the share of one replica of four would be off
#: by more than a tenth.
LEAST_LOOKED_AT = 500


def sizes_of(samples: Mapping[int, TaskMetrics]) -> dict[str, int]:
    """Component -> bytes of state of its tasks."""
    sizes: Counter[str] = Counter()
    for sample in samples.values():
        sizes[sample.component] += sample.state_bytes
    return dict(sizes)


def outside_of(samples: Mapping[int, TaskMetrics]) -> dict[str, tuple[str, ...]]:
    """Component -> attributes beside `self.state` that tuples change; (): it has none, and never uses the state."""
    found: dict[str, set[str]] = {}
    for sample in samples.values():
        if sample.outside or sample.state_unused:
            found.setdefault(sample.component, set()).update(sample.outside)
    return {name: tuple(sorted(attributes)) for name, attributes in found.items()}


def delays_of(samples: Mapping[int, TaskMetrics], slots: Mapping[int, Slot]) -> Delays:
    """Delays between nodes, by the tasks on them. `slots`: of tasks, as Storm has placed them."""
    found: dict[str, list[Coordinate]] = {}
    trips: dict[tuple[str, str], float] = {}
    for task, sample in sorted(samples.items()):
        if task not in slots:
            continue
        node = slots[task].node
        if sample.place is not None:
            found.setdefault(node, []).append(sample.place)
        for other, seconds in sample.trips.items():
            trips[node, other] = min(seconds, trips.get((node, other), seconds))
    places = {node: place for node, places in found.items() if (place := surest(places)) is not None}
    return Delays(places, trips)


def streams_of(samples: Collection[TaskMetrics]) -> tuple[str, str]:
    """(stream that a source reads, stream that a sink writes); "" where no task names one."""
    found = sorted({sample.reads for sample in samples} - {""}), sorted({sample.writes for sample in samples} - {""})
    return (found[0] or [""])[0], (found[1] or [""])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates over a window, by component."""

    span_s: float = 0.0  #: length of the window
    emitted: Mapping[str, float] = field(default_factory=dict)  #: tuples/s that a component sends
    streams: Mapping[tuple[str, str], float] = field(default_factory=dict)  #: (from, to) -> tuples/s received
    service: Mapping[str, float] = field(default_factory=dict)  #: tuples/s of one busy replica, where measurable
    buffered: Mapping[str, int] = field(default_factory=dict)  #: tuples queued in the tasks at the end
    groups: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  #: -> group -> tuples/s, where measurable


def rates_between(old: Mapping[int, Counted], new: Mapping[int, TaskMetrics], *, minimum_samples: int) -> Rates:
    """Rates from two sets of samples; a task whose process is another one counts from its start.

    Each task's own time stamps divide its counts, so that a late line does not distort its rate.
    """
    sent: dict[str, float] = {}
    streams: dict[tuple[str, str], float] = {}
    processed: dict[str, float] = {}
    busy: dict[str, float] = {}
    buffered: dict[str, int] = {}
    span = 0.0
    for task, after in new.items():
        buffered[after.component] = buffered.get(after.component, 0) + after.buffered
        before = old.get(task)
        if before is None:
            continue
        seconds = after.t - before.t
        if seconds <= 0:
            continue
        span = max(span, seconds)
        same = before.pid == after.pid
        name = after.component
        sent[name] = sent.get(name, 0.0) + (emitted(after) - before.emitted * same) / seconds
        were = before.received
        for source, count in after.received.items():
            key = (source, name)
            streams[key] = streams.get(key, 0.0) + (count - were.get(source, 0) * same) / seconds
        processed[name] = processed.get(name, 0) + after.processed - before.processed * same
        busy[name] = busy.get(name, 0.0) + after.busy_s - before.busy_s * same
    service = {
        name: processed[name] / busy[name]
        for name in processed
        if processed[name] >= minimum_samples and busy[name] > 0
    }
    groups = group_rates(old, new)
    return Rates(span_s=span, emitted=sent, streams=streams, service=service, buffered=buffered, groups=groups)


def group_rates(old: Mapping[int, Counted], new: Mapping[int, TaskMetrics]) -> dict[str, dict[int, float]]:
    """Component -> key group -> tuples/s, for the components of which enough tuples were looked at."""
    rates: dict[str, dict[int, float]] = {}
    looked_at: dict[str, float] = {}
    for task, after in new.items():
        before = old.get(task)
        if before is None or after.t <= before.t:
            continue
        same = before.pid == after.pid
        mine, were = rates.setdefault(after.component, {}), before.groups
        for group, count in after.groups.items():
            came = count - were.get(group, 0) * same
            mine[group] = mine.get(group, 0.0) + came / (after.t - before.t)
        looked_at[after.component] = looked_at.get(after.component, 0.0) + after.looked_at - before.looked_at * same
    return {name: mine for name, mine in rates.items() if looked_at[name] >= LEAST_LOOKED_AT}


class Monitor:
    """Keeps a window of samples and the last known service rates."""

    def __init__(self, settings: Settings, service: Mapping[str, float] | None = None) -> None:
        """`service`: component -> service rate as last measured before."""
        self._settings = settings
        self._window: deque[tuple[float, dict[int, Counted]]] = deque()
        self._before: dict[int, Counted] = {}  # that the newest samples were compared with
        self._any = False  # some task has told something
        self._service: dict[str, float] = dict(service or {})

    def observe(self, samples: Mapping[int, TaskMetrics], now: float) -> Rates:
        """Take in the newest measurements by task, and give the rates over at most `window_s`."""
        if self._window and now - self._window[-1][0] > self._settings.window_s + LATE_S:
            self.forget()  # nobody looked for so long that a mean over it says nothing of the load now
        self._window.append((now, packed(samples, self._window[-1][1] if self._window else None)))
        self._any = self._any or bool(samples)
        while len(self._window) > 2 and now - self._window[1][0] >= self._settings.window_s:
            self._window.popleft()
        self._before = self._first_of_each(samples)
        rates = rates_between(self._before, samples, minimum_samples=self._settings.minimum_samples)
        self._service.update(rates.service)
        return rates

    def _first_of_each(self, newest: Mapping[int, TaskMetrics]) -> dict[int, Counted]:
        """Task -> the oldest sample in the window of the process that it has now.

        Another process may be on another node, whose clock is off: its time stamps are not compared with these.
        """
        oldest = self._window[0][1]
        return {
            task: oldest[task]
            if task in oldest and oldest[task].pid == sample.pid
            else next(seen[task] for _, seen in self._window if task in seen and seen[task].pid == sample.pid)
            for task, sample in newest.items()
        }

    def unknown(self, tasks: Collection[int]) -> list[int]:
        """Those of these tasks whose rate the window does not show, as they have told no two lines; none while no
        task has ever told one."""
        newest = self._window[-1][1] if self._window else {}
        return [
            task for task in sorted(tasks)
            if self._any and (task not in newest or newest[task].t <= self._before[task].t)
        ]  # fmt: skip

    @property
    def service(self) -> Mapping[str, float]:
        """Component -> service rate last measured."""
        return dict(self._service)

    def forget(self) -> None:
        """Forget samples around a reconfiguration: they do not show the load."""
        self._window.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a view is made of."""

    structure: Structure
    cluster: ClusterSnapshot
    record: ControlRecord
    rates: Rates
    service: Mapping[str, float] = field(default_factory=dict)  #: last known service rates
    sizes: Mapping[str, int] = field(default_factory=dict)  #: component -> bytes of state
    outside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: component -> attributes beside its state
    streams: StreamFacts = field(default_factory=StreamFacts)
    draining: frozenset[str] = frozenset()
    handover_cost: HandoverCost = PRIOR
    learnt: Learnt = field(default_factory=Learnt)
    delay_s: Mapping[tuple[str, str], float] = field(default_factory=dict)  #: one way, as measured
    network: Network | None = None
    wanted: Placement | None = None  #: placement last written for the plugin, under this name


def check_structure(structure: Structure) -> None:
    """Raises ConfigError if the topology is not one of Leeward's, has an unknown key `leeward.*`, or pins no component
    of its own."""
    foreign = [component.id for component in structure.components if not component.kind]
    if foreign:
        raise ConfigError(
            f"topology {structure.name!r}: component {foreign[0]!r} has no leeward.kind, so it sends no markers.",
            remedy="Derive every component from leeward.runtime's StatefulSpout, StatefulBolt or ElasticBolt.",
        )
    apart_of(structure)
    for conf in (structure.conf, *(component.conf for component in structure.components)):
        check_conf(conf)
    _check_pins(structure)


def _check_pins(structure: Structure) -> None:
    """Raises ConfigError for a `leeward.pins` that is no map, or names a component that is not there."""
    pins, names = structure.conf.get(PINS.name) or {}, [component.id for component in structure.components]
    if not isinstance(pins, dict):
        raise ConfigError(
            f"topology {structure.name!r} has {PINS.name} = {pins!r}.",
            remedy="Give a map of component to list of node names.",
        )
    unknown = sorted(set(pins) - set(names))
    if unknown:
        raise ConfigError(
            f"topology {structure.name!r}: {PINS.name} names {unknown[0]!r}, which is no component.",
            remedy=f"Its components are {', '.join(sorted(names))}.",
        )


def members(structure: Structure, tasks: Mapping[int, str]) -> dict[int, str]:
    """Task -> component of those that take part in barriers: all but Storm's own components."""
    names = {component.id for component in structure.components}
    return {task: name for task, name in tasks.items() if name in names}


def sinks(structure: Structure) -> set[str]:
    """Components that no other reads from."""
    read = {source for component in structure.components for source in component.inputs}
    return {component.id for component in structure.components} - read


def sources(structure: Structure) -> set[str]:
    """Components that only emit."""
    return {component.id for component in structure.components if component.kind == "source"}


def streams_between(structure: Structure) -> tuple[tuple[str, str], ...]:
    """(From, to) of its components, by name."""
    return tuple(sorted((source, entry.id) for entry in structure.components for source in entry.inputs))


def build_view(facts: Facts, settings: Settings, nodes: NodesSeen | None = None) -> ClusterView:
    """The view at this moment. Pure. `nodes`: keeps the nodes from one view to the next."""
    by_component: dict[str, list[int]] = {}
    for task, name in sorted(facts.cluster.tasks.items()):
        by_component.setdefault(name, []).append(task)
    components = tuple(
        Component(
            id=entry.id,
            tasks=tuple(by_component.get(entry.id, ())),
            stateful=entry.kind == "stateful",
            source=entry.kind == "source",
            max_replicas=_max_replicas(entry, len(by_component.get(entry.id, ()))),
            pinned=_pinned(entry.id, entry.conf, facts.structure.conf),
            facts=_facts(entry.id, entry.conf),
        )
        for entry in facts.structure.components
    )
    streams = streams_between(facts.structure)
    return ClusterView(
        topology=facts.structure.name,
        topology_id=facts.structure.id,
        epoch=facts.record.epoch,
        nodes=(nodes or NodesSeen()).of(facts.cluster, facts.draining, settings.eps_max, facts.learnt.stores),
        components=components,
        streams=streams,
        tables=facts.record.tables,
        assignment=facts.cluster.assigned.slots,
        measured={entry.id: _measured(entry, facts, settings) for entry in facts.structure.components},
        stream_rate={stream: facts.rates.streams.get(stream, 0.0) for stream in streams},
        delay_s=facts.delay_s,
        network=facts.network,
        apart=apart_of(facts.structure),
        handover_cost=facts.handover_cost,
        restarts=facts.learnt.restarts,
        selectivity=facts.learnt.selectivities,
        rest=facts.learnt.rest,
        origin=facts.learnt.origin,
        live=settings.mode == "live",
        warm_apart=settings.warm_apart or settings.spares,
        replica_cost=settings.replica_cost,
        first=_first(facts),
    )


def _first(facts: Facts) -> bool:
    """No plan of ours is in force yet."""
    if facts.wanted is None or facts.wanted.topology_id != facts.structure.id:
        return True  # an earlier topology of this name may have left its placement behind
    # Nimbus' pass may have begun before the placement of the first plan was written
    return facts.record.epoch == 0 and not facts.cluster.assigned.managed


def _measured(entry: Any, facts: Facts, settings: Settings) -> Measured:
    source = entry.kind == "source"
    emitted = facts.rates.emitted.get(entry.id, 0.0)
    received = sum(rate for (_, target), rate in facts.rates.streams.items() if target == entry.id)
    service = facts.service.get(entry.id)
    prior = declared_rate(entry.conf, facts.structure.conf)
    if (service is None or source) and prior is not None:
        service = prior
    return Measured(
        arrival_rate=emitted if source else received,
        service_rate=service,
        curve=facts.learnt.curves.get(entry.id),
        state_bytes=facts.sizes.get(entry.id, 0),
        queued=_backlog(facts, emitted, settings) if source else facts.rates.buffered.get(entry.id, 0),
        group_load=facts.rates.groups.get(entry.id, {}),
        outside=facts.outside.get(entry.id),
    )


def _backlog(facts: Facts, rate: float, settings: Settings) -> int:
    """Rows that wait at the source. `done` is as new as the last checkpoint: rows sent since are no backlog."""
    explained = rate * 2 * settings.checkpoint_every_s
    return max(0, int(facts.streams.last - facts.streams.done - explained))


def _max_replicas(entry: ComponentFacts, tasks: int) -> int:
    if entry.kind == "source":
        return 1
    wanted = entry.conf.get(MAX_REPLICAS.name, tasks)
    return max(1, min(tasks, wanted)) if isinstance(wanted, int) else tasks


def _pinned(name: str, conf: Mapping[str, object], of_topology: Mapping[str, object]) -> tuple[str, ...]:
    """The nodes that this submission pins it to, or else its author. `conf`: the component's own."""
    pins = of_topology.get(PINS.name)
    key, where = (PINS, pins) if isinstance(pins, dict) and name in pins else (PINNED, conf)
    nodes = where.get(name if key is PINS else key.name) or []
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise ConfigError(
            f"component {name!r} has {key.name} = {nodes!r}.", remedy="Give a list of node names (supervisor hosts)."
        )
    return tuple(sorted(nodes))


def apart_of(structure: Structure) -> tuple[tuple[str, ...], ...]:
    """Lists of components of which a node holds replicas of one at most. Raises ConfigError."""
    lists, known = structure.conf.get(APART.name) or [], {component.id for component in structure.components}
    if not isinstance(lists, list) or not all(isinstance(names, list) and len(names) > 1 for names in lists):
        raise ConfigError(
            f"topology {structure.name!r} has {APART.name} = {lists!r}.",
            remedy="Give a list of lists of at least two components, as [[a, b]].",
        )
    for name in [name for names in lists for name in names]:
        if name not in known:
            raise ConfigError(
                f"topology {structure.name!r}: {APART.name} names unknown component {name!r}.",
                remedy=f"The topology has {sorted(known)}.",
            )
    return tuple(tuple(sorted(set(names))) for names in lists)


def _facts(name: str, conf: Mapping[str, object]) -> Mapping[str, object]:
    facts = conf.get(FACTS.name) or {}
    if not isinstance(facts, dict):
        raise ConfigError(f"component {name!r} has {FACTS.name} = {facts!r}.", remedy="Give a map of names to values.")
    return facts
