"""Bodies of answers beside the reports themselves: lists with what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.control.report.values import (
    Change,
    Missing,
    Node,
    Places,
    PlanSeen,
    Reconfiguration,
    Refused,
    Report,
    Summary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActSeen:
    """An act that a topology can be asked for."""

    name: str  #: of the path `POST /api/topologies/{name}/<name>`
    about: str
    plain: bool  #: its body needs no field


@dataclass(frozen=True, slots=True, kw_only=True)
class Topologies:
    """`GET /api/topologies`."""

    topologies: tuple[Summary, ...]
    missing: tuple[Missing, ...]  #: that the whole service lacks
    event: int  #: id of the newest event: `GET /api/events?after=` goes on from here
    acts: tuple[ActSeen, ...]
    acting: bool  #: the service has a token, so one may act through it


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyAnswer:
    """`GET /api/topologies/{name}`."""

    report: Report
    event: int
    served: bool  #: its status can be asked here


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswer:
    """`GET /api/topologies/{name}/history`."""

    topology: str
    current: Reconfiguration | None
    reconfigurations: tuple[Reconfiguration, ...]  #: oldest first
    complete: bool  #: with those that are stored; else only those that this service has seen
    why: str = ""  #: why not


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAnswer:
    """`GET /api/topologies/{name}/series`."""

    topology: str
    figures: tuple[str, ...]  #: that can be asked for
    t: list[float]  #: s since 1970
    values: dict[str, list[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """`GET /api/topologies/{name}/plan`."""

    topology: str
    now: Places  #: in force
    before: Places  #: before the newest reconfiguration that was done
    plan: PlanSeen | None  #: the newest of the policy
    difference: tuple[Change, ...]  #: of the plan against what was in force
    why: str  #: the plan's reason
    refusals: tuple[Refused, ...]  #: oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesAnswer:
    """`GET /api/topologies/{name}/nodes`."""

    topology: str
    nodes: tuple[Node, ...]
    moving: Places = field(default_factory=dict)  #: where the components that change are wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """Of an act, and `GET /api/topologies/{name}/requests/{request}`."""

    topology: str
    request: str  #: id
    ending: str | None  #: "done", "aborted", "undone", "reset" or "refused"; None: no answer yet
    why: str = ""
    path: str = ""  #: that tells of it later


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAnswer:
    """Of an act on a node."""

    node: str
    draining: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer:
    """`data` of an event of `GET /api/events`."""

    id: int
    t: float
    action: str
    topology: str
    fields: Mapping[str, object]
