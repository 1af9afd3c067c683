"""The values of an EDRP problem: nodes, operators, streams, the present deployment, weights and bounds.

Units are SI: seconds, bytes, bytes/s, tuples/s; costs are $/h.  Symbols (paper -> here): V_res -> nodes,
d_(u,v) -> delay_s, C_(u,v) -> link_cost, V_dsp -> operators, E_dsp -> streams, U_0 -> current,
lambda_i -> `load_tps`, V_res^i -> `candidates`, t_syn -> sync_s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from leeward.policies.edrp.problem.latency import ResponseCurve

#: operator -> node -> number of replicas there (>= 1); the multisets of the paper.
Deployment = Mapping[str, Mapping[str, int]]
DowntimeModel = Literal["generic", "storm", "live"]
DOWNTIME_MODELS: tuple[DowntimeModel, ...] = ("generic", "storm", "live")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the cluster and its links to the DataStore and to its own swap area."""

    id: str
    #: Capacity Res_u in units.
    res: float = 2.0
    #: Speed-up S_u relative to the reference processor.
    speedup: float = 1.0
    #: Time t_s,u to start a replica, s.
    spawn_s: float = 0.5
    #: One-way delays to (up) and from (down) the DataStore, s.
    store_up_s: float = 0.005
    store_down_s: float = 0.005
    #: Rates to (up) and from (down) the DataStore, bytes/s.
    store_up_rate: float = 12.5e6
    store_down_rate: float = 12.5e6
    #: Rates of the local swap area, bytes/s.
    swap_write_rate: float = 100e6
    swap_read_rate: float = 100e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A vertex of the application's graph."""

    id: str
    #: Most replicas, k_i >= 1.
    k: int
    #: Response-time curve R_i.
    curve: ResponseCurve
    #: C_i, $/h for each unit of demand and replica.
    cost: float = 1.0
    #: Demand Res_i of one replica, units.
    res: float = 1.0
    #: I_S,i, bytes; 0 means stateless.
    state_bytes: float = 0.0
    #: I_C,i, bytes.
    code_bytes: float = 300_000.0
    #: Rate of a source, tuples/s; 0 for every other operator.
    source_rate: float = 0.0
    #: The nodes that may host it (V_res^i); None means every node, one entry means pinned.
    allowed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An edge of the application's graph with its rate lambda_(i,j) in tuples/s."""

    source: str
    target: str
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """w_r, w_c, w_d of the objective (12): not negative, sum 1."""

    r: float
    c: float
    d: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """R_max (s), C_max ($/h), T_D,max (s): the worst cases (15)-(17), which also normalise the objective."""

    r: float
    c: float
    d: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDowntime:
    """The cost of a live handover: a constant and a time for each byte of state that moves."""

    constant_s: float
    per_byte_s: float
    #: Operator -> node -> tasks that run there.  More replicas than those need a restart, as in A.2; None: none does.
    tasks: Deployment | None = None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The statement of one instance of EDRP, unchecked; `problem.Problem` is the checked one."""

    nodes: tuple[Node, ...]
    #: d_(u,v), s, rows and columns in the order of `nodes`; the diagonal is 0.
    delay_s: tuple[tuple[float, ...], ...]
    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...]
    weights: Weights
    bounds: Bounds
    name: str = ""
    #: C_(u,v), $/h per tuple/s: a matrix like `delay_s`, or one number for all u != v.
    link_cost: float | tuple[tuple[float, ...], ...] = 0.0
    #: No node may host replicas of two operators of one of these.  Ours; the paper has pins alone.
    apart: tuple[tuple[str, ...], ...] = ()
    #: The present deployment U_0, or None before the first.
    current: Deployment | None = None
    #: t_syn, s.
    sync_s: float = 0.25
    downtime_model: DowntimeModel = "generic"
    #: Needed by the downtime model "live" alone.
    live: LiveDowntime | None = None

    @cached_property
    def node_index(self) -> dict[str, int]:
        return {node.id: position for position, node in enumerate(self.nodes)}

    @cached_property
    def operator_index(self) -> dict[str, int]:
        return {operator.id: position for position, operator in enumerate(self.operators)}

    @cached_property
    def load_tps(self) -> tuple[float, ...]:
        """lambda_i for each operator: the sum of the incoming rates; for a source, what it emits."""
        load = [operator.source_rate for operator in self.operators]
        for stream in self.streams:
            load[self.operator_index[stream.target]] += stream.rate
        return tuple(load)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The streams as pairs of operator positions, in the order of `streams`."""
        at = self.operator_index
        return tuple((at[stream.source], at[stream.target]) for stream in self.streams)

    @cached_property
    def candidates(self) -> tuple[tuple[int, ...], ...]:
        """V_res^i for each operator, as sorted node positions."""
        everywhere = tuple(range(len(self.nodes)))
        return tuple(
            everywhere if op.allowed is None else tuple(sorted({self.node_index[node] for node in op.allowed}))
            for op in self.operators
        )

    @cached_property
    def rivals(self) -> tuple[tuple[int, ...], ...]:
        """For each operator the positions of those that may not share a node with it, ascending."""
        at = self.operator_index
        found: list[set[int]] = [set() for _ in self.operators]
        for names in self.apart:
            for name in names:
                found[at[name]].update(at[other] for other in names if other != name)
        return tuple(tuple(sorted(others)) for others in found)

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """Operator positions, upstream first; shorter than `operators` if there is a cycle."""
        waiting = [0] * len(self.operators)
        for _, target in self.edges:
            waiting[target] += 1
        order = [op for op, count in enumerate(waiting) if count == 0]
        for op in order:  # grows while we walk along it
            for source, target in self.edges:
                if source == op:
                    waiting[target] -= 1
                    if waiting[target] == 0:
                        order.append(target)
        return tuple(order)

    def link_cost_between(self, u: int, v: int) -> float:
        """C_(u,v); a node talks to itself for nothing."""
        if u == v:
            return 0.0
        return self.link_cost if isinstance(self.link_cost, float | int) else self.link_cost[u][v]
