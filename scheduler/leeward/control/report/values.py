"""The report of one topology, as immutable values, for pages, commands and programs.

Times are seconds since 1970, rates tuples/s, unless a name says otherwise. None: not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Component -> node -> replicas.
Places = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSeen:
    """A component as it was submitted."""

    id: str
    tasks: int  #: warm ones included
    max_replicas: int
    source: bool = False
    stateful: bool = False
    pinned: tuple[str, ...] = ()  #: candidate nodes; empty: any


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node as this topology may use it."""

    id: str
    slots: int  #: worker slots that no other topology uses
    capacity: int  #: replicas that they may hold
    draining: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The difference between two deployments of one component."""

    component: str
    kind: str  #: "scale-out", "scale-in" or "move"
    before: Mapping[str, int]  #: node -> replicas
    after: Mapping[str, int]  #: node -> replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen:
    """The newest plan of the policy, and what became of it."""

    at: float
    epoch: int  #: that it was made for
    reason: str
    verdict: str  #: "made", "no change", "refused", "proposed", "begun" or the ending of its reconfiguration
    why: str = ""  #: why it was refused, or what it waits for
    changes: tuple[Change, ...] = ()
    deployment: Places = field(default_factory=dict)  #: that it wants
    rates: Mapping[str, float] = field(default_factory=dict)  #: that it was made for
    objective: float | None = None
    objective_now: float | None = None
    response_s: float | None = None  #: modelled
    cost_per_h: float | None = None  #: modelled, $/h
    downtime_s: float | None = None  #: expected, of carrying it out
    solve_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point of a reconfiguration in progress."""

    at: float
    name: str  #: phase, or "step N"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconfiguration:
    """One entry of the timeline."""

    begun: float | None  #: None: its beginning was not seen
    ended: float | None = None  #: None: in progress
    kind: str = ""  #: "restart", "handover", "reset" or "rejoin"
    epoch: int = 0
    reason: str = ""
    ending: str = ""  #: "done", "aborted", "undone", "reset" or "refused"; empty: in progress
    result: str = ""  #: the ending with its reason
    changes: tuple[Change, ...] = ()
    pause_s: float = 0.0  #: time that the stream stood; of a handover the longest wait of a tuple
    phases: Mapping[str, float] = field(default_factory=dict)  #: step -> its duration in s, in their order
    clock_behind_s: float = 0.0  #: clock of its last leader, behind that of the one before it: durations are not sure
    steps: int = 0  #: that all tasks have passed
    bytes_moved: int = 0
    marks: tuple[Mark, ...] = ()  #: while it is in progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A plan or a request that was not carried out."""

    at: float
    why: str
    request: str = ""  #: id of the request; empty: a plan of the policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that the service lacks at present."""

    what: str  #: "measurements", "leader", "server", "ZooKeeper", "Nimbus", "clocks", "state", "service" or "tasks"
    since: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSeen:
    """The response time of a component's replicas, measured and modelled at the same rates, over the newest span."""

    utilisation: float  #: of a replica, mean by tuples
    measured_s: float  #: mean time of a tuple in the component, wait included
    learnt_s: float | None  #: by the curve that was learnt
    error_s: float | None  #: standard error of `learnt_s`
    mm1_s: float  #: by M/M/1 with the measured service rate
    samples: float  #: behind the curve; old ones count less
    low: float  #: lowest utilisation among them
    high: float  #: highest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSeen:
    """A node's way to the DataStore, from the transfers of state that its tasks have timed."""

    node: str
    up_rate: float | None  #: bytes/s, median
    down_rate: float | None  #: bytes/s, median
    trip_s: float | None  #: round trip of a small command, median
    ups: int  #: transfers behind `up_rate`
    downs: int  #: transfers behind `down_rate`


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverSeen:
    """The longest wait of a tuple in a handover, by which plans are priced."""

    constant_s: float
    per_byte_s: float  #: s for each byte of state that moves
    off_s: float | None  #: median distance of the handovers from that
    handovers: int  #: that it was learnt from; 0: the defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSeen:
    """The part of the time from source to sink that the policy's model does not have, as learnt."""

    seconds: float  #: measured less modelled
    error_s: float  #: standard error
    samples: float  #: behind it; old ones count less


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivitySeen:
    """Tuples on a stream for each tuple that its source component processes."""

    source: str
    target: str
    ratio: float
    error: float  #: standard error of the ratio
    windows: float  #: measurements behind it; old ones count less


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component with its newest measurements."""

    id: str
    source: bool
    stateful: bool
    tasks: int
    max_replicas: int
    replicas: int
    places: Mapping[str, int]  #: node -> replicas
    rate: float | None  #: into all replicas; of a source: out of it
    service_rate: float | None  #: of one busy replica
    busy: float | None  #: modelled share of time that its replicas are busy
    queued: int | None  #: tuples that wait in front of it
    model: ModelSeen | None = None  #: model against measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node with the replicas of one topology."""

    id: str
    slots: int
    capacity: int
    draining: bool
    replicas: Mapping[str, int]  #: component -> replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """See the module."""

    topology: str  #: name
    topology_id: str = ""  #: Storm's id
    policy: str = ""
    role: str = "starting"  #: "starting", "leader", "standby", "lost", "failed" or "gone"
    state: str = ""  #: the coordinator's
    phase: str = ""  #: the duty of the tasks
    epoch: int = 0
    heard: float = 0.0  #: since when the service tells of it
    measured_at: float | None = None
    rate: float | None = None  #: out of all sources
    response_s: float | None = None  #: measured, mean of the newest results
    modelled_response_s: float | None = None  #: by the policy, of the deployment in force, with the rest if it is known
    backlog: int | None = None  #: tuples that wait before the source
    state_bytes: int | None = None
    cost_per_h: float | None = None  #: $/h of the deployment in force
    downtime_s: float = 0.0  #: of the reconfigurations since `heard`
    downtime_share: float = 0.0  #: of the time since `heard`, 0 to 1
    components: tuple[Component, ...] = ()
    streams: tuple[tuple[str, str], ...] = ()
    deployment: Places = field(default_factory=dict)  #: in force
    before: Places = field(default_factory=dict)  #: before the newest reconfiguration that was done
    selectivities: tuple[SelectivitySeen, ...] = ()  #: by stream
    stores: tuple[StoreSeen, ...] = ()  #: by node
    rest: RestSeen | None = None  #: None: not known yet
    handover: HandoverSeen | None = None
    restart_pause_s: float | None = None  #: median of the restarts that plans are priced by
    restarts_seen: int = 0  #: number of those
    plan: PlanSeen | None = None
    current: Reconfiguration | None = None  #: in progress
    last: Reconfiguration | None = None  #: the newest that is over
    reconfigurations: int = 0  #: since `heard`
    endings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: of those: kind -> ending -> number
    refusals: tuple[Refused, ...] = ()  #: oldest first
    refused: int = 0  #: number of refusals since `heard`
    proposal: int | None = None  #: number of the plan that waits for approval
    frozen: str | None = None  #: the reason for which nothing is carried out, which may be empty; None: plans are
    missing: tuple[Missing, ...] = ()
    last_action: str = ""
    last_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A line of the list of all topologies."""

    topology: str
    topology_id: str
    policy: str
    role: str
    phase: str
    epoch: int
    replicas: int
    rate: float | None
    response_s: float | None
    modelled_response_s: float | None
    cost_per_h: float | None
    downtime_share: float
    missing: tuple[Missing, ...]
    last_action: str
    last_at: float


def summary_of(report: Report) -> Summary:
    """The line of a report."""
    return Summary(
        topology=report.topology, topology_id=report.topology_id, policy=report.policy, role=report.role,
        phase=report.phase, epoch=report.epoch, replicas=sum(sum(c.values()) for c in report.deployment.values()),
        rate=report.rate, response_s=report.response_s, modelled_response_s=report.modelled_response_s,
        cost_per_h=report.cost_per_h, downtime_share=report.downtime_share, missing=report.missing,
        last_action=report.last_action, last_at=report.last_at,
    )  # fmt: skip
