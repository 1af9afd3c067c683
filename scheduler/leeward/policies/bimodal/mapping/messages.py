"""The messages between servers, and between clients and servers (spec of bi-modal links, section 2). Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from leeward.policies.bimodal.mapping.gossip import Fact
from leeward.policies.bimodal.model.values import Task
from leeward.policies.bimodal.model.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A partial map to extend. `spec` comes with it until the receiver has acknowledged one of the sender's.

    `turn`: of the computation, as a task is mapped again if a server of its map is lost.
    """

    task: str
    turn: int
    spec: Task | None
    walk: Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Of a `Map`; `last`: its sender has left the computation, as all that it sent is acknowledged."""

    task: str
    turn: int
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One attempt to reserve along a map, and its position: the number of the visit that the receiver is to serve."""

    task: str
    attempt: int
    spec: Task
    walk: Walk
    position: int
    news: tuple[Fact, ...] = ()  #: of the server that had no room


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve(Probe):
    """On its way from the delivery server back to the source: reserve your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo(Probe):
    """On its way to the delivery server: some server had no room; release your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew(Probe):
    """As `Reserve`: the task still runs, extend the lease of your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Probe):
    """As `Reserve`: the task is over, release your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """From the source to the delivery server: the attempt has reserved every part, or a renewal has reached it."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnWay:
    """Along a way of a stream hop over dedicated links: `servers` from its sender to its receiver, `links` between.

    `number`: of the hop's ways; 0 is that of the map, whose parts belong to its visits from number `first` on.
    `position`: of the receiver of this message in `servers`.
    """

    task: str
    attempt: int
    hop: int
    number: int
    need: float
    servers: tuple[int, ...]
    links: tuple[int, ...]
    position: int
    first: int = 0
    news: tuple[Fact, ...] = ()  #: of the server that had no room


@dataclass(frozen=True, slots=True, kw_only=True)
class Divert(OnWay):
    """On its way to the receiver of a stream hop: reserve your part of its new way, or extend the lease of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(OnWay):
    """On its way back to the sender: a server had no room; release your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(OnWay):
    """On its way to the receiver: the hop goes another way now; release your part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diverted:
    """From the receiver of a stream hop to its sender: every part of this way is reserved, or its lease extended."""

    task: str
    attempt: int
    hop: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gossip:
    """Facts that the sender has learned, and has not sent to this neighbour yet."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """From a client to the delivery server of a task: map it."""

    spec: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """From a client to the delivery server of a task: it is over."""

    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """From a client to the delivery server of a task: how far is it?"""

    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer: status (empty: not known here), the map that is tried, or runs; tasks that have reservations here."""

    task: str
    status: str
    walk: Walk | None
    held: int = 0


class Route(NamedTuple):
    """How a stream hop travels now: over dedicated links by these servers, both ends included; (): publicly."""

    task: str
    hop: int
    receiver: int
    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWays:
    """From a client to a server: how do the stream hops travel that it sends?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldWays:
    """The answer, and the quantiles of public paths that it has learned, by server."""

    routes: tuple[Route, ...]
    paths: tuple[tuple[int, float], ...]


Message = (
    Gossip | Map | Ack | Reserve | Undo | Renew | Release | Granted | Submit | End | Asked | Divert | Blocked | Leave
    | Diverted | AskedWays
)  # fmt: skip
#: All types, in the order of their numbers in frames.
KINDS: tuple[type, ...] = (
    Gossip, Map, Ack, Reserve, Undo, Renew, Release, Granted, Submit, End, Asked, Told, Divert, Blocked, Leave,
    Diverted, AskedWays, ToldWays,
)  # fmt: skip
