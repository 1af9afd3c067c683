"""The file that describes a world (TOML): nodes, components with their service rates, streams, what changes cost.

`storm_conf/worlds/query1.toml` is an example. All times are seconds, all rates tuples/s, all sizes bytes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from leeward.core.errors import ConfigError

KINDS = ("source", "stateful", "stateless")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEntry:
    """A machine that runs a supervisor. Nodes differ in slots only."""

    id: str
    slots: int = 2  #: worker slots


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentEntry:
    """A spout or bolt."""

    id: str
    kind: str  #: one of KINDS
    rate: float  #: service rate of one replica, tuples/s
    variation: float = 1.0  #: squared coefficient of variation of the service time: 1 exponential, 0 always the same
    tasks: int = 1
    max_replicas: int = 0  #: 0: as many as it has tasks
    state_bytes: int = 0  #: all key groups together
    pinned: tuple[str, ...] = ()  #: candidate nodes; empty: any


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEntry:
    """A stream from one component to another."""

    source: str
    target: str
    ratio: float = 1.0  #: tuples sent for each tuple that the source of the stream processes
    keyed: bool = False  #: routed by key; else tuples rotate over the replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Time that a change takes, s. The defaults were measured on the local cluster (docs/measurements.md)."""

    handover_s: float = 0.05  #: longest wait of a tuple in a handover of no state
    per_byte_s: float = 1e-8  #: more of it for each byte that changes hands
    worker_start_s: float = 8.0  #: until a warm task that is brought to another slot is heard there
    restart_s: float = 10.0  #: from the pause to the first tuple where a worker with work restarts
    pause_s: float = 1.0  #: the same where no worker restarts


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldFile:
    """See the module. Construction checks; raises ConfigError."""

    name: str
    nodes: tuple[NodeEntry, ...]
    components: tuple[ComponentEntry, ...]
    streams: tuple[StreamEntry, ...]
    workers: int = 0  #: slots over which Storm deals the tasks at first; 0: all
    delay_s: float = 0.0  #: one-way delay between two nodes
    response_max_s: float = 0.150  #: R_max of the result's share of time over it
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        _check_nodes(self)
        _check_components(self)
        _check_streams(self)

    @property
    def sources(self) -> tuple[str, ...]:
        """Components that emit what the rate trace says."""
        return tuple(component.id for component in self.components if component.kind == "source")


def load_world(path: Path) -> WorldFile:
    """Read the file. Raises ConfigError naming file, field, value and remedy."""
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(
            f"topology file {str(path)!r} does not exist.", remedy="storm_conf/worlds/query1.toml is an example."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"topology file {str(path)!r} cannot be read: {error}.", remedy="Write TOML.") from None
    try:
        return parse_world(document)
    except ConfigError as error:
        raise ConfigError(f"topology file {str(path)!r}: {error.message}", remedy=error.remedy) from None


def parse_world(document: Mapping[str, Any]) -> WorldFile:
    """The world of a parsed file. Raises ConfigError."""
    known = {"nodes": NodeEntry, "components": ComponentEntry, "streams": StreamEntry}
    values = dict(document)
    for name, kind in known.items():
        entries = values.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise ConfigError(f"{name} is {entries!r}.", remedy=f"Write [[{name}]] tables.")
        values[name] = tuple(_entry(kind, f"{name}[{at}]", entry) for at, entry in enumerate(entries))
    costs = values.get("costs", {})
    if not isinstance(costs, Mapping):
        raise ConfigError(f"costs is {costs!r}.", remedy="Write a [costs] table.")
    values["costs"] = _entry(Costs, "costs", costs)
    world: WorldFile = _entry(WorldFile, "", values)
    return world


