"""The messages by which nodes of the overlay place an application. Values only; each fits a datagram.

Clients announce an application to any node, its owner.  The owner hands it to its scheduler, and the scheduler sends
JOINs, and shares of the operators to the nodes that these passed.  Such a node, a decider, reserves a room for each of
its operators on a host.  The owner renews the rooms while the application lasts.

`number`: of a question, among those of its sender; the answer repeats it.  A question is sent again until it is
answered, so a receiver may get one more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import from_bytes
from leeward.policies.agiledart.overlay.messages import KINDS as OVERLAY
from leeward.policies.agiledart.overlay.messages import LONGEST_NAME, Contact

#: Operators of an application, and bytes that they take, so that a message with all of them fits a datagram.
MOST_OPERATORS, MOST_BYTES = 400, 60_000
#: Bytes of an operator on its host beside its name, of an upstream's position, and of a node's id.
_OPERATOR, _POSITION, _NODE = 100, 3, 18
#: failed: of one attempt only, as nodes died; the owner begins another one.
Status = Literal["unknown", "searching", "placing", "placed", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An operator of an application. Raises LeewardError on a name that is empty or too long, and on a wrong id."""

    name: str
    upstream: tuple[int, ...] = ()  #: positions, before its own, of the operators whose streams it reads
    nodes: tuple[bytes, ...] = ()  #: ids of the only nodes that may host it; (): any

    def __post_init__(self) -> None:
        _check_name("operator", self.name)
        for node in self.nodes:
            from_bytes(node)

    @property
    def size(self) -> int:
        """Bytes that it takes at most, on its way and in the answer."""
        return _OPERATOR + len(self.name.encode()) + _POSITION * len(self.upstream) + _NODE * len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """An operator on its host; `machine`: the name of the machine that the host stands for."""

    operator: str
    host: Contact
    machine: str


# --- a client and the owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """From a client: own this application from now on, and have it placed. Raises LeewardError if it is too large.

    The answer says how far it is; another one comes when it is decided, unless the application was placed already.
    One that is known with the same operators stays as it is, unless it was refused.  `zone`: "" is the receiver's.
    """

    application: str
    zone: str
    operators: tuple[Wanted, ...]

    def __post_init__(self) -> None:
        _check_name("application", self.application)
        if self.zone:
            _check_name("zone", self.zone)
        if not 0 < len(self.operators) <= MOST_OPERATORS:
            raise LeewardError(
                f"application {self.application!r} has {len(self.operators)} operators.",
                remedy=f"Give it 1 to {MOST_OPERATORS}, as they travel in one message.",
            )
        size = sum(one.size for one in self.operators)
        if size > MOST_BYTES:
            raise LeewardError(
                f"application {self.application!r}: its operators take {size} bytes in a message, at most "
                f"{MOST_BYTES} fit.",
                remedy="Give it fewer operators, shorter names, or fewer nodes to each.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """From a client: this application runs so; own it, and keep its rooms. Nothing is placed. `zone`: as above."""

    application: str
    zone: str
    hosts: tuple[tuple[str, bytes], ...]  #: operator and id of its host


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """From a client: the application is over; its rooms are released."""

    application: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPlacement:
    """From a client: how far is it?"""

    application: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementIs:
    """The answer. `why`: it is refused, or was not placed yet."""

    application: str
    status: Status
    hosts: tuple[Hosted, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRooms:
    """From a client: what does this node hold, and which applications does it own?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomsAre:
    """The answer; `operators`: application and operator; `owned`: application and status. At most 200 of each."""

    machine: str
    capacity: int
    held: int
    operators: tuple[tuple[str, str], ...]
    owned: tuple[tuple[str, str], ...]


# --- the owner and its scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """From the owner, until it is told the end: place it. A greater `attempt` ends those before it."""

    application: str
    attempt: int
    operators: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The answer."""

    application: str
    attempt: int
    status: Status
    hosts: tuple[Hosted, ...] = ()
    why: str = ""


# --- JOINs


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A JOIN on its way to a sink's node. `join`: its number among those of `origin`, the scheduler."""

    number: int
    origin: Contact
    join: int
    sink: Contact
    path: tuple[Contact, ...]  #: nodes that it has passed, the source's first


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """To the node before, or to the scheduler of the first one: the JOIN is here. To the sink's node: it has passed."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """From the sink's node to the scheduler: the nodes that a JOIN has passed, source and sink included."""

    number: int
    join: int
    path: tuple[Contact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLoads:
    """How loaded are you, and the nodes of your leaf set?"""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A node and its operators."""

    node: Contact
    held: int
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsAre:
    """The answer: the sender first, by its own count, then the leaves whose heartbeats it has."""

    number: int
    loads: tuple[Loaded, ...]


# --- operators


@dataclass(frozen=True, slots=True, kw_only=True)
class Lay:
    """From the scheduler to a node of a way: choose hosts for these operators, in their order."""

    number: int
    application: str
    attempt: int
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laying:
    """To the scheduler: the decider lives, and is at it."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """The answer; `why`: no room was found for the operator behind `hosts`, nor for those after it."""

    number: int
    hosts: tuple[Hosted, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """From a decider to a node: hold a room for this operator until its owner renews it."""

    number: int
    application: str
    attempt: int
    operator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The answer, with the load after it; not `accepted`: the node is full, or knows a newer attempt."""

    number: int
    accepted: bool
    held: int
    capacity: int
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Hold no room for these operators of an attempt, or of any before it; (): for none of the application."""

    application: str
    attempt: int
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """From the owner, once a heartbeat: hold rooms for these operators, and for no others of the application.

    `running`: they run there, so they count even beyond the node's capacity.
    """

    number: int
    application: str
    attempt: int
    operators: tuple[str, ...]
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The answer; `lost`: there was no room left for these; `newer`: a newer attempt, of another owner; 0: none."""

    number: int
    application: str
    attempt: int
    lost: tuple[str, ...]
    newer: int = 0


def _check_name(field: str, name: str) -> None:
    if not 0 < len(name) <= LONGEST_NAME:
        raise LeewardError(f"{field}: its name has {len(name)} characters.", remedy=f"Give it 1 to {LONGEST_NAME}.")


#: All types of the overlay and of this protocol, in the order of their numbers in frames.
KINDS: tuple[type, ...] = (
    *OVERLAY, Announce, Runs, Over, AskPlacement, PlacementIs, AskRooms, RoomsAre, Deploy, Deployment, Step, Took,
    Passed, AskLoads, LoadsAre, Lay, Laying, Laid, Reserve, Reserved, Release, Renew, Kept,
)  # fmt: skip
