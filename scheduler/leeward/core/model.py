"""The view of a policy: cluster, topology and measurements, immutable, on Storm and in the simulator alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from leeward.core.learnt import LearntCurve, Origin, Rest, Restart, Selectivity, StoreLink
from leeward.core.network import Network
from leeward.core.plan import Slot
from leeward.core.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine that runs a supervisor."""

    id: str  #: host name as Storm knows it
    ports: tuple[int, ...]  #: worker slots
    capacity: int  #: units that replicas may take (EDRP's Res_u)
    draining: bool = False  #: nothing new is placed here and what is here must leave
    meta: Mapping[str, str] = field(default_factory=dict)  #: supervisor.scheduler.meta
    store: StoreLink = field(default_factory=StoreLink)  #: its way to the DataStore, as measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A spout or bolt of the topology."""

    id: str
    tasks: tuple[int, ...]  #: fixed for the topology's life; their number is the maximum of replicas
    stateful: bool
    source: bool = False  #: a spout
    max_replicas: int  #: at most len(tasks)
    pinned: tuple[str, ...] = ()  #: candidate nodes; empty: any
    facts: Mapping[str, object] = field(default_factory=dict)  #: those that the application gives to its policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measurements of one component over the last window."""

    arrival_rate: float = 0.0  #: lambda_i, tuples/s into all replicas together (a spout: tuples/s it emits)
    service_rate: float | None = None  #: mu_i, tuples/s of one busy replica on a reference node; None: not measured yet
    curve: LearntCurve | None = None  #: R_i(rate of one replica); None: no tuple was timed yet
    state_bytes: int = 0  #: all key groups together
    queued: int = 0  #: tuples that wait in front of it, where known (a spout: backlog at its source)
    group_load: Mapping[int, float] = field(default_factory=dict)  #: key group -> tuples/s, sampled; empty: not known
    #: Attributes beside `self.state` that its tuples change, lost when groups move; (): none is seen, but it keeps
    #: state by its class and never uses `self.state`; None: nothing would be lost.
    outside: tuple[str, ...] | None = None


class HandoverCost(NamedTuple):
    """The longest wait of a tuple in a handover, as measured (`control.costs`); the defaults hold until then."""

    constant_s: float = 0.05
    per_byte_s: float = 1e-8  #: s for each byte of state that moves


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Everything that a policy may look at."""

    topology: str  #: name
    topology_id: str  #: Storm's id
    epoch: int
    nodes: tuple[Node, ...]  #: by id
    components: tuple[Component, ...]  #: by id
    streams: tuple[tuple[str, str], ...]  #: (from, to), by name
    tables: Mapping[str, Table]  #: component -> owners in force
    assignment: Mapping[int, Slot]  #: task -> slot as Storm has it now; a missing task is not running
    measured: Mapping[str, Measured] = field(default_factory=dict)  #: by component
    stream_rate: Mapping[tuple[str, str], float] = field(default_factory=dict)  #: lambda_ij, tuples/s
    delay_s: Mapping[tuple[str, str], float] = field(default_factory=dict)  #: d_uv one way; absent means 0
    network: Network | None = None  #: sites and links of the nodes, where they are known
    apart: tuple[tuple[str, ...], ...] = ()  #: no node may hold replicas of two components of one of these
    handover_cost: HandoverCost = field(default_factory=HandoverCost)
    restarts: tuple[Restart, ...] = ()  #: those that were done, oldest first
    selectivity: Mapping[tuple[str, str], Selectivity] = field(default_factory=dict)  #: by stream, as learnt
    rest: Rest | None = None  #: of the time from source to sink, as learnt
    origin: Origin = field(default_factory=Origin)  #: of the values that are learnt
    first: bool = False  #: no plan of ours is in force yet: the price of change does not count
    live: bool = True  #: a plan that moves no executor is carried out as a handover, with no restart
    warm_apart: bool = False  #: wanted: warm tasks in slots of their own, whenever workers restart anyway
    replica_cost: float = 1.0  #: price of a replica, $/h

    def component(self, name: str) -> Component:
        """The component called `name`; raises KeyError."""
        for component in self.components:
            if component.id == name:
                return component
        raise KeyError(name)