def _entry(kind: Any, where: str, values: Mapping[str, Any]) -> Any:
    """One table of the file as a value of class `kind`."""
    known = {entry.name: entry for entry in fields(kind)}
    typed = {}
    prefix = f"{where}." if where else ""
    for name, value in values.items():
        name = {"from": "source", "to": "target"}.get(name, name) if kind is StreamEntry else name
        if name not in known:
            raise ConfigError(f"{prefix}{name} is not known (value {value!r}).", remedy=f"Known: {', '.join(known)}.")
        typed[name] = _typed(f"{prefix}{name}", value, str(known[name].type))
    for name, entry in known.items():
        if name not in typed and entry.default is MISSING and entry.default_factory is MISSING:
            raise ConfigError(f"{prefix}{name} is missing.", remedy=f"Give {name} = ....")
    return kind(**typed)


def _typed(where: str, value: Any, kind: str) -> Any:
    """The value as the field has it."""
    if kind == "tuple[str, ...]" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if kind == "float" and type(value) in (int, float):
        if value < 0:
            raise ConfigError(f"{where} is {value!r}.", remedy="Give a number of at least 0.")
        return float(value)
    if kind == "int" and type(value) is int:
        if value < 0:
            raise ConfigError(f"{where} is {value!r}.", remedy="Give a whole number of at least 0.")
        return value
    if kind in ("str", "bool") and type(value).__name__ == kind:
        return value
    if kind not in ("str", "bool", "int", "float", "tuple[str, ...]"):
        return value  # tables, read before
    need = {"float": "a number", "int": "a whole number", "str": "a text", "bool": "true or false"}
    raise ConfigError(f"{where} is {value!r}.", remedy=f"Give {need.get(kind, 'a list of texts')}.")


def _check_nodes(world: WorldFile) -> None:
    if not world.nodes:
        raise ConfigError("nodes is empty.", remedy="Write at least one [[nodes]] table.")
    _refuse_twice("nodes", [node.id for node in world.nodes])
    for at, node in enumerate(world.nodes):
        if node.slots < 1:
            raise ConfigError(f"nodes[{at}].slots is {node.slots}.", remedy="Give at least 1.")


def _check_components(world: WorldFile) -> None:
    _refuse_twice("components", [component.id for component in world.components])
    if not world.sources:
        raise ConfigError("no component has kind 'source'.", remedy="Give one, so that there is a rate.")
    nodes = [node.id for node in world.nodes]
    for component in world.components:
        where = f"components {component.id!r}:"
        if component.kind not in KINDS:
            raise ConfigError(f"{where} kind is {component.kind!r}.", remedy=f"Choose one of {', '.join(KINDS)}.")
        if component.rate <= 0 or component.tasks < 1:
            raise ConfigError(
                f"{where} rate is {component.rate:g}, tasks is {component.tasks}.",
                remedy="Give a rate over 0 and at least one task.",
            )
        for node in component.pinned:
            if node not in nodes:
                raise ConfigError(f"{where} pinned names node {node!r}.", remedy=f"The nodes are {nodes}.")


def _check_streams(world: WorldFile) -> None:
    known = [component.id for component in world.components]
    for stream in world.streams:
        for end in (stream.source, stream.target):
            if end not in known:
                raise ConfigError(f"streams name component {end!r}.", remedy=f"The components are {known}.")
        if stream.target in world.sources:
            raise ConfigError(f"streams lead to source {stream.target!r}.", remedy="Sources only emit.")
    _refuse_twice("streams", [f"{stream.source} -> {stream.target}" for stream in world.streams])
    fed = {stream.target for stream in world.streams}
    for component in world.components:
        if component.kind != "source" and component.id not in fed:
            raise ConfigError(
                f"components {component.id!r}: no stream leads to it.", remedy="Write a [[streams]] table to it."
            )
    in_order(world)


def _refuse_twice(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{what} has {name!r} twice.", remedy="Name each once.")


def in_order(world: WorldFile) -> tuple[str, ...]:
    """The components, upstream ones first, ties by name. Raises ConfigError for a circle."""
    waits = {c.id: {s.source for s in world.streams if s.target == c.id} for c in world.components}
    order: list[str] = []
    while waits:
        free = sorted(name for name, before in waits.items() if before <= set(order))
        if not free:
            raise ConfigError(f"streams form a circle through {sorted(waits)}.", remedy="Take one of them out.")
        order += free
        waits = {name: before for name, before in waits.items() if name not in order}
    return tuple(order)
